"""Calls: subroutines, functions of other texts, recursion, calls by address."""

from __future__ import annotations

import lzma
import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

from xegpu_py.ir.diagnostics import DiagnosticError, Source
from xegpu_py.runtime.device_memory import DeviceMemory
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.runtime.launch import Grid, Prepared
from xegpu_py.runtime.options import Options
from xegpu_py.target import target
from xegpu_py.visa.assembly import read
from xegpu_py.visa.linking import link
from xegpu_py.visa.program import Program
from xegpu_py.visa.verify import verify

HEAD = """
.version 4.2
.{kind} "{name}"
.decl V0032 v_type=G type=uq num_elts=1 align=qword
.decl V0033 v_type=G type=d num_elts=16 align=wordx32
.decl V0034 v_type=G type=d num_elts=16 align=wordx32
.decl V0035 v_type=G type=d num_elts=192 align=wordx32 alias=<%arg, 0>
.decl V0036 v_type=G type=d num_elts=128 align=wordx32 alias=<%retval, 0>
.decl V0037 v_type=G type=uq num_elts=16 align=wordx32
.decl V0038 v_type=G type=uq num_elts=1 align=qword
.decl P1 v_type=P num_elts=16
"""
KERNEL = """
.input V0032 offset=64 size=8
.kernel_attr SimdSize=16
.kernel_attr Target="cm"
.function "_main_0"
_main_0:
    lsc_load.ugm (M1, 1) V0033:d32x16t flat[V0032]:a64
"""
END = """
    lsc_store.ugm (M1, 1) flat[V0032]:a64 V0033:d32x16t
    ret (M1, 1)
"""
FUNCTION = """
.function "{name}_0"
{name}_0:
"""


def text(kind: str, name: str, *parts: str) -> Program:
    [found] = read(Source("".join([HEAD.format(kind=kind, name=name), *parts]), f"{name}.visaasm"))
    return found


def kernel(*parts: str, after: str = "") -> Program:
    return text("kernel", "k", KERNEL, *parts, END, after)


def function(name: str, body: str) -> Program:
    return text("global_function", name, FUNCTION.format(name=name), body)


def run(program: Program, numbers: list[int]) -> list[int]:
    assert verify(program, target()) == []
    memory = DeviceMemory()
    buffer = memory.allocate("numbers", 64)
    memory.bytes_of(buffer)[:] = np.array(numbers, np.int32).view(np.uint8)
    argument = {"V0032": buffer.address.to_bytes(8, "little")}
    launch = Prepared(Grid((1, 1, 1), (1, 1, 1)), argument, memory)
    Kernel(program, Options(engine="both", cache=None)).executor.run(launch)
    return [int(n) for n in memory.bytes_of(buffer).view(np.int32)]


NUMBERS = [*range(12), 3, 0, 7, 1]

SQUARE = """
.function "square_1"
square_1:
    mul (M1, 16) V0034(0,0)<1> V0034(0,0)<1;1,0> V0034(0,0)<1;1,0>
    ret (M1, 16)
"""


def test_subroutines() -> None:
    """Lanes that call it twice, once and not at all."""
    program = kernel(
        """
    mov (M1, 16) V0034(0,0)<1> V0033(0,0)<1;1,0>
    call (M1, 16) square_1
    add (M1, 16) V0034(0,0)<1> V0034(0,0)<1;1,0> 0x1:w
    cmp.gt (M1, 16) P1 V0033(0,0)<1;1,0> 0x5:d
    (P1) call (M1, 16) square_1
    mov (M1, 16) V0033(0,0)<1> V0034(0,0)<1;1,0>
""",
        after=SQUARE,
    )
    assert run(program, NUMBERS) == [(n * n + 1) ** (1 + (n > 5)) for n in NUMBERS]


@pytest.mark.parametrize("first", [0, 9])
def test_calls_of_execution_size_1(first: int) -> None:
    """All lanes call, or none: the first lane's bit of the predicate decides."""
    program = kernel(
        """
    mov (M1, 16) V0034(0,0)<1> V0033(0,0)<1;1,0>
    call (M1, 1) square_1
    cmp.gt (M1, 16) P1 V0033(0,0)<1;1,0> 0x5:d
    (P1) call (M1, 1) square_1
    cmp.lt (M1, 16) P1 V0033(0,0)<1;1,0> 0x4:d
    (P1) call (M1, 16) square_1
    mov (M1, 16) V0033(0,0)<1> V0034(0,0)<1;1,0>
""",
        after=SQUARE,
    )
    numbers = [first, *NUMBERS[1:]]
    assert run(program, numbers) == [n ** ((4 if first > 5 else 2) * (1 + (n < 4))) for n in numbers]


RECURSION = """
    mov (M1, 16) V0034(0,0)<1> V0035(0,0)<1;1,0>
    cmp.lt (M1, 16) P1 V0034(0,0)<1;1,0> 0x2:d
    (P1) goto (M1, 16) one
    add (M1, 16) V0035(0,0)<1> V0034(0,0)<1;1,0> 0xffffffff:w
    fcall (M1, 16) factorial 1 1
    mul (M1, 16) V0033(0,0)<1> V0036(0,0)<1;1,0> V0034(0,0)<1;1,0>
    goto (M1, 1) end
one:
    mov (M1, 16) V0033(0,0)<1> 0x1:d
end:
    mov (M1, 16) V0036(0,0)<1> V0033(0,0)<1;1,0>
    fret (M1, 16)
"""
CALLED = """
    mov (M1, 16) V0035(0,0)<1> V0033(0,0)<1;1,0>
    fcall (M1, 16) {name} 1 1
    mov (M1, 16) V0033(0,0)<1> V0036(0,0)<1;1,0>
"""


def test_recursion() -> None:
    """Each lane calls to its own depth, and each call has its own variables."""
    program = link(kernel(CALLED.format(name="factorial")), [function("factorial", RECURSION)])
    assert program.functions == ("_main_0", "factorial")
    assert run(program, NUMBERS) == [math.factorial(n) for n in NUMBERS]


def test_function_without_jumps_in_native_code_of_its_own() -> None:
    """Long programs become several native functions; here nothing in one of them continues elsewhere but by return."""
    add = "    add (M1, 16) {0}(0,0)<1> {0}(0,0)<1;1,0> 0x1:d\n"
    leaf = add.format("V0035") * 99 + "    mov (M1, 16) V0036(0,0)<1> V0035(0,0)<1;1,0>\n    fret (M1, 16)\n"
    program = link(kernel(CALLED.format(name="leaf") + add.format("V0033") * 450), [function("leaf", leaf)])
    assert run(program, NUMBERS) == [n + 549 for n in NUMBERS]


def test_recorded_recursion_is_linked() -> None:
    recorded = Path(__file__).parents[2] / "extensions/opencl/recorded/recorded"
    made = msgspec.msgpack.decode(lzma.decompress(recorded.read_bytes()))["programs"]["calls.cl"]
    programs = [read(Source(text, "calls.visaasm"))[0] for text in made["texts"]]
    kernel_, called = (next(p for p in programs if p.name == name) for name in ("factorials", "factorial"))
    program = link(kernel_, [called])
    assert verify(program, target(made["target"])) == []
    assert "factorial" in program.labels


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_recursion_without_end(engine: str) -> None:
    endless = "    fcall (M1, 16) endless 1 1\n    fret (M1, 16)\n"
    program = link(kernel(CALLED.format(name="endless")), [function("endless", endless)])
    memory = DeviceMemory()
    argument = {"V0032": memory.allocate("numbers", 64).address.to_bytes(8, "little")}
    endless_kernel = Kernel(program, Options(engine=engine, cache=None))  # type: ignore[arg-type]
    with pytest.raises(DiagnosticError, match="calls more than 256 functions in each other"):
        endless_kernel.executor.run(Prepared(Grid((1, 1, 1), (1, 1, 1)), argument, memory))


BY_ADDRESS = """
    faddr "twice" V0038(0,0)<1>
    mov (M1, 16) V0037(0,0)<1> V0038(0,0)<0;1,0>
    faddr "less" V0038(0,0)<1>
    cmp.gt (M1, 16) P1 V0033(0,0)<1;1,0> 0x5:d
    (P1) mov (M1, 16) V0037(0,0)<1> V0038(0,0)<0;1,0>
    mov (M1, 16) V0035(0,0)<1> V0033(0,0)<1;1,0>
    ifcall (M1, 16) V0037(0,0)<1;1,0> 1 1
    mov (M1, 16) V0035(0,0)<1> V0036(0,0)<1;1,0>
    ifcall.uniform (M1, 16) V0038(0,0)<0;1,0> 1 1
    mov (M1, 16) V0033(0,0)<1> V0036(0,0)<1;1,0>
"""
TWICE = "    add (M1, 16) V0036(0,0)<1> V0035(0,0)<1;1,0> V0035(0,0)<1;1,0>\n    fret (M1, 16)\n"
LESS = "    add (M1, 16) V0036(0,0)<1> V0035(0,0)<1;1,0> 0xfffffff0:w\n    fret (M1, 16)\n"


def test_calls_by_address() -> None:
    """Lanes call different functions by one instruction, then all call one."""
    program = link(kernel(BY_ADDRESS), [function("twice", TWICE), function("less", LESS)])
    assert run(program, NUMBERS) == [(n - 16 if n > 5 else 2 * n) - 16 for n in NUMBERS]


def test_addresses_of_no_function() -> None:
    program = link(kernel(BY_ADDRESS.replace('faddr "less" V0038(0,0)<1>', "mov (M1_NM, 1) V0038(0,0)<1> 0x7:uq")), [
        function("twice", TWICE)
    ])  # fmt: skip
    with pytest.raises(DiagnosticError, match="calls address 0x7, at which no function begins"):
        run(program, NUMBERS)


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_addresses_of_names_that_nothing_defines(engine: str) -> None:
    program, memory = kernel('    faddr "nothing" V0038(0,0)<1>\n'), DeviceMemory()
    argument = {"V0032": memory.allocate("numbers", 64).address.to_bytes(8, "little")}
    unlinked = Kernel(program, Options(engine=engine, cache=None))  # type: ignore[arg-type]
    with pytest.raises(DiagnosticError, match="takes the address of 'nothing', which nothing defines"):
        unlinked.executor.run(Prepared(Grid((1, 1, 1), (1, 1, 1)), argument, memory))


def test_functions_that_are_missing() -> None:
    with pytest.raises(DiagnosticError, match="calls 'factorial', whose text is not given"):
        link(kernel(CALLED.format(name="factorial")), [])
    [issue] = verify(kernel(CALLED.format(name="factorial")), target())
    assert "calls 'factorial', which the program does not have" in issue.message
