"""Kernels of test/extensions/opencl/recorded on both engines give what another implementation of OpenCL computes."""

from __future__ import annotations

import functools
import math
import re
import struct
import sys

import numpy as np
import pytest
import recordings
from effort import SHARE
from msgspec import structs

from xegpu_py import external_tools, opencl
from xegpu_py.extensions.opencl import abi, comparison, compiler
from xegpu_py.extensions.opencl.program import Program
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.runtime.options import Options
from xegpu_py.target import target as target_of

RECORDED = recordings.read()
SWEPT = SHARE == 1 and external_tools.find("ocloc")
"""Programs for all targets are compiled in `make sweep`."""

CASES = [(case, target) for case in recordings.cases() for target in (recordings.targets(case.file) if SWEPT else [""])]
"""Each kernel, and the targets for which it is compiled; none for what is recorded."""

WRONG = {("cri", "builtins_long"), ("cri", "builtins_ulong")}
"""IGC 2.40 stores the register of mul_hi of 64 bits before it is written."""


REPEATED = """
    arithmetic:operators_char arithmetic:operators_char16 arithmetic:operators_int arithmetic:operators_int4
    arithmetic:operators_long arithmetic:operators_long2 arithmetic:operators_short arithmetic:operators_uchar
    arithmetic:operators_uchar2 arithmetic:operators_uint8 arithmetic:operators_ulong arithmetic:operators_ulong4
    arithmetic:operators_ushort arithmetic:operators_ushort2 atomics:atomics_int atomics:histogram
    builtins:builtins_char builtins:builtins_int builtins:builtins_long builtins:builtins_short
    builtins:builtins_short4 builtins:builtins_uchar builtins:builtins_uint2 builtins:builtins_ulong
    builtins:builtins_ushort builtins:upsampled control_flow:classify control_flow:collatz
    conversions:between_vectors conversions:from_char conversions:from_double conversions:from_float
    conversions:from_half conversions:from_int conversions:from_long conversions:from_short conversions:from_uint
    conversions:from_ulong conversions:from_ushort float_functions:exact_float float_functions:exact_float4
    float_functions:extremes float_functions:geometry float_functions:near_float float_functions:parts floats:sines
    integers:divide_long integers:divide_unsigned private_memory:large_array private_memory:sorted
    reduction:reduce_sum subgroup_functions:group_double subgroup_functions:group_float
    subgroup_functions:group_half subgroup_functions:group_long tiles:matmul tiles:stencil vectors:shuffle_vectors
    vectors:swap_bytes work_items:ids workgroups:copied workgroups:duff workgroups:group_functions
    workgroups:records workgroups:sort_in_local_memory workgroups:two_arrays
"""
"""Kernels that execute no function of the package which the others do not: `make sweep` runs them."""


@functools.cache
def program(target: str, file: str) -> opencl.Program:
    # One thread orders what atomics return.
    if target:
        return opencl.compile(recordings.FOLDER / file, target=target, engine="both", threads=1)
    made = RECORDED.programs[file]
    return opencl.Program(made, Options(target=made.target, engine="both", threads=1))


@pytest.mark.sweep(*[f"{name}-recorded" for name in REPEATED.split()])
@pytest.mark.parametrize(("case", "target"), CASES, ids=[f"{c.name}-{t or 'recorded'}" for c, t in CASES])
def test_kernel(case: recordings.Case, target: str, capsys: pytest.CaptureFixture[str]) -> None:
    made, arguments = program(target, case.file), case.arguments()
    if (made.compiled.target, case.kernel) in WRONG:
        made = opencl.Program(made.compiled, Options(target="cri", check=("uninit",)))
        with pytest.raises(DiagnosticError, match="never written"):
            made.kernels[case.kernel][case.items, case.block](*arguments)
        return
    made.kernels[case.kernel][case.items, case.block](*arguments)
    results = RECORDED.results[case.name]
    for array, data in zip(recordings.arrays_of(arguments, made, case), results):
        assert not case.differs(array, np.frombuffer(data, array.dtype).reshape(array.shape))
    if printed := capsys.readouterr().out:
        assert sorted(printed.splitlines()) == sorted(results[-1].decode().splitlines())


def test_a_call_without_sizes_is_an_error():
    made = program("", "saxpy.cl")
    with pytest.raises(TypeError, match=re.escape("kernel 'saxpy' needs sizes: saxpy[global size, local size](...)")):
        made.kernels["saxpy"](np.zeros(64, np.float32), np.zeros(64, np.float32), np.float32(2))


def test_local_memory_is_given_by_its_size():
    made = program("", "workgroups.cl")
    kernel = made.kernels["scan"]
    number = next(i for i, p in enumerate(kernel.parameters) if p.address_qualifier == "__local")
    arguments = [np.zeros(64, np.int32)] * len(kernel.parameters)
    with pytest.raises(TypeError, match=re.escape(f"{kernel.title(number)} must be local memory, local(bytes), but")):
        kernel[64, 64](*arguments)


def test_a_binary_without_spirv(tmp_path):
    pytest.importorskip("elftools", reason="the extra 'opencl' is not installed")
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 1, 62, 1, 0, 0, 0, 0, 64, 0, 0, 64, 0, 0)
    (tmp_path / "a.bin").write_bytes(header)
    with pytest.raises(DiagnosticError, match="the binary has no SPIR-V; ocloc's option -exclude_ir from bin leaves"):
        opencl.compile(tmp_path / "a.bin")


def refused(message, source, **options):
    with pytest.raises(opencl.CompileError, match=re.escape(message)):
        opencl.compile(source, **options)


def test_programs_that_cannot_be_compiled(tmp_path, monkeypatch):
    pytest.importorskip("elftools", reason="the extra 'opencl' is not installed")
    (tmp_path / "a.bin").write_bytes(b"text")
    refused(f"{tmp_path}/a.bin: error: the file is no ELF file, such as ocloc writes", tmp_path / "a.bin")
    for script, message in (
        ("exec sleep 60", "<string>: error: ocloc did not end within 0.2 s"),
        ("mkdir out; echo text > out/k.bin", "<string>: error: the file is no ELF file, such as ocloc writes"),
        ("mkdir out; touch out/a.bin out/b.bin; echo no", "ocloc does not accept the program: no"),
    ):
        (tmp_path / "ocloc-own").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "ocloc-own").chmod(0o755)
        monkeypatch.setattr(compiler, "SECONDS", 0.2 if "sleep" in script else 60)
        refused(message, "", ocloc=tmp_path / "ocloc-own")
    refused("cannot run '/nowhere/ocloc': No such file or directory", "", ocloc="/nowhere/ocloc")
    monkeypatch.setitem(sys.modules, "elftools.elf.elffile", None)
    refused("pyelftools is not installed; `pip install xegpu-py[opencl]` installs it", tmp_path / "a.bin")
    (tmp_path / "a.clp").write_bytes(b"text")
    with pytest.raises(opencl.CompileError, match="a.clp: error: the file is not a program that opencl.Program.save"):
        opencl.load(tmp_path / "a.clp")


def test_kernels_without_visa_of_their_lanes():
    whole = RECORDED.programs["saxpy.cl"]
    [info] = [k for k in whole.info.kernels if k.name == "saxpy"]
    lanes = info.execution_env.simd_size
    other = tuple(text.replace(f"SimdSize={lanes}", "SimdSize=1") for text in whole.texts)
    for texts in ((), other):
        with pytest.raises(opencl.CompileError, match=f"ocloc printed no vISA of {lanes} lanes for kernel 'saxpy'"):
            opencl.Program(structs.replace(whole, texts=texts), Options(target=whole.target))
    # The last one counts: IGC compiles a kernel again whose registers do not suffice.
    texts = (*(text.replace("mad", "add") for text in whole.texts), *whole.texts, *other)
    assert opencl.Program(structs.replace(whole, texts=texts), Options(target=whole.target)).saxpy.text in whole.texts


def test_sizes_of_local_memory():
    """All of a workgroup's, and no byte more."""
    kernel = program("", "workgroups.cl").scan
    most = target_of(kernel.options.target).slm_bytes - kernel.info.execution_env.slm_size
    kernel[64, 64].ready((Y, Y.copy(), opencl.local(most)))
    with pytest.raises(ValueError, match=f"kernel 'scan' needs {most + 1} bytes of local memory, more than {most}"):
        kernel[64, 64].ready((Y, Y.copy(), opencl.local(most + 1)))


@pytest.mark.parametrize(
    ("sizes", "offsets", "slm"),
    [
        # Each array begins at a multiple of its elements' size, behind those before it and the kernel's own 32 bytes.
        ((4, 8), (0, 8), 16), ((5, 8), (0, 8), 16), ((8, 8), (0, 8), 16), ((9, 8), (0, 16), 24),
        ((1024, 1), (0, 1024), 1025), ((989, 3), (0, 992), 995),
    ],
)  # fmt: skip
def test_arrays_in_local_memory(sizes, offsets, slm):
    kernel = program("", "workgroups.cl").two_arrays
    arguments = (X, X.copy(), *map(opencl.local, sizes), np.int32(1))
    launch = kernel[64, 64].ready(arguments)
    names = {offset: name for name, offset in kernel.inputs.items()}
    payload = [a.offset for a in kernel.info.payload_arguments if a.addrspace == "local"]
    data = [int.from_bytes(launch.prepared.values[names[at]], "little") for at in payload]
    own = kernel.info.execution_env.slm_size
    assert own == 32 and data == list(offsets)
    attributes = launch.version.program.attributes
    assert attributes["SLMSize"] == -(-(own + slm) // 1024) and attributes["SLMBytes"] == -(-(own + slm) // 8) * 8


@pytest.mark.parametrize(("count", "named"), [(0, 0), (1, 0), (2, 2), (31, 31), (32, 32), (33, 32)])
def test_named_barriers(count, named):
    """The one barrier of a workgroup needs no name."""
    recorded = RECORDED.programs["saxpy.cl"]
    kernels = [
        structs.replace(k, execution_env=structs.replace(k.execution_env, barrier_count=count))
        for k in recorded.info.kernels
    ]
    changed = structs.replace(
        recorded, info=structs.replace(recorded.info, kernels=type(recorded.info.kernels)(kernels))
    )
    kernel = opencl.Program(changed, Options(target=recorded.target)).saxpy
    launch = kernel[64, 64].ready((X, X.copy(), np.float32(2)))
    assert launch.version.program.attributes.get("NBarrierCnt", 0) == named


COUNTING = """.version 3.8
.kernel "counting"
.decl Base v_type=G type=uq num_elts=1 align=qword
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl At v_type=G type=uq num_elts=1 align=GRF
.input Base offset={}
.input Out offset={}
.kernel_attr SimdSize=16
.function "_main_0"
_main_0:
mov (M1, 1) At(0,0)<1> Base(0,0)<0;1,0>
shl (M1, 1) At(0,0)<1> At(0,0)<0;1,0> 0x2:ud
add (M1, 1) At(0,0)<1> At(0,0)<0;1,0> Out(0,0)<0;1,0>
lsc_atomic_iinc.ugm (M1_NM, 1) %null.0:d32 flat[At]:a64 %null.0 %null.0
ret (M1, 1)
"""


@pytest.mark.parametrize("groups", [(1, 1, 1), (5, 1, 1), (1, 4, 1), (1, 1, 3), (2, 3, 4)])
@pytest.mark.parametrize("block", [(16, 1, 1), (40, 1, 1), (8, 3, 2)])
def test_each_thread_of_a_grid_has_private_memory_of_its_own(groups, block):
    """Each counts at its part of memory of one byte for each thread."""
    grf = target_of("bmg").grf_bytes
    program = Kernel.from_assembly(COUNTING.format(f"{grf} size=8", f"{grf + 8} size=8"), target="bmg").program
    counting = abi.prologue(program, target_of("bmg"), block, groups, [abi.Private(0, 1, "Base")])
    threads = -(-math.prod(block) // 16)
    counts = np.zeros(threads * math.prod(groups) + 8, np.int32)
    Kernel(counting, target="bmg")(0, counts, grid=groups, block=math.prod(block))
    assert counts.tolist() == [1] * (counts.size - 8) + [0] * 8


def test_a_program_is_saved_and_loaded(tmp_path):
    whole = RECORDED.programs["saxpy.cl"]
    Program(whole, Options(target=whole.target)).save(tmp_path / "saxpy.clp")
    found = opencl.load(tmp_path / "saxpy.clp")
    assert found.compiled == whole and "saxpy" in found.kernels


def test_programs_are_compared_without_ocloc():
    """A recorded program and itself, or itself with another instruction, which the comparison finds by its line."""
    whole = RECORDED.programs["saxpy.cl"]
    a = np.arange(64, dtype=np.float32)
    call = comparison.Call("saxpy", (a, np.ones(64, np.float32), np.float32(2)), 64)
    options = Options(target=whole.target)
    for old, new, arrays, failures in (
        ("mad", "mad", [], [False, False]),
        ("mad (M1, 32) V0072(0,0)<1> V0036(0,0)<0;1,0>", "mad (M1, 32) V0072(0,0)<1> (-)V0036(0,0)<0;1,0>", ["y"],
         [False, False]),
        ("shl (M1, 32)", "shl.nothing (M1, 32)", [], [False, True]),
    ):  # fmt: skip
        assert all(old in text for text in whole.texts if '"saxpy"' in text)
        other = structs.replace(whole, texts=tuple(text.replace(old, new) for text in whole.texts))
        found = comparison._compared(call, [whole, other], ("one", "other"), options)
        assert [*found.arrays] == arrays and [f is not None for f in found.failures or (None, None)] == failures
        assert [s and s.line for s in found.stores] == ([3, 3] if arrays else [None, None])
        assert [d.values for d in found.arrays.values()] == ([("3.0", "-1.0")] if arrays else [])
    assert (a == np.arange(64)).all(), "copies of arrays are compared"
    with pytest.raises(ValueError, match="there is no kernel 'no'; there are saxpy"):
        comparison._compared(structs.replace(call, kernel="no"), [whole, whole], ("one", "other"), options)


X, Y = np.zeros(64, np.float32), np.zeros(64, np.int32)


@pytest.mark.parametrize(
    ("file", "name", "size", "arguments", "message"),
    [
        ("saxpy.cl", "saxpy", (64, 64), (X, X), r"takes 3 arguments \(.*float\* x, float\* y, .*\), but got 2"),
        ("saxpy.cl", "saxpy", (64, 64), (X, X, 2), "argument '.*' of kernel 'saxpy' must be a number of numpy's"),
        ("saxpy.cl", "saxpy", (64, 64), (X, Y, np.float32(2)), r"is float\*, an array of float32, but got an array of"),
        ("saxpy.cl", "saxpy", (64, 64), (X, X, np.float64(2)), "is float, a number of type float32, but got one of"),
        ("saxpy.cl", "saxpy", 64, (X, X, opencl.local(4)), "argument '.*' of kernel 'saxpy' must be"),
        ("workgroups.cl", "scan", (64, 64), (Y, Y, Y), "must be local memory, local.bytes., but got ndarray"),
        ("workgroups.cl", "scan", (64, 64), (Y, Y, opencl.local(10**6)), "'scan' needs 1000.* bytes of local memory"),
    ],
)
def test_arguments_that_do_not_fit(file, name, size, arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        program("", file).kernels[name][size](*arguments)


def test_a_program_has_its_kernels_and_one_target():
    made = program("", "saxpy.cl")
    with pytest.raises(AttributeError, match="there is no kernel 'nothing'; there are saxpy"):
        _ = made.nothing
    assert made.saxpy is made.kernels["saxpy"] and made.for_target(made.compiled.target) is made
    with pytest.raises(ValueError, match=f"program 'saxpy.cl' was compiled for {made.compiled.target}, not any"):
        made.for_target("any")
    with pytest.raises(ValueError, match="'engine' must not be 'reference', which evaluates MLIR"):
        opencl.compile("", engine="reference")


@pytest.mark.parametrize(
    ("kind", "space", "message"),
    [("arg_bypointer", "image", "needs images, which no engine has"),
     ("arg_bypointer", "sampler", "needs samplers, which no engine has"),
     ("rt_global_buffer", "", "needs arguments of kind rt_global_buffer, which no engine has")],
)  # fmt: skip
def test_what_no_engine_has(kind, space, message):
    whole = RECORDED.programs["saxpy.cl"]
    own = structs.replace(whole, info=structs.replace(whole.info, kernels=[structs.replace(k, payload_arguments=[
        *k.payload_arguments, abi.Argument(arg_type=kind, addrspace=space, offset=256, size=8)
    ]) for k in whole.info.kernels]))  # fmt: skip
    with pytest.raises(DiagnosticError, match=f"kernel 'saxpy' {message}"):
        _ = opencl.Program(own, Options(target=own.target)).kernels["saxpy"].program


def test_variables_of_a_program_keep_their_values():
    """Through launches, of this kernel and of others; each program has its own."""
    whole = RECORDED.programs["constants.cl"]
    segment, at = whole.symbols["counter"]
    made, other = (opencl.Program(whole, Options(target=whole.target, engine="interpreter")) for _ in range(2))
    for launches in (1, 2):
        out = np.zeros(1, np.int32)
        made.globals[64, 32](out)
        made.table[64, 32](Y, Y)
        assert np.frombuffer(made._memory[segment], np.int32, 1, at)[0] == 5 + 64 * launches and out[0] == 1
    other.table[64, 32](Y, Y)
    assert np.frombuffer(other._memory[segment], np.int32, 1, at)[0] == 5
