"""Programs of OpenCL C: compilation by ocloc, their kernels, and launches on the engines."""

from __future__ import annotations

import io
import math
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from msgspec import Struct

from xegpu_py import oracles
from xegpu_py.engines.faults import RuntimeFault
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position, Source
from xegpu_py.opencl import abi
from xegpu_py.runtime.device_memory import DeviceMemory, HostMemory
from xegpu_py.runtime.executable import Options
from xegpu_py.runtime.host_arrays import Staged
from xegpu_py.runtime.launch import Grid, Launcher, Statistics
from xegpu_py.target import target as target_of
from xegpu_py.visa import assembly
from xegpu_py.visa.linking import link
from xegpu_py.visa.program import Destination, Dim, Immediate, Instruction, extent
from xegpu_py.visa.program import Program as VisaProgram
from xegpu_py.visa.verify import verify

DEVICES = {"pvcxt": "pvc", "bmg": "bmg", "cri": "cri"}
"""What ocloc calls each target that is supported."""

SECONDS = 60.0
"""The time limit of a compilation."""

MAX_SCRATCH = 1 << 30
"""The most bytes of private memory of a launch."""

CONSTANTS = (".data.const", ".data.const.string", ".data.global")
"""Sections of the binary that are memory of the program. Zeros follow the first and the last one (`.bss`)."""

_NAME = re.compile(r'^\.(?:kernel|global_function) "(.*)"', re.MULTILINE)

_LANES = re.compile(r"^\.kernel_attr SimdSize=(\d+)", re.MULTILINE)


class CompileError(Exception):
    """ocloc does not accept a program, or a package is missing. The message says what it printed."""


class LocalMemory(Struct, frozen=True):
    """An argument for a pointer to local memory: so many bytes of each workgroup's."""

    bytes: int


def local(nbytes: int) -> LocalMemory:
    """The argument for a `__local` pointer: the bytes that it points to, which each workgroup has for itself."""
    return LocalMemory(nbytes)


def compile(source: str | Path, target: str = "bmg", options: str = "", **others: Any) -> Program:
    """Compile OpenCL C or SPIR-V for a GPU by IGC, for the engines here.

    Args:
        source: a path of a file (`.cl`, `.spv`), or the text of a program.
        target: the GPU: "pvcxt", "bmg" or "cri".
        options: options of the compiler, such as "-DN=4 -cl-fast-relaxed-math".
        others: options of kernels: engine, check, threads and so on; see `Options`.

    Raises:
        CompileError: if ocloc does not accept it or is missing, or the extra `xegpu-py[opencl]` is.
        ValueError: if there is no such target, or it is not supported.
    """
    if target not in DEVICES:
        raise ValueError(f"'target' must be one of {', '.join(DEVICES)}, but got {target!r}")
    is_path = isinstance(source, Path) or ("\n" not in source and source.endswith((".cl", ".spv")))
    path = Path(source) if is_path else None
    data = path.read_bytes() if path else str(source).encode()
    binary, texts = _compiled(data, path, target, options)
    return Program(binary, texts, Options.from_keywords(target=target, **others), str(path or "<string>"))


def _compiled(data: bytes, path: Path | None, target: str, options: str) -> tuple[bytes, list[str]]:
    """The binary of a program, and the vISA of its kernels and functions in the order of their making."""
    ocloc = oracles.find("ocloc")
    if ocloc is None:
        raise CompileError("ocloc is not installed; `make oracles` installs it in build/oracles")
    name = path.name if path else "program.cl"
    include = f"-I{path.resolve().parent} " if path else ""
    # With -g the vISA names the lines of the source; its instructions stay the same.
    given = f"-g -cl-std=CL3.0 -cl-intel-greater-than-4GB-buffer-required {include}{options}"
    with TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(data)
        command = [ocloc, "compile", "-q", "-file", name, "-device", DEVICES[target], "-options", given]
        command += ["-spirv_input"] if name.endswith(".spv") else []
        try:
            done = subprocess.run(
                [*command, "-out_dir", "out"],
                cwd=folder,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SECONDS,
                env={**os.environ, "IGC_ShaderDumpEnable": "1", "IGC_DumpToCustomDir": f"{folder}/dump"},
            )
        except subprocess.TimeoutExpired:
            raise CompileError(f"ocloc did not end within {SECONDS:g} s") from None
        binaries = list(Path(folder).glob("out/*.bin"))
        if len(binaries) != 1:
            said = (done.stdout + done.stderr).partition("\nBuild failed with")[0].replace(f"{folder}/", "")
            # It calls the file 1.
            said = re.sub(r"^1(?=:\d+:\d+: )", str(path or name), said, flags=re.MULTILINE).strip()
            raise CompileError(f"ocloc does not accept the program:\n{said}")
        made = [p for p in Path(folder).glob("dump/*.visaasm") if ".inline." not in p.name]
        made.sort(key=lambda p: (p.stat().st_mtime_ns, p.name))
        texts = [p.read_text(errors="replace") for p in made]
        shown = str(path or "<string>")
        return binaries[0].read_bytes(), [t.replace(f"{folder}/{name}", shown) for t in texts]


class Program:
    """A compiled program; its kernels are its attributes: `program.saxpy[1024, 64](x, y, np.float32(2))`.

    Attributes:
        kernels: the kernels by their names.
    """

    def __init__(self, binary: bytes, texts: Sequence[str], options: Options, file: str) -> None:
        sections = _sections(binary)
        self._file, self._options = file, options
        self._texts = texts
        described = _yaml(sections[".ze_info"])
        # Constants come first in memory, so that their addresses are the same in all launches.
        self.memory = {name: bytearray(sections[name]) for name in CONSTANTS if name in sections}
        self.symbols: dict[str, tuple[str, int]] = _symbols(binary)
        self.unsupported = [name for name in sections if name.startswith((".bss", ".rel.data"))]
        kernels = [k for k in described.get("kernels", ()) if k["name"] != "Intel_Symbol_Table_Void_Program"]
        kernels.sort(key=lambda k: k["name"])
        named = {
            k["name"]: [a["name"] for a in sorted(k.get("args_info", ()), key=lambda a: int(a["index"]))]
            for k in described.get("kernels_misc_info") or ()
        }
        self.kernels = {k["name"]: Kernel(self, k, self._text(k), named.get(k["name"], [])) for k in kernels}

    def _text(self, described: Mapping[str, Any]) -> str:
        lanes = described["execution_env"]["simd_size"]
        found = [t for t in self._texts if (m := _NAME.search(t)) and m[1] == described["name"]]
        fitting = [t for t in found if (m := _LANES.search(t)) and int(m[1]) == lanes]
        return fitting[-1]

    def functions(self) -> list[VisaProgram]:
        """The functions that kernels may call."""
        texts = [t for t in self._texts if re.search(r"^\.global_function", t, re.MULTILINE)]
        return [p for text in texts for p in assembly.read(Source(text, self._file))]

    def __getattr__(self, name: str) -> Kernel:
        if name in self.__dict__.get("kernels", {}):
            found: Kernel = self.kernels[name]
            return found
        raise AttributeError(f"there is no kernel '{name}'; there are {', '.join(self.__dict__.get('kernels', {}))}")


class Kernel:
    """A kernel of a program; `kernel[global, local](...)` runs it.

    Attributes:
        name: its name.
        text: its vISA, as IGC printed it.
        names: the names of its arguments.
        stats: statistics of the last launch; None before.
    """

    def __init__(self, program: Program, described: Mapping[str, Any], text: str, names: Sequence[str]) -> None:
        self.names = names
        self._program, self._described, self.text = program, described, text
        self.name: str = described["name"]
        self._options = program._options
        self._launchers: dict[Any, Launcher] = {}
        self.stats: Statistics | None = None

    def __getitem__(self, size: Any) -> _Launch:
        """The kernel with a global and a local size: numbers of work items, each an integer or a tuple of up to three.

        Raises:
            TypeError, ValueError: if they are not, the local size does not divide the global one, or is too large.
        """
        if not isinstance(size, tuple) or len(size) != 2:
            raise TypeError(f"kernel '{self.name}' takes [global size, local size], but got {size!r}")
        items, block = extent(size[0], "global size"), extent(size[1], "local size")
        if any(n % b for n, b in zip(items, block)):
            raise ValueError(f"local size {block} must divide global size {items}")
        wanted = self._described["execution_env"].get("required_work_group_size")
        if wanted and tuple(wanted) != block:
            raise ValueError(f"kernel '{self.name}' requires local size {tuple(wanted)}, but got {block}")
        if math.prod(block) > 1024:
            raise ValueError(f"local size {block} has {math.prod(block)} work items; a workgroup has at most 1024")
        x, y, z = (n // b for n, b in zip(items, block))
        return _Launch(self, (x, y, z), block)

    def _source(self) -> Source:
        return Source(self.text, f"{self._program._file}:{self.name}.visaasm")

    def refusals(self) -> list[str]:
        """Unsupported features that the kernel needs; empty if it can run."""
        described = self._described
        found = [name for name in self._program.unsupported if described.get("payload_arguments")]
        kinds = [a["arg_type"] for a in described.get("payload_arguments", ())]
        known = ("arg_bypointer", "arg_byvalue", "const_base", "global_base", "printf_buffer")
        found += [k for k in kinds if k not in known and abi.dimensions(k, (1, 1, 1), (1, 1, 1)) is None]
        needed = {"const_base": ".data.const", "global_base": ".data.global"}
        used = [needed[k] for k in kinds if k in needed]
        found = [f for f in found if not f.startswith(".") or used]
        pointers = [a for a in described.get("payload_arguments", ()) if a["arg_type"] == "arg_bypointer"]
        spaces = ("global", "constant", "local")
        return found + [a["addrspace"] for a in pointers if a["addrspace"] not in spaces or a["addrmode"] == "bindful"]

    def launcher(self, grid: Dim, block: Dim, slm: int, scratch: tuple[int, int] | None, places: Places) -> Launcher:
        """The kernel ready to run with these sizes; kept for further launches."""
        key = (block, slm, scratch, grid if scratch else None, tuple(places.items()))
        if key in self._launchers:
            return self._launchers[key]
        options = self._options
        [plain] = assembly.read(self._source())
        issues = verify(plain, target_of(options.target))
        if issues:
            raise DiagnosticError([i.diagnostic() for i in issues], [self._source()])
        text = abi.prologue(self.text, plain, block, grid, scratch)
        [whole] = assembly.read(Source(text, self._source().name))
        linked = link(whole, self._program.functions())
        attributes = {**linked.attributes, "SLMSize": -(-slm // 1024)}
        barriers = self._described["execution_env"].get("barrier_count", 0)
        attributes.setdefault("NBarrierCnt", min(barriers, 32) if barriers > 1 else 0)
        made = replace(linked, attributes=attributes).with_instructions(
            [self._with_symbol(inst, places) for inst in linked.instructions]
        )
        self._launchers[key] = Launcher(made, options)
        return self._launchers[key]

    def _with_symbol(self, inst: Instruction, places: Places) -> Instruction:
        """An instruction that takes the address of a string as a move of it."""
        if inst.name != "faddr":
            return inst
        section, offset = self._program.symbols.get(inst["symbol"], ("", 0))
        if section not in places:
            message = f"'faddr' takes the address of '{inst['symbol']}', which is not supported"
            raise DiagnosticError([Diagnostic("error", message, inst.where)], [self._source()])
        to = inst["dst"]
        values = {"dst": Destination(to.var, to.row, to.col, 1), "src0": Immediate(places[section] + offset, "uq")}
        return Instruction("mov", values, 1, "M1_NM", where=inst.where)


Places = dict[str, int]
"""The addresses of the program's constants, strings and variables, by section."""


class _Launch(Struct, frozen=True):
    """A kernel with the extents of a launch; calling it runs it."""

    kernel: Kernel
    groups: Dim
    block: Dim

    def __call__(self, *arguments: Any) -> Statistics:
        """Run the kernel; arrays are changed in place.

        Args:
            arguments: those of the kernel: arrays for pointers, `local(bytes)` for pointers to local memory, and
                numbers or structures of numpy's types for values.

        Raises:
            TypeError, ValueError: if an argument does not fit.
            DiagnosticError: if the kernel cannot run here, or fails.
        """
        kernel, program = self.kernel, self.kernel._program
        described, env = kernel._described, kernel._described["execution_env"]
        refused = kernel.refusals()
        if refused:
            message = f"kernel '{kernel.name}' needs {', '.join(refused)}, which is not supported"
            raise DiagnosticError([Diagnostic("error", message, Position(program._file))])
        options = kernel._options
        passed = described.get("payload_arguments", ())
        if len(arguments) != len(kernel.names):
            listed = f"{len(kernel.names)} arguments ({', '.join(kernel.names)})"
            raise TypeError(f"kernel '{kernel.name}' takes {listed}, but got {len(arguments)}")
        native = options.engine in (None, "jit") and not options.check
        memory = HostMemory() if native else DeviceMemory()
        held = {name: memory.allocate(name, len(data)) for name, data in program.memory.items()}
        for name, buffer in held.items():
            memory.bytes_of(buffer)[:] = np.frombuffer(program.memory[name], np.uint8)
        places: Places = {name: buffer.address for name, buffer in held.items()}
        threads = -(-math.prod(self.block) // env["simd_size"]) * math.prod(self.groups)
        scratch = self._scratch(memory, threads)
        printer = memory.allocate("printf", 1 << 22) if any(a["arg_type"] == "printf_buffer" for a in passed) else None
        if printer:
            memory.bytes_of(printer)[:4].view(np.uint32)[0] = 4
        staged, values, slm = Staged(memory), {}, int(env.get("slm_size", 0))
        for number, argument in enumerate(arguments):
            title = f"argument '{kernel.names[number]}' of kernel '{kernel.name}'"
            own = [a for a in passed if a.get("arg_index") == number]
            if any(a["arg_type"] == "arg_bypointer" and a["addrspace"] != "local" for a in own):
                if not isinstance(argument, np.ndarray):
                    raise TypeError(f"{title} must be a numpy array, but got {type(argument).__name__}")
                plain = argument.view(np.uint8) if argument.dtype.fields else argument
                staged.add(str(number), np.atleast_1d(plain), title, kernel.names[number], True)
            elif any(a["arg_type"] == "arg_bypointer" for a in own):
                if not isinstance(argument, LocalMemory):
                    raise TypeError(f"{title} must be local memory, local(bytes), but got {type(argument).__name__}")
                slm = -(-slm // 64) * 64
                values[number] = slm.to_bytes(8, "little")
                slm += argument.bytes
        addresses = staged.addresses()
        payload = bytearray(max((a["offset"] + a["size"] for a in passed), default=0))
        for a in passed:
            payload[a["offset"] : a["offset"] + a["size"]] = self._bytes(
                a, arguments, addresses, values, places, printer.address if printer else 0
            )[: a["size"]]
        launcher = kernel.launcher(self.groups, self.block, slm, scratch, places)
        inputs = {
            i.var.name: bytes(i.size)
            if abi.is_local_id(launcher.program, i)
            else abi.argument_bytes(launcher.program, i, bytes(payload), options.target)
            for i in launcher.program.inputs
        }
        try:
            kernel.stats = launcher.run(Grid(self.groups, self.block), inputs, memory)
        except RuntimeFault as fault:
            where = fault.position if isinstance(fault.position, Position) else Position(program._file)
            notes = tuple(Diagnostic("note", n, where) for n in fault.notes)
            raise DiagnosticError([Diagnostic("error", fault.message, where, notes)]) from None
        staged.write_back(kernel.name)
        if printer:
            strings = held.get(".data.const.string")
            text = memory.bytes_of(strings).tobytes() if strings else b""
            print(printed(memory.bytes_of(printer).tobytes(), text, strings.address if strings else 0), end="")
        if ".data.global" in held:
            program.memory[".data.global"][:] = memory.bytes_of(held[".data.global"]).tobytes()
        return kernel.stats

    def _scratch(self, memory: DeviceMemory, threads: int) -> tuple[int, int] | None:
        parts = self.kernel._described.get("per_thread_memory_buffers", ())
        size = sum(p["size"] for p in parts if p.get("type") == "scratch")
        if not size:
            return None
        if size * threads > MAX_SCRATCH:
            raise ValueError(f"the launch needs {size * threads} bytes of private memory, more than {MAX_SCRATCH}")
        return memory.allocate("private memory", size * threads).address, size

    def _bytes(
        self,
        a: Mapping[str, Any],
        arguments: Sequence[Any],
        addresses: Mapping[str, bytes],
        values: Mapping[int, bytes],
        places: Places,
        printer: int,
    ) -> bytes:
        kind, number = a["arg_type"], a.get("arg_index", -1)
        if kind == "arg_byvalue":
            title = f"argument '{self.kernel.names[number]}' of kernel '{self.kernel.name}'"
            return abi.by_value(arguments[number], a["size"], a.get("source_offset", 0), title)
        if kind == "arg_bypointer":
            return values[number] if number in values else addresses[str(number)]
        given = {"printf_buffer": printer, "const_base": places.get(".data.const", 0)}
        given["global_base"] = places.get(".data.global", 0)
        if kind in given:
            return given[kind].to_bytes(8, "little")
        return abi.dimensions(kind, self.groups, self.block) or b""


_SCALARS = {1: "<b", 2: "<h", 3: "<i", 4: "<f", 6: "<q", 7: "<Q", 8: "<d"}
_VECTORS = {9: "<b", 10: "<h", 11: "<i", 12: "<q", 13: "<f", 14: "<d"}
_CONVERSION = re.compile(rb"%(?:%|[-+ #0]*\d*(?:\.\d+)?(?:v\d+)?(?:hh|hl|h|ll|l|j|z|t)?[a-zA-Z])")


def printed(data: bytes, strings: bytes, base: int) -> str:
    """The text of a buffer of printf.

    Args:
        data: the buffer: the offset after the last record, then records: the address of the format, then for each
            argument its kind and value.
        strings: the program's strings.
        base: their address.
    """

    def string(address: int) -> bytes:
        return strings[address - base :].split(b"\0", 1)[0] if base <= address < base + len(strings) else b"(null)"

    out, at, end = [], 4, min(int.from_bytes(data[:4], "little"), len(data))
    while at + 8 <= end:
        text = string(int.from_bytes(data[at : at + 8], "little"))
        at, last = at + 8, 0
        for m in _CONVERSION.finditer(text):
            out.append(text[last : m.start()])
            last = m.end()
            if m[0] == b"%%":
                out.append(b"%")
                continue
            kind, at = int.from_bytes(data[at : at + 4], "little"), at + 4
            if kind == 5:
                out.append(m[0] % string(int.from_bytes(data[at : at + 8], "little")))
                at += 8
                continue
            count = 1
            if kind in _VECTORS:
                count, at = int.from_bytes(data[at : at + 4], "little"), at + 4
            dtype = np.dtype({**_SCALARS, **_VECTORS}[kind])
            values = np.frombuffer(data, dtype, count, at)
            at += -(-count * dtype.itemsize // 4) * 4
            form = re.sub(rb"v\d+|hh|hl|ll|[hljzt](?=[a-zA-Z])", b"", m[0])
            out.append(b",".join(_formatted(form, v) for v in values))
        out.append(text[last:])
    return b"".join(out).decode(errors="replace")


def _formatted(form: bytes, value: Any) -> bytes:
    number = value.item() if isinstance(value, np.generic) else value
    if form.endswith(b"p"):
        return hex(int(number)).encode()
    if form[-1:] in b"uxXo" and number < 0:
        number += 1 << 8 * value.dtype.itemsize
    text: bytes = form.replace(b"u", b"d") % number
    return text


def _sections(binary: bytes) -> dict[str, bytes]:
    try:
        from elftools.elf.elffile import ELFFile
    except ImportError:
        raise CompileError("pyelftools is not installed; `pip install xegpu-py[opencl]` installs it") from None
    return {s.name: s.data() for s in ELFFile(io.BytesIO(binary)).iter_sections()}


def _symbols(binary: bytes) -> dict[str, tuple[str, int]]:
    """The section and the offset of each symbol."""
    from elftools.elf.elffile import ELFFile

    file = ELFFile(io.BytesIO(binary))
    table: Any = file.get_section_by_name(".symtab")
    found = {}
    for symbol in table.iter_symbols() if table else ():
        index = symbol["st_shndx"]
        if isinstance(index, int):
            found[symbol.name] = file.get_section(index).name, int(symbol["st_value"])
    return found


def _yaml(data: bytes) -> dict[str, Any]:
    try:
        import yaml
    except ImportError:
        raise CompileError("pyyaml is not installed; `pip install xegpu-py[opencl]` installs it") from None
    found: dict[str, Any] = yaml.safe_load(data)
    return found
