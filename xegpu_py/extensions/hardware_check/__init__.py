"""Run instructions on an Intel GPU and here, and say where their bits differ.

    python -m xegpu_py.extensions.hardware_check --target bmg --probe          # one line, in seconds
    python -m xegpu_py.extensions.hardware_check --target bmg -o b580.json

Each check is a kernel of one instruction. The products among them tell how the GPU's systolic array adds: which of
`candidates` has all their bits, which subnormal numbers are zeros to it, and which NaN it gives. The result is one JSON
file, by which `xegpu-run --model FILE` runs the engines.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
import numpy as np
from msgspec import Struct, field, structs

from xegpu_py.numerics.dpas import NARROW, Model, dpas, ops_per_channel, pack_a, pack_b
from xegpu_py.numerics.formats import PRECISIONS, TYPES, Array, Format, bits_of
from xegpu_py.numerics.systolic import Systolic, candidates
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.target import DEFAULT, TARGETS, Target
from xegpu_py.visa.finalizer import FINALIZERS, FinalizerError, FinalizerMissing, finalize, opencl
from xegpu_py.visa.fp_modes import keep_subnormals

cl: Any = None
with suppress(ImportError):
    import pyopencl

    cl = pyopencl

LANES = 16

THREADS = 64
"""Threads of a check of arithmetic: each computes 16 elements."""

SHOWN = 8
"""Differing elements of a check that the file lists."""


class Check(Struct, frozen=True):
    """A kernel of one instruction.

    Attributes:
        name: the instruction with its types, such as "add f".
        text: the kernel, in vISA assembly; its arguments are the arrays.
        arrays: the arrays that it reads, and last the one that it writes, before it.
        threads: the workgroups, of one hardware thread each, that run.
    """

    name: str
    text: str
    arrays: tuple[Array, ...]
    threads: int = 1


class CheckDevice(Protocol):
    """A GPU, or an engine, that runs checks."""

    name: str

    def run(self, check: Check) -> Array:
        """The last array after a check."""


class Engine:
    """Our engines, by a model."""

    def __init__(self, target: str, **options: Any) -> None:
        """Run checks for a target; `options` are those of `Kernel`."""
        self.name = "xegpu-py"
        self._target, self._options = target, options

    def run(self, check: Check) -> Array:
        """The last array after a check."""
        arrays = [array.copy() for array in check.arrays]
        kernel = Kernel.from_assembly(check.text, target=self._target, **self._options)
        kernel(*arrays, grid=check.threads)
        return arrays[-1]


class OpenCLDevice:
    """A GPU of Intel's, by its OpenCL driver, which launches what ocloc compiles, or compiles itself without ocloc."""

    def __init__(self, target: str, number: int = 0) -> None:
        """Choose a GPU.

        Raises:
            RuntimeError: if there is no such GPU, or pyopencl is not installed.
        """
        if cl is None:
            raise RuntimeError("pyopencl is not installed: `pip install pyopencl`")
        try:
            platforms = cl.get_platforms()
        except cl.LogicError:
            platforms = []
        devices = [
            device
            for platform in platforms
            for device in platform.get_devices()
            if "Intel" in device.vendor and device.type & cl.device_type.GPU
        ]
        if not 0 <= number < len(devices):
            raise RuntimeError(f"there is no GPU {number}: OpenCL knows {len(devices)} GPUs of Intel's")
        self._device, self._target = devices[number], target
        self.name = f"{devices[number].name}, driver {devices[number].driver_version}"
        self._context = cl.Context([self._device])
        self._queue = cl.CommandQueue(self._context)

    def run(self, check: Check) -> Array:
        """The last array after a check.

        Raises:
            FinalizerError: if the compiler does not accept the kernel.
        """
        try:
            binary = finalize(check.text, self._target, finalizer="ocloc").binary
            program = cl.Program(self._context, [self._device], [binary]).build()
        except FinalizerMissing:
            source, _lines = opencl(check.text, TARGETS[self._target].grf_bytes)
            try:
                program = cl.Program(self._context, source).build(["-cl-std=CL3.0"])
            except cl.RuntimeError as e:
                raise FinalizerError(f"the driver does not accept it: {e}") from e
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        buffers = [cl.Buffer(self._context, flags, hostbuf=array) for array in check.arrays]
        program.check(self._queue, (LANES * check.threads,), (LANES,), *buffers)
        result = np.empty_like(check.arrays[-1])
        cl.enqueue_copy(self._queue, result, buffers[-1])
        return result


# Kernels: each thread loads its part of the arrays, executes the instruction, and stores its part of the result.

Part = tuple[str, str, Literal["load", "store", "other"], Array]
"""The variable in which a thread has its part of an array, the variable's type, how the part moves, and the array."""


def _declared(name: str, kind: str, count: int) -> str:
    return f".decl {name} v_type=G type={kind} num_elts={count} align=GRF\n"


def _check(
    name: str, target: Target, parts: Sequence[Part], body: str, threads: int = THREADS, more: str = ""
) -> Check:
    """The check of the instructions `body`, which find array n at the address `Pn`, and a thread's part of it at `Atn`.

    Args:
        parts: one for each array; the last one is the result's. One variable may be both loaded and stored. "other"
            arrays are accessed by `body` alone, and have no variable.
        more: declarations.
    """
    declared, before, after, inputs = {"Part": ("ud", 1)}, "", "", ""
    for n, (variable, kind, way, array) in enumerate(parts):
        size = array.nbytes // threads
        declared[f"At{n}"] = ("uq", 1)
        inputs += f".decl P{n} v_type=G type=uq num_elts=1 align=qword\n.input P{n} offset={64 + 8 * n} size=8\n"
        before += f"    mul (M1_NM, 1) Part(0,0)<1> %group_id_x(0,0)<0;1,0> {size:#x}:ud\n"
        before += f"    add (M1_NM, 1) At{n}(0,0)<1> P{n}(0,0)<0;1,0> Part(0,0)<0;1,0>\n"
        if way != "other":
            declared[variable] = (kind, size // TYPES[kind].bytes)
            for at in range(0, size, 256):
                data, address = f"{variable}.{at}:d32x{min(size - at, 256) // 4}t", f"flat[At{n}.0+{at:#x}]:a64"
                if way == "load":
                    before += f"    lsc_load.ugm (M1_NM, 1) {data} {address}\n"
                else:
                    after += f"    lsc_store.ugm (M1_NM, 1) {address} {data}\n"
    bits = keep_subnormals(target)["src1"].bits
    declarations = "".join(_declared(variable, *of) for variable, of in declared.items())
    text = (
        f'.version 3.8\n.kernel "check"\n{declarations}{more}{inputs}'
        '.kernel_attr Target="cm"\n.kernel_attr SimdSize=16\n'
        f"    or (M1_NM, 1) %cr0(0,0)<1> %cr0(0,0)<0;1,0> {bits:#x}:ud\n{before}{body}{after}    ret (M1, 1)\n"
    )
    return Check(name, text, tuple(array for *_, array in parts), threads)


def _arithmetic(target: Target, name: str, form: str, dst: str, sources: Sequence[str], seed: int) -> Check:
    """The check of an arithmetic instruction, whose text has `{D}` and `{0}`, `{1}`, `{2}` for its operands."""
    rng, count = np.random.default_rng(seed), LANES * THREADS
    parts: list[Part] = [(f"S{n}", kind, "load", _numbers(TYPES[kind], count, rng)) for n, kind in enumerate(sources)]
    operands = [f"{variable}(0,0)<1;1,0>" for variable, *_ in parts]
    parts.append(("D", dst, "store", np.zeros(count, TYPES[dst].dtype)))
    return _check(name, target, parts, "    " + form.format(*operands, D="D(0,0)<1>") + "\n")


def _numbers(fmt: Format, count: int, rng: np.random.Generator) -> Array:
    """Numbers of a format: of any bits, of usual size, and special ones."""
    patterns = rng.integers(0, 256, count * fmt.bytes, np.uint8).view(f"u{fmt.bytes}")
    if fmt.is_float:
        usual = (rng.standard_normal(count) * 8).astype(fmt.dtype).view(patterns.dtype)
        sign, one = 1 << (fmt.bits - 1), ((1 << (fmt.exponent - 1)) - 1) << fmt.mantissa
        special = [0, 1, (1 << fmt.mantissa) - 1, 1 << fmt.mantissa, one, fmt.infinity - 1, fmt.infinity, fmt.nan]
        special += [bits | sign for bits in special]
        special_patterns = rng.choice(np.array(special, patterns.dtype), count)
        kind = rng.integers(0, 4, count)
        patterns = np.where(kind == 0, patterns, np.where(kind == 1, special_patterns, usual))
    return np.ascontiguousarray(patterns).view(fmt.dtype)


_ALU: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    *((name, kind, (kind,)) for name in ("inv", "sqrt", "rsqrt", "exp", "log", "sin", "cos") for kind in ("f", "hf")),
    *((name, kind, (kind,)) for name in ("tanh", "sigm") for kind in ("f",)),
    *((name, "f", ("f",)) for name in ("rndd", "rndu", "rnde", "rndz", "frc")),
    *((name, "df", ("df",)) for name in ("inv", "sqrt", "sqrtm")),
    *((name, kind, (kind,) * 2) for name in ("add", "mul", "div", "max") for kind in ("f", "hf", "df")),
    *((name, kind, (kind,) * 2) for name in ("divm",) for kind in ("f", "df")),
    *(("mad", kind, (kind,) * 3) for kind in ("f", "hf", "df")),
    ("sqrtm", "f", ("f",)),
    ("cmp.lt", "f", ("f", "f")),
    *(("mov", dst, (source,)) for source in ("f",) for dst in ("hf", "bf", "df", "d", "ud", "q")),
    *(("mov", "f", (source,)) for source in ("hf", "bf", "df", "d", "ud", "uq")),
    ("mov.sat", "hf", ("f",)),
    ("srnd", "hf", ("f", "f")),
    ("srnd", "ub", ("hf", "hf")),
    ("fcvt", "ub", ("hf",)),
    ("fcvt", "hf", ("ub",)),
    ("fcvt", "ud", ("f",)),
    ("mulh", "d", ("d", "d")),
    ("add3", "d", ("d", "d", "d")),
    ("asr", "q", ("q", "ud")),
    ("dp4a.sat", "d", ("d", "d", "d")),
)
"""Arithmetic: the instruction, and the types of its result and sources."""


def _atomic(target: Target, name: str, kind: str, operands: int, seed: int, contended: bool = False) -> Check:
    """The check of an atomic message.

    Args:
        contended: whether the lanes of all threads update the same four elements, with small whole numbers, so that
            their order does not matter; otherwise each lane updates an element of its own.
    """
    rng, count = np.random.default_rng(seed), LANES * THREADS
    more = _declared("Bytes", "ud", LANES) + _declared("Where", "uq", LANES)
    data = ["A.0", "B.0"][:operands] + ["%null.0"] * (2 - operands)
    base, elements = ("P2", 4) if contended else ("At2", LANES)
    body = "".join(f"    mov (M1_NM, 1) Bytes(0,{n})<1> {4 * (n % elements):#x}:ud\n" for n in range(LANES))
    body += (
        f"    add (M1_NM, 16) Where(0,0)<1> {base}(0,0)<0;1,0> Bytes(0,0)<1;1,0>\n"
        f"    {name}.ugm (M1_NM, 16) %null.0:d32 flat[Where.0]:a64 {' '.join(data)}\n"
    )
    ways: tuple[tuple[str, Literal["load", "other"]], ...] = (("A", "load"), ("B", "load"), ("", "other"))

    def numbers() -> Array:
        whole = rng.integers(-999, 999, count).astype(np.int32).astype(TYPES[kind].dtype)
        return whole if contended else _numbers(TYPES[kind], count, rng)

    parts: list[Part] = [(variable, kind, way, numbers()) for variable, way in ways]
    return _check(f"{name} {kind}{' of all threads' * contended}", target, parts, body, more=more)


_ATOMICS = (
    ("lsc_atomic_fadd", "f", 1),
    ("lsc_atomic_fmin", "f", 1),
    ("lsc_atomic_fmax", "f", 1),
    ("lsc_atomic_fcas", "f", 2),
    ("lsc_atomic_iadd", "ud", 1),
    ("lsc_atomic_smax", "d", 1),
    ("lsc_atomic_iinc", "ud", 0),
    ("lsc_atomic_xor", "ud", 1),
)
"""Atomics: the message, the type of its operands, and their number."""

_BLOCKS = {
    "lsc_load_block2d": ("d16.16x8nn", "d16.16x16nt", "d32.8x8tn", "d8.2x16x8nn", "d32.16x4nn"),
    "lsc_store_block2d": ("d8.64x8nn", "d16.16x8nn", "d32.16x4nn", "d64.8x3nn"),
}


def _block(target: Target, message: str, shape: str, seed: int) -> Check:
    """The check of a 2D block message at and beyond all edges of a surface of 12 rows of 72 bytes."""
    rng = np.random.default_rng(seed)
    size = int(shape[1:].partition(".")[0])
    columns = 72 * 8 // size
    step = max(32 // size, 1)
    across = (-2 * step, 0, columns - step, columns - 4 * step, columns)
    positions = [(x, y) for y in (-9, -3, 0, 7, 11, 13) for x in across]
    stores, count = "store" in message, len(positions)
    # All threads load from one surface; each stores to one of its own.
    surfaces = rng.integers(0, 256, (count if stores else 1, 16, 128), np.uint8)
    base = "At2" if stores else "P0"
    at = f"flat[{base}(0,0),{72 - 1:#x},{12 - 1:#x},{128 - 1:#x},XY(0,0),XY(0,1)]"
    data = rng.integers(0, 256, (count, 512), np.uint8)
    parts: list[Part] = [
        ("", "ub", "other", surfaces),
        ("XY", "d", "load", np.array(positions, np.int32)),
        ("D", "ud", "load" if stores else "store", data),
    ]
    operands = [f"D.0:{shape}", at]
    body = f"    {message}.ugm (M1_NM, 1) {' '.join(operands[::-1] if stores else operands)}\n"
    return _check(f"{message} {shape}", target, parts[::-1] if stores else parts, body, count)


def checks(target: Target) -> list[Check]:
    """The checks that a target supports, without products."""
    all_checks = []
    for seed, (op, dst, sources) in enumerate(_ALU):
        name = op.partition(".")[0]
        supported = name not in target.absent and (target.double_math or "df" not in sources)
        if supported and (target.tf32_conversion or (op, dst) != ("fcvt", "ud")):
            operands = " ".join(f"{{{n}}}" for n in range(len(sources)))
            form = f"{op} (M1_NM, {LANES}) {{D}} {operands}"
            title = f"{op} {dst}" if {dst} == {*sources} else f"{op} {', '.join(sources)} to {dst}"
            all_checks.append(_arithmetic(target, title, form, dst, sources, seed))
    all_checks += [_atomic(target, *of, seed) for seed, of in enumerate(_ATOMICS)]
    # The result of compare-and-swap depends on the order.
    all_checks += [_atomic(target, *of, seed, True) for seed, of in enumerate(_ATOMICS) if "cas" not in of[0]]
    blocks = [(message, shape) for message, shapes in _BLOCKS.items() for shape in shapes]
    all_checks += [_block(target, *of, seed) for seed, of in enumerate(blocks) if target.block2d]
    return all_checks


# Products, which tell models apart. Each of the 128 elements of a result is a sum of its own.


class DpasOperands(Struct, frozen=True):
    """The operands of a dpas of depth 8 with 8 rows and 16 columns.

    Attributes:
        what: what it tells: "sums"; "flushed NAME", of the subnormal numbers of a format; or "nan".
        precision: that of A and B.
        kind: the type of accumulator and result.
        a, b, c: the matrices.
    """

    what: str
    precision: str
    kind: str
    a: Array
    b: Array
    c: Array

    def result(self, model: Model) -> Array:
        """The result by a model."""
        sums = dpas(
            self.c.view(np.uint8).ravel(),
            pack_b(self.b, self.precision),
            pack_a(self.a, self.precision),
            W=self.precision,
            A=self.precision,
            SD=8,
            RC=8,
            exec_size=LANES,
            dst_type=self.kind,
            src0_type=self.kind,
            model=model,
        )
        return sums.view(self.c.dtype).reshape(self.c.shape)

    def check(self, target: Target) -> Check:
        """The check of its bits."""
        w = self.precision
        parts: list[Part] = [
            ("A", "ud", "load", pack_a(self.a, w)),
            ("B", "ud", "load", pack_b(self.b, w)),
            ("C", self.kind, "load", self.c),
            ("C", self.kind, "store", np.zeros_like(self.c)),
        ]
        body = f"    dpas.{w}.{w}.8.8 (M1_NM, {LANES}) C.0 C.0 B.0 A(0,0)\n"
        return _check(f"dpas {w} {self.kind}: {self.what}", target, parts, body, 1)


def products(target: Target) -> list[DpasOperands]:
    """The products that tell models apart, at most 64."""
    rng = np.random.default_rng(31)
    names = [n for n in ("bf", "hf", "tf32") if n in target.dpas_precisions]
    all_products = [_sums(name, rng) for name in names for _ in range(2)]
    all_products += [_flushed(name, name) for name in (*names, *NARROW) if name in target.dpas_precisions]
    all_products.append(_flushed("bf", "f sums"))
    if target.dpas_half_accumulators:
        all_products.append(_flushed("bf", "bf sums"))
    return [*all_products, _nans("bf"), _nans("hf")]


def _matrix(values: Array, precision: str) -> Array:
    return np.asarray(values).astype(PRECISIONS[precision].dtype)


def _sums(precision: str, rng: np.random.Generator) -> DpasOperands:
    """Sums whose terms reach over more bits than a number has, and nearly cancel."""
    depth = 8 * ops_per_channel(precision, precision)

    def numbers(*shape: int) -> Array:
        signs, powers = rng.choice([-1.0, 1.0], shape), 2.0 ** rng.integers(-3, 4, shape)
        return rng.integers(128, 256, shape) * signs * powers

    a, b = numbers(8, depth), numbers(depth, LANES)
    size = (8, LANES)
    c = rng.integers(1 << 23, 1 << 24, size) * rng.choice([-1.0, 1.0], size) * 2.0 ** rng.integers(-8, 2, size)
    return DpasOperands("sums", precision, "f", _matrix(a, precision), _matrix(b, precision), c.astype(np.float32))


def _flushed(precision: str, name: str) -> DpasOperands:
    """Subnormal numbers, as `Systolic.flushed` calls them."""
    depth = 8 * ops_per_channel(precision, precision)
    of, _, sums = name.partition(" ")
    fmt = PRECISIONS.get(of, TYPES["f"])
    kind = of if sums else "f"
    halves = 2.0 ** (2 - (1 << (fmt.exponent - 1))) * np.arange(1, 8 * LANES + 1).reshape(8, LANES) / 64
    a, c = np.zeros((8, depth)), np.zeros((8, LANES))
    if sums:
        c = halves
    else:
        a[:, :LANES] = halves[:, :depth]
    # Products are normal numbers of f, so that only factors can be zeros. Narrow formats do not have 2^12.
    b = np.eye(depth, LANES) * (2.0**12 if fmt.exponent == TYPES["f"].exponent else 1.0)
    matrices = _matrix(a, precision), _matrix(b, precision), c.astype(TYPES[kind].dtype)
    return DpasOperands(f"flushed {name}", precision, kind, *matrices)


def _nans(precision: str) -> DpasOperands:
    """NaNs from operands, from infinity times zero, and from infinities of both signs."""
    depth = 8 * ops_per_channel(precision, precision)
    a, b = np.ones((8, depth)), np.ones((depth, LANES))
    c = np.zeros((8, LANES), np.float32)
    a[0, 3], b[2, 1], a[1, 0], b[0, 5], a[2, 4], a[2, 5] = np.nan, -np.nan, np.inf, 0, np.inf, -np.inf
    bits_of(c)[4, :4] = 0x7F812345, 0xFFC54321, 0x7FFFFFFF, 0xFF800001
    return DpasOperands("nan", precision, "f", _matrix(a, precision), _matrix(b, precision), c)


TELLING = (93, 66, 2, 105, 42, 109, 9, 52, 26, 38, 16, 40, 94)
"""Elements of the first product, counted through its rows, whose bits tell all of `candidates` apart."""


def _telling(result: Array) -> str:
    return "".join(f"{bits:08x}" for bits in bits_of(result).ravel()[[*TELLING]].tolist())


@cache
def _results(target: str, number: int, model: Systolic) -> Array:
    return products(TARGETS[target])[number].result(model)


def identify(target: Target, results: Mapping[int, Array]) -> list[Systolic]:
    """The models that have all bits of products.

    Args:
        results: the results, by the numbers of the products.

    Returns:
        The candidates that agree; none if no candidate does. NaN bits are those that all results have, if they agree.
    """
    all_products = products(target)

    def same(number: int, model: Systolic) -> bool:
        return bool((bits_of(_results(target.name, number, model)) == bits_of(results[number])).all())

    sums = [n for n in results if all_products[n].what == "sums"]
    models = [model for model in candidates() if all(same(n, model) for n in sums)]
    for number in results:
        name = all_products[number].what.removeprefix("flushed ")
        if name != all_products[number].what:
            models = [model if same(number, model) else _flushing(model, name) for model in models]
    nans = [bits_of(results[n])[np.isnan(results[n])] for n in results if all_products[n].what == "nan"]
    patterns = {int(bits) for nan_patterns in nans for bits in nan_patterns}
    if len(patterns) == 1:
        models = [structs.replace(model, nan=min(patterns)) for model in models]
    return [model for model in models if all(same(n, model) for n in results)]


def _flushing(model: Systolic, name: str) -> Systolic:
    return structs.replace(model, flushed=tuple(sorted({*model.flushed, name})))


# The report.


class ElementDifference(Struct, frozen=True):
    """An element that differs: its index, the hexadecimal bits of the arrays at the index, there and here."""

    index: int
    operands: list[str]
    there: str
    here: str


class CheckOutcome(Struct):
    """The result of a check: the number of elements, how many differ, and the first of them; or why it did not run."""

    elements: int = 0
    different: int = 0
    first: list[ElementDifference] = field(default_factory=list)
    error: str | None = None


class Report(Struct):
    """The file of a GPU.

    Attributes:
        device: its name.
        target: the target.
        version: that of xegpu-py.
        checks: what each check found.
        models: the models of dpas that have all bits of the products that were run.
        telling: the hexadecimal bits of the elements `TELLING`; "" if their product was not run.
    """

    device: str
    target: str
    version: str
    checks: dict[str, CheckOutcome]
    models: list[Systolic]
    telling: str = ""

    def line(self) -> str:
        """How the GPU adds: the candidate's number, the model, and the bits that tell candidates apart."""
        same = [n for n, m in enumerate(candidates()) if _telling(_results(self.target, 0, m)) == self.telling]
        number = f"model {same[0]} of {len(candidates())}" if same else "no known model"
        described = "; ".join(_described(model) for model in self.models) or "not all products agree with one"
        errors = [outcome.error for outcome in self.checks.values() if outcome.error]
        fields = [f"dpas {number}", described, f"bits {self.telling or 'unknown'}", *errors[:1]]
        return f"{self.device}, as {self.target}: {'; '.join(' '.join(text.split()) for text in fields)}"

    def table(self) -> str:
        """The outcomes as text."""
        width = max(map(len, self.checks))
        lines = [f"{self.device}, as {self.target}"]
        for name, outcome in self.checks.items():
            state = outcome.error or (
                f"{outcome.different} of {outcome.elements} differ" if outcome.different else "same bits"
            )
            lines.append(f"  {name:{width}}  {state}")
        described = "; ".join(_described(model) for model in self.models)
        return "\n".join([*lines, f"dpas: {described or 'no known model has these bits'}"])


def _described(model: Systolic) -> str:
    changed = [f"{name} {getattr(model, name)}" for name in model.__struct_fields__ if name not in ("flushed", "nan")]
    zeros = f"; subnormal numbers of {', '.join(model.flushed)} are zeros" if model.flushed else ""
    return f"{', '.join(changed)}; NaN {model.nan:#x}{zeros}"


def run(device: CheckDevice, target: Target, only: str = "") -> Report:
    """Run the checks of a target on a device and here.

    Args:
        only: a part of the names of the checks to run; all if empty.
    """
    here = Engine(target.name)
    all_products = products(target)
    probes = {n: product.check(target) for n, product in enumerate(all_products)}
    outcomes: dict[str, CheckOutcome] = {}
    results: dict[int, Array] = {}
    numbers = {id(check): n for n, check in probes.items()}
    for check in (*checks(target), *probes.values()):
        if only not in check.name:
            continue
        name = check.name
        while name in outcomes:
            name += " again"
        try:
            there = device.run(check)
        except FinalizerError as e:
            outcomes[name] = CheckOutcome(error=str(e))
            continue
        if id(check) in numbers:
            results[numbers[id(check)]] = there
        outcomes[name] = _compared(check, there, here.run(check))
    complete = len(results) == len(all_products)
    models = identify(target, results) if complete else []
    telling = _telling(results[0]) if 0 in results else ""
    return Report(device.name, target.name, version("xegpu-py"), outcomes, models, telling)


def _compared(check: Check, there: Array, here: Array) -> CheckOutcome:
    a, b = (bits_of(np.ascontiguousarray(x)).ravel() for x in (there, here))
    different = np.flatnonzero(a != b)

    def bits(value: Any, like: Array) -> str:
        return f"{int(value):#0{2 + 2 * like.itemsize}x}"

    first = []
    for at in different[:SHOWN].tolist():
        sources = [x for x in check.arrays[:-1] if x.size == a.size]
        operands = [bits(bits_of(x).ravel()[at], x) for x in sources]
        first.append(ElementDifference(at, operands, bits(a[at], there), bits(b[at], here)))
    return CheckOutcome(a.size, len(different), first)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        "python -m xegpu_py.extensions.hardware_check", description=(__doc__ or "").split("\n")[0]
    )
    targets = [name for name in TARGETS if name in FINALIZERS["ocloc"].platforms]
    parser.add_argument("--target", choices=targets, default=DEFAULT, help=f"what the GPU is (default {DEFAULT})")
    parser.add_argument("--device", type=int, default=0, metavar="N", help="the number of the GPU (default 0)")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--only", default="", metavar="NAME", help="run the checks whose names contain NAME")
    group.add_argument("--probe", action="store_true", help="run the products only, and print one line: how dpas adds")
    parser.add_argument("-o", dest="output", metavar="FILE", help="write the result, as JSON")
    args = parser.parse_args(argv)
    try:
        device = OpenCLDevice(args.target, args.device)
        report = run(device, TARGETS[args.target], "dpas" if args.probe else args.only)
        if args.output:
            Path(args.output).write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
    except (RuntimeError, OSError) as e:
        print(f"error: {e}", file=sys.stderr)
        return 1
    print(report.line() if args.probe else report.table())
    return 0
