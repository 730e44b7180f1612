"""The same bits on every CPU: code for other CPUs is run if this one can run it, and otherwise only compiled."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest
from effort import examples
from visa.programs import general, random_instruction

from xegpu_py.engines import jit
from xegpu_py.engines.interpreter import Interpreter
from xegpu_py.engines.jit import native_code
from xegpu_py.engines.jit.host import KNOWN, VARIABLE, AccumulatorTile, Host, chosen_host, host_by_name, native_host
from xegpu_py.engines.jit.ir_text import PTR, LLVMValue, vector
from xegpu_py.engines.jit.llvm import compiled
from xegpu_py.engines.jit.thread_function import functions_of_program
from xegpu_py.target import TARGETS
from xegpu_py.visa.operands import Destination, Region
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.verify import instruction_problem

from .machine import Machine, State, varied
from .test_jit import REGISTERS, chain, compare

pytestmark = pytest.mark.native

ANY = TARGETS["any"]
HERE = [name for name in KNOWN if host_by_name(name).runs_here]
OTHERS = [name for name in KNOWN if name not in HERE]
PROGRAMS = examples(200)


@pytest.fixture(params=HERE)
def host(request: pytest.FixtureRequest) -> Host:
    return host_by_name(request.param)


def program(seed: int) -> tuple[list[Instruction], Machine, random.Random]:
    """A program of instructions that work on registers, whose results the next ones use."""
    rng = random.Random(seed)
    target = TARGETS[rng.choice(("any", "dg2", "pvcxt"))]
    names = [n for n in rng.choices(REGISTERS, k=6) if n not in target.absent]
    return [varied(random_instruction(n, rng, target), rng, target) for n in names], Machine(target), rng


@pytest.mark.each_value
@pytest.mark.parametrize("part", range(8))
def test_programs(host: Host, part: int) -> None:
    """The programs differ from host to host, so that more programs are tested."""
    first = sorted(KNOWN).index(host.machine.cpu) * PROGRAMS
    for seed in range(first + part, first + PROGRAMS, 8):
        instructions, machine, rng = program(seed)
        compare(instructions, machine.state(2, rng), machine, host=host)


def test_instructions(host: Host) -> None:
    """Some instructions of each kind."""
    names = ["add", "mul", "mad", "mulh", "shr", "div", "inv", "sqrt", "exp", "sin", "cmp", "srnd", "fcvt", "rnde"]
    rng, machine = random.Random(0), Machine(ANY)
    for half in (names[:7], names[7:]):
        instructions = [random_instruction(name, rng, ANY) for name in half for _ in range(3)]
        compare(instructions, machine.state(3, rng), machine, host=host)


def products(rng: random.Random) -> list[Instruction]:
    """Some of dpas, with bytes and nibbles of all signs, of which some hosts add several products at a time."""
    found = [random_instruction("dpas", rng, ANY) for _ in range(5)]
    for w, a in (("u8", "s8"), ("s8", "s8"), ("u8", "u8"), ("s4", "u8"), ("s2", "s4")):
        product = found[0]
        while (product["W"], product["A"]) != (w, a) or instruction_problem(product, ANY):
            other = random_instruction("dpas", rng, ANY)
            product = other.replaced(values=dict(other.values) | {"W": w, "A": a})
        found.append(product)
    return found


def test_products(host: Host) -> None:
    rng, machine = random.Random(1), Machine(ANY)
    for model in ("fma", "stage", "exact"):
        compare(products(rng), machine.state(2, rng), machine, model=model, host=host)


@pytest.mark.parametrize("seed", range(2))
def test_products_that_depend_on_each_other(host: Host, seed: int) -> None:
    rng, machine = random.Random(seed), Machine(ANY)
    compare(chain(rng, 10), machine.state(2, rng), machine, host=host)


@pytest.mark.parametrize("name", OTHERS)
def test_other_machines(name: str) -> None:
    """Code that this machine cannot run is only compiled: as many programs, several in a module, and products."""
    host, found = host_by_name(name), []
    rng = random.Random(name)
    for seed in range(0, PROGRAMS, 25):
        instructions, machine, _ = program(seed)
        for other in range(seed + 1, seed + 25):
            more, same, _ = program(other)
            if same.target == machine.target:
                instructions += more
        found.append((instructions, machine))
    found.append((products(rng), Machine(ANY)))
    for instructions, machine in found:
        own = Interpreter(machine.program(instructions), machine.layout())
        functions = functions_of_program(own.program, own.layout, "fma", host, True, True)
        for code in native_code.objects(functions, host):
            assert code[:4] == b"\x7fELF" and int.from_bytes(code[18:20], "little") == (183 if host.is_arm else 62)


def test_halves(host: Host) -> None:
    """All of them to f; and to hf what lies at and about the middle between two of them, and beyond the greatest."""
    machine = Machine(ANY)
    half, single = (next(v for v in general(ANY) if v.type == t) for t in ("hf", "f"))
    start, end = machine.offsets[half], machine.offsets[single]
    before = machine.state(1, random.Random(0))
    state = State(*(np.repeat(x, 4096, axis=0) for x in (before.regs, before.flags, before.active)))
    patterns = np.arange(1 << 16, dtype=np.uint16)
    state.regs[:, start : start + 32] = patterns.reshape(4096, 16).view(np.uint8)
    # Not a copy of patterns: the addition makes it a conversion.
    wide = Instruction("add", {"dst": Destination(single), **_both(half, half)}, 16, "M1_NM")
    compare([wide], state, machine, host=host)
    numbers = patterns.view(np.float16).astype(np.float32)
    with np.errstate(all="ignore"):
        step = np.abs(numbers - np.nextafter(patterns.view(np.float16), np.float16(np.inf)).astype(np.float32))
        middle = np.where(np.isfinite(step), numbers + step / 2, numbers)
    move = Instruction("mov", {"dst": Destination(half), "src0": Region(single, 0, 0, 1, 1, 0)}, 16, "M1_NM")
    middle[:6] = 65519.0, 65520.0, 65535.9, 65536.0, 70000.0, 3e38
    for apart in (-1, 0, 1):
        near = (middle.view(np.uint32) + np.uint32(apart % (1 << 32))).reshape(4096, 16)
        state.regs[:, end : end + 64] = near.view(np.uint8)
        compare([move], state, machine, host=host)


def _both(*sources: object) -> dict[str, Region]:
    return {f"src{i}": Region(s, 0, 0, 1, 1, 0) for i, s in enumerate(sources)}


def test_features_of_the_table_are_llvms() -> None:
    """LLVM selects instructions of each feature that the table gives a CPU; it does not where one is missing."""
    probes = {
        "fma": ("v8f32", "call <8 x float> @llvm.fma.v8f32(<8 x float> %a, <8 x float> %b, <8 x float> %a)", "vfmadd"),
        "avx512vl": ("v8f32", "call <8 x float> @llvm.rint.v8f32(<8 x float> %a)", "vrndscaleps"),
    }
    for name, (_, features) in KNOWN.items():
        host = host_by_name(name)
        if host.is_arm:
            continue
        for feature, (_, call, mnemonic) in probes.items():
            if feature == "avx512vl":
                text = """define <16 x float> @f(<16 x float> %a, <16 x float> %b) "min-legal-vector-width"="512" {
                  %r = fadd <16 x float> %a, %b
                  ret <16 x float> %r
                }"""
                mnemonic = "zmm"
            else:
                text = f"""define <8 x float> @f(<8 x float> %a, <8 x float> %b) {{
                  %r = {call}
                  ret <8 x float> %r
                }}"""
            found = compiled(text, host.machine, "verify", 2, "assembly").decode()
            assert (mnemonic in found) == (feature in features), (name, feature)


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("how", ["merge", "masked_store"])
def test_one_lane_is_stored_alone(how: str, lanes: int, bits: int) -> None:
    """Under AVX-512, LLVM 22 stores as much as the numbers had before they were truncated."""
    wide, truth = 2 * bits, ", ".join(f"i1 {str(i == 1).lower()}" for i in range(lanes))
    for name in KNOWN:
        host = host_by_name(name)
        if host.is_arm:
            continue
        code = host.function("f", [PTR, vector(lanes, f"i{wide}")])
        place, numbers = code.arguments
        value, mask = code.resize(numbers, bits, False), LLVMValue(f"<{truth}>", vector(lanes, "i1"))
        if how == "masked_store":
            code.masked_store(value, place, mask)
        else:
            code.store(code.merge(mask, value, code.load(place, value.type, 1)), place)
        code.ret()
        found = compiled(code.text(), host.machine, "verify", 2, "assembly").decode()
        assert "retq" in found
        whole = {
            8: r"p?(?:movw|extrw)",
            16: r"(?:p?extrd|movd|movss|extractps|movl)",
            32: r"(?:p?extrq|movq|movlps|movhps)",
        }
        if how == "masked_store" or lanes * bits >= 128:
            assert not re.search(rf"\tv?(?:{whole})\t[^\n]*\(%rdi\)\n", found), found


def test_tiles_fit_the_registers() -> None:
    """Accumulators, one row of B, and A."""
    tiles = {name: host_by_name(name).tile(8, 64 // host_by_name(name).lanes(4)) for name in KNOWN}
    assert tiles["haswell"] == tiles["znver3"] == AccumulatorTile(4, 3)
    assert tiles["skylake-avx512"] == tiles["sapphirerapids"] == AccumulatorTile(4, 4)
    assert tiles["neoverse-n1"] == tiles["apple-m1"] == AccumulatorTile(8, 2)
    # A product of words that is not yet added occupies a register.
    assert host_by_name("haswell").tile(8, 8, temporaries=1) == AccumulatorTile(4, 2)
    # Loops: all but two rows have as many sums at once as fit.
    assert host_by_name("haswell").tile(32, 8) == AccumulatorTile(3, 4)
    for name, tile in tiles.items():
        own = host_by_name(name)
        of_a = tile.rows if own.multiplies_by_lane else 1
        assert tile.rows * tile.vectors + tile.vectors + of_a <= own.vector_registers, name
        # Enough sums at once to hide the latency of additions on two units.
        assert tile.rows * tile.vectors >= 8, name


def test_the_environment_names_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(name: str) -> str:
        monkeypatch.setenv(VARIABLE, name)
        return chosen_host().machine.cpu

    assert chosen("") == chosen("native") == native_host().machine.cpu
    assert chosen(HERE[0]) == HERE[0]
    monkeypatch.delenv(VARIABLE)
    assert chosen_host().machine.cpu == native_host().machine.cpu
    other = next(name for name in KNOWN if name not in HERE)
    with pytest.raises(ValueError, match=f"^{VARIABLE}: this machine does not run code for '{other}'$"):
        chosen(other)
    with pytest.raises(ValueError, match="^unknown host CPU 'i386'; there are native, x86-64, haswell, "):
        chosen("i386")


def test_one_module_names_widths() -> None:
    """No other module names an instruction of a certain width, or a CPU's features."""
    files = [file for file in Path(jit.__file__).parent.rglob("*.py") if file.name != "host.py"]
    assert len(files) > 15
    for file in files:
        assert not re.findall(r"\b(?:avx\w*|sse\w*|neon|ymm|zmm)\b", file.read_text()), file
