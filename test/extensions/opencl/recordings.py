"""Recorded kernels, what IGC made of them for each target, and what another implementation of OpenCL computes.

A comment `// RUN kernel ARG... global=X,Y,Z local=X,Y,Z` says how a kernel runs, see `opencl.stated_calls`. `ulp=N` and
`close=X` say by how much floats may differ; otherwise bits are equal.

    python test/extensions/opencl/recordings.py [FILE.cl...]

compiles the kernels of the named files, or of all, by ocloc, runs them on the CPU by the implementations of OpenCL that
pyopencl finds (Intel's of `pip install intel-opencl-rt intel-cmplr-lib-rt`, or pocl), prints which kernels each cannot
run and in which their results differ, and writes the folder
`recorded/recorded`. Tests then need neither a compiler nor another implementation.
"""

from __future__ import annotations

import lzma
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import msgspec
import numpy as np

from xegpu_py import opencl
from xegpu_py.extensions.opencl.compiler import CompiledProgram
from xegpu_py.extensions.opencl.program import LocalMemory
from xegpu_py.runtime.host_arrays import copy_of
from xegpu_py.target import TARGETS
from xegpu_py.visa.finalizer import DEVICES

FOLDER = Path(__file__).parent / "recorded"
RECORDED = FOLDER / "recorded"
Array = np.ndarray[Any, np.dtype[Any]]


class Case(msgspec.Struct, frozen=True):
    """A kernel with its arguments."""

    file: str
    call: opencl.Call

    @property
    def kernel(self) -> str:
        return self.call.kernel

    @property
    def name(self) -> str:
        return f"{self.file.removesuffix('.cl')}:{self.kernel}"

    @property
    def items(self) -> Any:
        return self.call.items

    @property
    def block(self) -> Any:
        return self.call.local

    def arguments(self) -> list[Any]:
        """New arguments."""
        return [copy_of(a) if isinstance(a, np.ndarray) else a for a in self.call.arguments]

    def differs(self, found: Array, wanted: Array) -> str:
        """How two results of an array differ; empty if they do not."""
        a, b = found.ravel(), wanted.ravel()
        if a.dtype.kind not in "f":
            bad = np.flatnonzero(a.view(f"u{a.itemsize}") != b.view(f"u{b.itemsize}"))
        else:
            bits = f"i{a.itemsize}"
            same = (a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))
            if ulp := self.call.limits.get("ulp"):
                same |= np.abs(a - b) <= ulp * np.spacing(np.abs(b), dtype=b.dtype)
            if close := self.call.limits.get("close"):
                same |= np.isclose(a, b, close, close)
            bad = np.flatnonzero(~same)
        if not len(bad):
            return ""
        shown = ", ".join(f"{i}: {a[i]!r} for {b[i]!r}" for i in bad[:4])
        return f"{len(bad)} of {len(a)} elements differ: {shown}"


def cases() -> list[Case]:
    """All of them, by file."""
    paths = sorted(FOLDER.glob("*.cl"))
    return [Case(path.name, call) for path in paths for call in opencl.stated_calls(path.read_text(), path.name)]


def targets(file: str) -> list[str]:
    """The targets for which IGC compiles a file: one without f64 and with matrices of 8 columns not all of them."""
    text = (FOLDER / file).read_text()
    return [t for t in DEVICES if TARGETS[t].double_math or not re.search(r"double|_matrix_mad_", text)]


class Recording(msgspec.Struct):
    """What is recorded: the program of each file for one target, and the results of kernels by name: the bytes of their
    arrays, then what they print."""

    programs: dict[str, CompiledProgram]
    results: dict[str, list[bytes]]


def read() -> Recording:
    """What was recorded last."""
    return msgspec.msgpack.decode(lzma.decompress(RECORDED.read_bytes()), type=Recording)


# What no implementation for CPUs has, by numpy.


def _matrices_of_bytes(a: Array, b: Array, c: Array) -> list[Array]:
    rows = a.view(np.int8).reshape(16, 8, 2).transpose(1, 0, 2).reshape(8, 32).astype(int)
    columns = b.view(np.int8).reshape(16, 32).T.astype(int)
    return [a, b, (rows @ columns + 1).T.astype(np.int32).ravel()]


def _matrices_of_bf16(a: Array, b: Array, c: Array) -> list[Array]:
    # Blocks are read row by row; a row of B holds two rows of the matrix, side by side.
    columns = b.reshape(8, 16, 2).transpose(0, 2, 1).reshape(16, 16).astype(np.float32)
    return [a, b, (a.reshape(8, 16).astype(np.float32) @ columns + np.float32(0.5)).ravel()]


def _bf16(a: Array, out: Array, back: Array) -> list[Array]:
    return [a, a.astype(ml_dtypes.bfloat16).view(np.uint16), a.astype(ml_dtypes.bfloat16).astype(np.float32)]


def _saturated(a: Array, b: Array, out: Array) -> list[Array]:
    """Products and sums as Python's integers: Intel's implementation for CPUs has some wrong."""
    limits = np.iinfo(out.dtype)
    whole = [int(x) * int(y) + int(z) for x, y, z in zip(a, b, b << b.dtype.type(1))]
    return [a, b, np.array([min(max(n, limits.min), limits.max) for n in whole], out.dtype)]


BY_NUMPY: dict[str, Callable[..., list[Array]]] = {
    "multiply_s8": _matrices_of_bytes,
    "multiply_bf16": _matrices_of_bf16,
    **{f"saturated_{kind}": _saturated for kind in ("char", "ushort", "int", "uint")},
    "as_bf16": _bf16,
}


# Recording.


def arrays_of(arguments: Sequence[Any], program: opencl.Program, case: Case) -> list[Array]:
    """The arguments that are memory."""
    pointers = [p.type.endswith("*") for p in program.kernels[case.kernel].parameters]
    return [a for a, is_pointer in zip(arguments, pointers) if is_pointer and isinstance(a, np.ndarray)]


def vendors() -> None:
    """Let pyopencl find Intel's implementation of pip too, before it looks."""
    folder = Path(tempfile.mkdtemp())
    for icd in Path("/etc/OpenCL/vendors").glob("*.icd"):
        (folder / icd.name).write_text(icd.read_text())
    for library in Path(sys.prefix, "lib").glob("libintelocl.so"):
        (folder / "intel.icd").write_text(f"{library}\n")
    os.environ.setdefault("OCL_ICD_VENDORS", str(folder))


class Peer:
    """Another implementation of OpenCL."""

    def __init__(self, cl: Any, device: Any) -> None:
        self.cl, self.name = cl, device.platform.name
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.programs: dict[str, Any] = {}

    def build(self, source: str, *options: str) -> str:
        """Build a program; why it cannot be built, or an empty text."""
        try:
            self.programs[source] = self.cl.Program(self.context, source).build(["-cl-std=CL3.0", "-w", *options])
        except Exception as e:
            errors = re.findall("error: .*", str(e)) or ["error"]
            return f"{len(errors)} errors, such as {errors[0][:90]}"
        return ""

    def run(self, source: str, case: Case, pointers: Sequence[bool], arguments: Sequence[Any]) -> list[Array]:
        """The arrays of the case after its run; `pointers` says which arguments are memory."""
        cl = self.cl
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        passed: list[Any] = []
        held: list[tuple[Array, Any]] = []
        kernel = getattr(self.programs[source], case.kernel)
        for a, is_pointer in zip(arguments, pointers):
            if isinstance(a, LocalMemory):
                passed.append(cl.LocalMemory(a.bytes))
            elif is_pointer:
                held.append((a, cl.Buffer(self.context, flags, hostbuf=np.ascontiguousarray(a).view(np.uint8))))
                passed.append(held[-1][1])
            else:
                passed.append(a)
        kernel(self.queue, case.items, case.block, *passed)
        for array, buffer in held:
            cl.enqueue_copy(self.queue, array.view(np.uint8), buffer)
        self.queue.finish()
        return [array for array, _ in held]


def devices() -> list[Any]:
    import pyopencl as cl

    found = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    return sorted(found, key=lambda device: "Intel" not in device.platform.name)


def _answer(number: int, file: str, to: Path) -> None:
    """Run the cases of a file on a device, in a process of its own, which others' compilers may end."""
    import pyopencl as cl

    device = devices()[number]
    peer, source = Peer(cl, device), (FOLDER / file).read_text()
    answers: dict[str, list[bytes]] = {"name": [device.platform.name.encode()]}
    if why := peer.build(source):
        print(f"{file}: {peer.name}: {why}", file=sys.stderr)
        return
    pointers = msgspec.json.decode(os.environ["POINTERS"])
    for case in (c for c in cases() if c.file == file):
        try:
            answers[case.name] = [a.tobytes() for a in peer.run(source, case, pointers[case.kernel], case.arguments())]
        except cl.Error as e:
            print(f"{case.name}: {peer.name}: {str(e).splitlines()[0][:100]}", file=sys.stderr)
        to.write_bytes(msgspec.msgpack.encode(answers))


def _answers(number: int, file: str, program: opencl.Program) -> dict[str, list[bytes]]:
    """What a device computes, by the names of the cases, and what it prints."""
    pointers = {n: [p.type.endswith("*") for p in k.parameters] for n, k in program.kernels.items()}
    with tempfile.TemporaryDirectory() as folder:
        to = Path(folder) / "answers"
        done = subprocess.run(
            [sys.executable, "-W", "ignore", __file__, str(number), file, str(to)],
            env={**os.environ, "POINTERS": msgspec.json.encode(pointers).decode()},
            stdout=subprocess.PIPE,
        )
        if done.returncode:
            print(f"{file}: device {number} ended with status {done.returncode}", file=sys.stderr)
        found: dict[str, list[bytes]] = msgspec.msgpack.decode(to.read_bytes()) if to.exists() else {}
        return found | {"printed": [done.stdout]}


def main(wanted: Sequence[str]) -> None:
    """Record the programs and results of some files; of all if none is named."""
    vendors()
    files = sorted({c.file for c in cases()})
    made = read() if wanted else Recording({}, {})
    made.programs = {f: p for f, p in made.programs.items() if f in files}
    made.results = {c.name: made.results[c.name] for c in cases() if c.name in made.results}
    for number, file in enumerate(files):
        if not wanted or file in wanted:
            program = opencl.compile(FOLDER / file, target=targets(file)[-1 - number % len(targets(file))])
            made.programs[file] = msgspec.structs.replace(program.compiled, file=file, source="")
            answers = [_answers(number, file, program) for number in range(len(devices()))]
            for case in (c for c in cases() if c.file == file):
                results = {a["name"][0].decode(): a[case.name] for a in answers if case.name in a}
                memory = arrays_of(case.arguments(), program, case)
                if case.kernel in BY_NUMPY:
                    results = {"numpy": [a.tobytes() for a in BY_NUMPY[case.kernel](*memory)], **results}
                if not results:
                    print(f"{case.name}: no result to compare with", file=sys.stderr)
                    continue
                first, *others = results
                made.results[case.name] = results[first]
                for other in others:
                    for a, x, y in zip(memory, results[other], results[first]):
                        if why := case.differs(*(np.frombuffer(data, a.dtype) for data in (x, y))):
                            print(f"{case.name}: {other} differs from {first}: {why}", file=sys.stderr)
                if not memory or "printf" in (FOLDER / file).read_text():
                    made.results[case.name].append(answers[0]["printed"][0])
    RECORDED.write_bytes(lzma.compress(msgspec.msgpack.encode(made), preset=9 | lzma.PRESET_EXTREME))
    print(f"{len(made.results)} kernels, {RECORDED.stat().st_size} bytes", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1].isdecimal():
        _answer(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
    else:
        main(sys.argv[1:])
