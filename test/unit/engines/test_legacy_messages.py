"""Messages of GPUs before Xe2, and switchjmp, against models that are written as the vISA documentation states them."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator

import numpy as np
import pytest
from effort import examples

from xegpu_py import Kernel
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.target import TARGETS

MEMORY, REGISTERS = 1024, 512

TEXT = """
.version 3.8
.kernel "k"
.decl M v_type=G type=uq num_elts=1 align=GRF
.decl O v_type=G type=uq num_elts=1 align=GRF
.decl F v_type=G type=uq num_elts=1 align=GRF
.decl N v_type=G type=ud num_elts=2 align=GRF
.decl A v_type=G type=uq num_elts=16 align=GRF
.decl AD v_type=G type=ud num_elts=32 align=GRF alias=<A,0>
.decl U v_type=G type=ud num_elts=32 align=GRF
.decl T v_type=G type=uq num_elts=1 align=GRF
.decl L v_type=G type=ud num_elts=1 align=GRF
.decl D v_type=G type={type} num_elts={count} align=GRF
.decl X v_type=G type=ud num_elts=128 align=GRF
.decl P v_type=P num_elts=32
.input M offset=64 size=8
.input O offset=72 size=8
.input F offset=80 size=8
.input N offset=88 size=8
.kernel_attr Target="cm"
.kernel_attr SLMSize=1
    setp (M1_NM, 32) P N(0,0)<0;1,0>
    lsc_load.ugm (M1_NM, 1) U:d32x32t flat[F]:a64
    mov (M1_NM, 8) A(0,0)<1> U(0,0)<1;1,0>
    mov (M1_NM, 8) A({half},0)<1> U({quarter},{eight})<1;1,0>
    add (M1_NM, 8) A(0,0)<1> A(0,0)<1;1,0> {base}
    add (M1_NM, 8) A({half},0)<1> A({half},0)<1;1,0> {base}
    lsc_load.ugm (M1_NM, 1) D:d32x64t flat[O]:a64
    lsc_load.ugm (M1_NM, 1) D.256:d32x64t flat[O+0x100]:a64
{to_slm}
    {form}
{from_slm}
    lsc_store.ugm (M1_NM, 1) flat[O]:a64 D:d32x64t
    lsc_store.ugm (M1_NM, 1) flat[O+0x100]:a64 D.256:d32x64t
    ret (M1, 1)
"""

TO_SLM = """
    lsc_load.ugm (M1_NM, 1) X:d32x64t flat[M+{0:#x}]:a64
    mov (M1_NM, 1) L(0,0)<1> {0:#x}:ud
    lsc_store.slm (M1_NM, 1) flat[L]:a32 X:d32x64t"""

FROM_SLM = """
    mov (M1_NM, 1) L(0,0)<1> {0:#x}:ud
    lsc_load.slm (M1_NM, 1) X:d32x64t flat[L]:a32
    lsc_store.ugm (M1_NM, 1) flat[M+{0:#x}]:a64 X:d32x64t"""


class Case:
    """A message, and what it does to memory and registers, each an array of bytes."""

    def __init__(self, seed: int, grf: int, first: bool = False) -> None:
        self.first = first
        self.r, self.grf = random.Random(seed), grf
        self.memory = np.random.default_rng(seed).integers(0, 256, MEMORY, np.uint8)
        self.data = np.random.default_rng(seed + 1).integers(0, 256, REGISTERS, np.uint8)
        self.offsets, self.scalar, self.mask, self.guard = np.zeros(32, np.uint32), 0, (1 << 32) - 1, ""
        self.type, self.slm = "ud", False
        self.given = self.memory.copy(), self.data.copy()

    def lanes(self, sizes: tuple[int, ...], unit: int, most: int, apart: int = 0) -> int:
        """Offsets of lanes, multiples of a unit below a limit; all of them differ by at least `apart`, if given."""
        count = self.r.choice(sizes)
        if apart:
            places = [n * apart for n in range(most // apart)]
            self.offsets[:count] = self.r.sample(places, count)
        else:
            self.offsets[:count] = [self.r.randrange(most // unit) * unit for _ in range(count)]
        if self.r.random() < 0.5:
            self.mask, self.guard = self.r.getrandbits(32), self.r.choice(("(P) ", "(!P) "))
        return count

    def acts(self, lane: int) -> bool:
        return not self.guard or bool(self.mask >> lane & 1) != ("!" in self.guard)

    def move(self, store: bool, register: int, at: int, size: int) -> None:
        """Move bytes between registers and memory."""
        if store:
            self.memory[at : at + size] = self.data[register : register + size]
        else:
            self.data[register : register + size] = self.memory[at : at + size]

    def row(self, lanes: int, size: int) -> int:
        """The bytes of a register row of numbers of all lanes, of at least a register of dwords."""
        return max(lanes, self.grf // 4) * size


def surface_offset(case: Case, value: int) -> str:
    """A number in a register, or a constant."""
    if case.r.random() < 0.5:
        return f"{value:#x}:ud"
    case.scalar = value
    return "N(0,1)<0;1,0>"


def block(case: Case, name: str) -> str:
    store, slm = name.endswith("st"), name.startswith("oword")
    owords = case.r.choice((1, 2, 4, 8) + (16,) * slm)
    unaligned = "unaligned" in name or (not slm and not store and case.r.random() < 0.5)
    at = case.r.randrange((MEMORY - 16 * owords) // (4 if unaligned else 16)) * (4 if unaligned else 16)
    case.move(store, 0, at, 16 * owords)
    if slm:
        case.slm = True
        return f"{name} ({owords}) %slm {surface_offset(case, at if unaligned else at // 16)} D.0"
    case.offsets[0] = at
    word = "" if unaligned or store else ".aligned"
    return f"{name}{word} ({owords}) A(0,0)<0;1,0> D.0"


def svm_lanes(case: Case, name: str) -> str:
    store, size = name == "svm_scatter", case.r.choice((1, 4, 8))
    blocks = case.r.choice((1, 2, 4, 8))
    if size == 8:
        blocks, case.type = min(blocks, 4), "uq"
    sizes = (8,) if blocks == 8 and size == 4 else (8, 16) if blocks > 1 and size > 1 else (1, 2, 4, 8, 16)
    lanes = case.lanes(sizes, size, MEMORY - 64, 32 * store)
    for i in filter(case.acts, range(lanes)):
        if size == 1:
            each = max(blocks, 4)
            if not store:
                # What lies above 1 or 2 bytes is not defined; it is zero here.
                case.data[i * each : (i + 1) * each] = 0
            case.move(store, i * each, int(case.offsets[i]), blocks)
            continue
        for j in range(blocks):
            case.move(store, j * case.row(lanes, size) + i * size, int(case.offsets[i]) + j * size, size)
    return f"{case.guard}{name}.{size}.{blocks} (M1, {lanes}) A.0 D.0"


def channels(case: Case, name: str) -> str:
    store, case.slm = "scatter" in name, not name.startswith("svm")
    lanes = case.lanes((8, 16), 4, MEMORY - 64, 16 * store)
    kept = sorted(case.r.sample(range(4), case.r.randint(1, 4)))
    start = 0 if not case.slm else case.r.randrange(8) * 4
    for n, c in enumerate(kept):
        for i in filter(case.acts, range(lanes)):
            case.move(store, n * case.row(lanes, 4) + 4 * i, start + int(case.offsets[i]) + 4 * c, 4)
    words = "".join("RGBA"[c] for c in kept)
    if case.slm:
        return f"{case.guard}{name}.{words} (M1, {lanes}) %slm {surface_offset(case, start)} U.0 D.0"
    # The address is that of memory, and lanes' offsets are not added to it.
    return f"{case.guard}{name}.{words} (M1, {lanes}) M(0,0)<0;1,0> A.0 D.0"


def scattered(case: Case, name: str) -> str:
    store, scaled, case.slm = name.startswith("scatter"), name.endswith("scaled"), True
    size = case.r.choice((1, 2, 4))
    unit, limit = (1, 512) if scaled else (1, 128)
    lanes = case.lanes((1, 2, 4, 8, 16) if scaled else (1, 8, 16), unit, limit, 4 * store)
    if not scaled:
        case.guard = ""  # It has no predicate.
    start = case.r.randrange(100)
    for i in filter(case.acts, range(lanes)):
        if not store:
            case.data[4 * i : 4 * i + 4] = 0
        at = start + int(case.offsets[i])
        case.move(store, 4 * i, at if scaled else at * size, size)
    return f"{case.guard}{name}.{size} (M1, {lanes}) %slm {surface_offset(case, start)} U.0 D.0"


def qwords(case: Case, name: str) -> str:
    store, case.slm, case.type = name == "qw_scatter", True, "uq"
    lanes = case.lanes((1, 2, 4, 8, 16), 8, MEMORY - 8, 8 * store)
    for i in filter(case.acts, range(lanes)):
        case.move(store, 8 * i, int(case.offsets[i]), 8)
    return f"{case.guard}{name}.1 (M1, {lanes}) %slm U.0 D.0"


INTEGERS = {
    "add": lambda old, a, b: old + a, "sub": lambda old, a, b: old - a, "inc": lambda old, a, b: old + 1,
    "dec": lambda old, a, b: old - 1, "min": lambda old, a, b: min(old, a), "max": lambda old, a, b: max(old, a),
    "xchg": lambda old, a, b: a, "cmpxchg": lambda old, a, b: a if old == b else old, "and": lambda old, a, b: old & a,
    "or": lambda old, a, b: old | a, "xor": lambda old, a, b: old ^ a,
}  # fmt: skip

SIGNED = {"minsint": min, "maxsint": max}

FLOATS = {
    "fmin": lambda old, a, b: min(old, a), "fmax": lambda old, a, b: max(old, a),
    "fcmpwr": lambda old, a, b: b if old == a else old, "fadd": lambda old, a, b: old + a,
}  # fmt: skip


def atomic(case: Case, name: str) -> str:
    case.slm = name.startswith("dword")
    # Its operands are those of today's message the other way round.
    operation = (
        "cmpxchg"
        if case.first
        else case.r.choice([*INTEGERS, *SIGNED, *(FLOATS if not case.slm else ("fmin", "fmax", "fcmpwr"))])
    )
    few = (32,) if operation == "cmpxchg" else (16, 32)
    bits = 32 if operation in FLOATS else case.r.choice(few if case.slm else (16, 32, 64))
    size, each = bits // 8, max(bits // 8, 4)
    signed = operation in SIGNED and bits == 32
    case.type = "f" if operation in FLOATS else "uq" if bits == 64 else "d" if signed else "ud"
    lanes = case.lanes((1, 2, 4, 8, 16), size, 64)
    apart = max(lanes * each, case.grf)
    numbers = np.dtype(f"{'f' if operation in FLOATS else 'u'}{size}")
    if operation in FLOATS:
        case.memory[:64].view(numbers)[:] = case.r.sample(range(16), 16)
        case.data.view(numbers)[:] = [case.r.randrange(16) for _ in range(REGISTERS // 4)]
    elif operation == "cmpxchg":
        # What is compared with src1 is equal in about half of the lanes.
        case.memory[:64] = 0
        case.data[2 * apart : 2 * apart + (lanes + 1) // 2 * each] = 0
    case.given = case.memory.copy(), case.data.copy()
    sources = case.data.copy()
    for i in filter(case.acts, range(lanes)):
        at = int(case.offsets[i])
        old = case.memory[at : at + size].view(numbers)[0].item()
        a, b = (sources[n * apart + i * each :][:size].view(numbers)[0].item() for n in (1, 2))
        if operation in SIGNED:
            half = 1 << bits - 1
            new = SIGNED[operation](*((n + half) % (1 << bits) - half for n in (old, a)))
        elif operation in INTEGERS:
            new = INTEGERS[operation](old, a, b)
        else:
            new = FLOATS[operation](old, a, b)
        case.memory[at : at + size].view(numbers)[0] = new if operation in FLOATS else new % (1 << bits)
        case.data[i * each : (i + 1) * each] = 0
        case.data[i * each : i * each + size].view(numbers)[0] = old
    one = "%null.0" if operation in ("inc", "dec") else f"D.{apart}"
    two = f"D.{2 * apart}" if operation in ("cmpxchg", "fcmpwr") else "%null.0"
    width = "" if bits == 32 else f".{bits}"
    operands = f"%slm U.0 {one} {two} D.0" if case.slm else f"A.0 D.0 {one} {two}"
    return f"{case.guard}{name}.{operation}{width} (M1, {lanes}) {operands}"


FORMS = {
    **dict.fromkeys(("svm_block_ld", "svm_block_st", "oword_ld", "oword_st", "oword_ld_unaligned"), block),
    **dict.fromkeys(("svm_gather", "svm_scatter"), svm_lanes),
    **dict.fromkeys(("svm_gather4scaled", "svm_scatter4scaled", "gather4_scaled", "scatter4_scaled"), channels),
    **dict.fromkeys(("gather", "scatter", "gather_scaled", "scatter_scaled"), scattered),
    **dict.fromkeys(("qw_gather", "qw_scatter"), qwords),
    **dict.fromkeys(("svm_atomic", "dword_atomic"), atomic),
}


def text_of(case: Case, form: str) -> str:
    half, quarter, eight = (1, 0, 8) if case.grf == 64 else (2, 1, 0)
    bits = 8 if case.type == "uq" else 4
    chunks = range(0, MEMORY, 256) if case.slm else ()
    is_plain = "4scaled" in form  # Lanes' offsets are not added to the address.
    return TEXT.format(
        form=form,
        type=case.type,
        count=REGISTERS // bits,
        half=half,
        quarter=quarter,
        eight=eight,
        base="0x0:uq" if is_plain else "M(0,0)<0;1,0>",
        to_slm="".join(map(TO_SLM.format, chunks)),
        from_slm="".join(map(FROM_SLM.format, chunks)),
    )


def cases(name: str, target: str, count: int) -> Iterator[tuple[str, Case, list[np.ndarray]]]:
    for n in range(count):
        case = Case(zlib.crc32(f"{name} {target} {n}".encode()), TARGETS[target].grf_bytes, n == 0)
        form = FORMS[name](case, name)
        scalars = np.array([case.mask, case.scalar], np.uint32)
        yield form, case, [*case.given, case.offsets, scalars]


@pytest.mark.each_value
@pytest.mark.parametrize("target", ["pvcxt", "dg2"])
@pytest.mark.parametrize("name", FORMS)
def test_a_message_does_what_the_documentation_says(name, target):
    for n, (form, case, given) in enumerate(cases(name, target, examples(40))):
        memory, data, offsets, scalars = given
        Kernel.from_assembly(text_of(case, form), engine="interpreter" if n % 8 else "both", target=target)(
            memory, data, offsets, scalars
        )
        assert memory.tolist() == case.memory.tolist(), form
        assert data.tolist() == case.data.tolist(), form


def kernel(form: str, target: str = "pvcxt", **options: str) -> Kernel:
    """A kernel of one message, whose lanes have the first argument's address plus multiples of 4."""
    case = Case(0, TARGETS[target].grf_bytes)
    return Kernel.from_assembly(text_of(case, form), target=target, **options)


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
@pytest.mark.parametrize(
    ("form", "offset", "message"),
    [
        ("svm_gather.4.1 (M1, 8) A.0 D.0", 2, "'svm_gather' reads 4 bytes at an address that is not a multiple of"),
        ("svm_scatter.8.1 (M1, 8) A.0 A.0", 4, "writes 8 bytes at an address that is not a multiple of that"),
        ("svm_block_ld.aligned (2) A(0,0)<0;1,0> D.0", 4, "reads 32 bytes at an address that is not a multiple of 16"),
        ("svm_block_ld (2) A(0,0)<0;1,0> D.0", 2, "reads 32 bytes at an address that is not a multiple of 4"),
        ("svm_gather.4.1 (M1, 8) A.0 D.0", 4096, "reads 4 bytes"),
        ("oword_ld (4) %slm 0x100:ud D.0", 0, "reads 64 bytes"),
    ],
)
def test_wrong_addresses(form, offset, message, engine):
    arguments = [np.zeros(n, np.uint8) for n in (MEMORY, REGISTERS)]
    with pytest.raises(DiagnosticError, match=message):
        kernel(form, engine=engine)(*arguments, np.full(32, offset, np.uint32), np.zeros(2, np.uint32))


@pytest.mark.parametrize("target", ["pvcxt", "dg2"])
def test_a_base_of_zero_has_32_bits(target):
    """IGC writes it so where each lane's offset is an address."""
    text = f"""
.version 3.8
.kernel "k"
.decl M v_type=G type=uq num_elts=1 align=GRF
.decl A v_type=G type=uq num_elts=8 align=GRF
.decl D v_type=G type=ud num_elts=64 align=GRF
.input M offset={TARGETS[target].grf_bytes} size=8
.kernel_attr Target="cm"
    mov (M1_NM, 8) A(0,0)<1> 0x76543210:v
    shl (M1_NM, 8) A(0,0)<1> A(0,0)<1;1,0> 0x5:uw
    add (M1_NM, 8) A(0,0)<1> A(0,0)<1;1,0> M(0,0)<0;1,0>
    svm_gather4scaled.GB (M1, 8) 0x0:ud A.0 D.0
    svm_scatter4scaled.RA (M1, 8) 0x0:ud A.0 D.0
    ret (M1, 1)
"""
    memory = np.arange(64, dtype=np.uint32)
    Kernel.from_assembly(text, target=target, engine="both")(memory)
    wanted = np.arange(64).reshape(8, 8)
    wanted[:, 0], wanted[:, 3] = wanted[:, 1].copy(), wanted[:, 2].copy()
    np.testing.assert_array_equal(memory, wanted.ravel())


@pytest.mark.parametrize("target", ["pvcxt", "dg2"])
@pytest.mark.parametrize(
    ("message", "at", "copy"),
    [
        ("svm_gather4scaled.RB (M1, 16) M(0,0)<0;1,0> A.0", "AD.0", "AD({0},0)<1;1,0>"),
        ("gather4_scaled.RA (M1, 8) %slm U(0,0)<0;1,0> U.0", "U.0", "U({0},0)<1;1,0>"),
    ],
)
def test_results_may_lie_where_addresses_are(message, at, copy, target):
    """The second of two messages for channels that are apart reads the addresses that the first one read."""
    found = []
    row = {"pvcxt": 1, "dg2": 2 if "16" in message else 1}[target]
    for result in ("D.0", at):
        form = f"{message} {result}"
        if result != "D.0":
            form += "".join(f"\n    mov (M1_NM, 8) D({n * row},0)<1> {copy.format(n * row)}" for n in range(2))
        case = Case(1, TARGETS[target].grf_bytes)
        case.slm = "%slm" in message
        case.offsets[:] = np.random.default_rng(0).integers(0, 100, 32) * 4
        arguments = case.memory.copy(), case.data.copy(), case.offsets, np.zeros(2, np.uint32)
        Kernel.from_assembly(text_of(case, form), engine="both", target=target)(*arguments)
        grf = TARGETS[target].grf_bytes * row
        found.append([arguments[1][n * grf : n * grf + 32].tolist() for n in range(2)])
    assert found[0] == found[1]


SWITCH = """
.version 3.8
.kernel "choose"
.decl I v_type=G type={type} num_elts=1 align=GRF
.decl O v_type=G type=uq num_elts=1 align=GRF
.decl X v_type=G type=ud num_elts=1 align=GRF
.input I offset=64 size={size}
.input O offset=72 size=8
    switchjmp (M1, 1) {index} (first, last, first, again)
again:
    mov (M1, 1) X(0,0)<1> 3:ud
    jmp (M1, 1) end
first:
    mov (M1, 1) X(0,0)<1> 1:ud
    jmp (M1, 1) end
last:
    mov (M1, 1) X(0,0)<1> 2:ud
end:
    lsc_store.ugm (M1, 1) flat[O]:a64 X:d32
    ret (M1, 1)
"""


@pytest.mark.parametrize(("type_", "dtype"), [("ub", np.uint8), ("uw", np.uint16), ("ud", np.uint32)])
def test_switchjmp_goes_to_the_label_of_a_number(type_, dtype):
    text = SWITCH.format(type=type_, size=dtype().itemsize, index="I(0,0)<0;1,0>")
    choose = Kernel.from_assembly(text, engine="both")
    for number, wanted in enumerate((1, 2, 1, 3)):
        found = np.zeros(1, np.uint32)
        choose(dtype(number), found)
        assert found[0] == wanted
    constant = Kernel.from_assembly(SWITCH.format(type="ud", size=4, index="0x1:ud"), engine="both")
    constant(np.uint32(0), found)
    assert found[0] == 2
