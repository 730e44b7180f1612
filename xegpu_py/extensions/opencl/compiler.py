"""Intel's compiler ocloc: OpenCL C or SPIR-V becomes vISA, with what `.ze_info` says of its kernels and their data."""

from __future__ import annotations

import io
import os
import re
import subprocess
import zlib
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import msgspec.yaml
from msgspec import Struct

from xegpu_py import external_tools
from xegpu_py.extensions.opencl import abi
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position, Severity, Source
from xegpu_py.visa.finalizer import DEVICES, package_of

_STEPPINGS = {"pvc": "pvc"}
"""The device to compile for where it is not the target's. For the first stepping IGC multiplies integers of 64 bits by
`mad`, which the verifier refuses, and stores more bytes than its variables have."""

DEFAULT = "bmg"
"""The target if none is named."""

SECONDS = 600.0
"""The time limit of a compilation, for a compiler that hangs: on a busy machine a large program takes minutes."""

SUFFIXES = (".cl", ".spv", ".bin")
"""Of files that are programs: OpenCL C, SPIR-V, and ocloc's binaries, which contain SPIR-V."""

_SEGMENTS = {
    ".data.const": "constant",
    ".bss.const": "constant",
    ".data.global": "global",
    ".bss.global": "global",
    ".data.const.string": "string",
}
"""The memory that each section of a binary is part of. Zeros of `.bss` follow what has initial values."""

_ADDRESS_BYTES = {1: 8, 2: 4, 3: 4}
"""The bytes of each type of relocation: of an address, of its lower and of its upper half."""

_MESSAGE = re.compile(
    r"(?P<file>[^\n:]+):(?P<line>\d+):(?P<column>\d+): (?:fatal )?(?P<kind>error|warning|note): (?P<text>.*)"
)

_INCLUDED = "included-from"
"""The name in ocloc's folder of the folder of the source, which may contain characters that ocloc does not accept."""

_ZEBIN = "-cl-intel-allow-zebin"
"""An internal option of IGC's: the binary is an ELF file with `.ze_info`, as IGC since 2.0 writes by default."""

_DUMPS = {"IGC_ShaderDumpEnable": "1", "IGC_ShaderDumpRegexFilter": r".*\.visaasm"}
"""Variables of IGC's: the vISA is written, and nothing else."""

_MAGIC = b"xegpu-py opencl 1\n"

LARGEST = 32 << 20
"""The largest size in bytes of a program in a file, uncompressed: some bytes of a file could fill all memory."""


class CompileError(DiagnosticError):
    """ocloc does not accept a program, or cannot run here."""


class Relocation(Struct, frozen=True):
    """A place in the program's memory that holds the address of a symbol.

    Attributes:
        segment: the memory: "constant" or "global".
        offset: where in it.
        kind: 1 for the address, 2 and 3 for its lower and upper 32 bits.
        symbol: the symbol.
    """

    segment: str
    offset: int
    kind: int
    symbol: str


class CompiledProgram(Struct, frozen=True):
    """The output of ocloc for a program: everything that running it takes.

    Attributes:
        file: the program's file, or "<string>".
        source: its text; empty if it is SPIR-V.
        target: the GPU.
        info: `.ze_info` of the binary.
        texts: the vISA of kernels and functions, in the order in which ocloc made it.
        memory: the initial bytes of the program's constants ("constant"), variables ("global") and strings ("string").
        symbols: the memory in which each symbol lies, and where in it.
        relocations: places in that memory that hold addresses.
    """

    file: str
    source: str
    target: str
    info: abi.Info
    texts: tuple[str, ...]
    memory: dict[str, bytes]
    symbols: dict[str, tuple[str, int]]
    relocations: tuple[Relocation, ...]

    def to_bytes(self) -> bytes:
        """The contents of a file; see `from_bytes`.

        Raises:
            CompileError: if the program has more than `LARGEST` bytes.
        """
        data = msgspec.msgpack.encode(self)
        if len(data) > LARGEST:
            raise failed(self.file, f"the program has {len(data)} bytes; files of programs hold at most {LARGEST}")
        return _MAGIC + zlib.compress(data, 9)

    @classmethod
    def from_bytes(cls, data: bytes, file: str) -> CompiledProgram:
        """Read the bytes that `to_bytes` wrote.

        Raises:
            CompileError: if it is anything else.
        """
        try:
            if data.startswith(_MAGIC):
                reader = zlib.decompressobj()
                payload = reader.decompress(data[len(_MAGIC) :], LARGEST)
                if reader.unconsumed_tail:
                    raise failed(file, f"the file holds more than {LARGEST} bytes, the most that a program can have")
                return msgspec.msgpack.decode(payload, type=cls)
        except (zlib.error, msgspec.DecodeError):
            pass
        raise failed(file, "the file is not a program that opencl.Program.save wrote")

    @classmethod
    def read(cls, path: Path) -> CompiledProgram:
        """Read a file of bytes that `to_bytes` wrote.

        Raises:
            CompileError: if the file holds anything else.
            OSError: if it cannot be read.
        """
        if path.exists() and not path.is_file():
            raise failed(str(path), "it is not a regular file")
        with path.open("rb") as file:
            return cls.from_bytes(file.read(LARGEST), str(path))


def failed(file: str, message: str) -> CompileError:
    """An error at a file."""
    return CompileError([Diagnostic("error", message, Position(file))])


def compiled(source: str | Path, target: str, options: str, ocloc: str | Path | None = None) -> CompiledProgram:
    """Compile a program by ocloc; arguments and errors are those of `opencl.compile`."""
    if target not in DEVICES:
        raise ValueError(f"'target' must be one of {', '.join(DEVICES)}, but got {target!r}")
    path = Path(source) if isinstance(source, Path) or is_path(source) else None
    name, data = str(path or "<string>"), path.read_bytes() if path else str(source).encode()
    is_spirv = path is not None and path.suffix in (".spv", ".bin")
    if path is not None and path.suffix == ".bin":
        data = _elf(data, name).get(".spv", (b"", 0))[0]
        if not data:
            raise failed(name, "the binary has no SPIR-V; ocloc's option -exclude_ir from bin leaves it out")
    text = "" if is_spirv else data.decode(errors="replace")
    program = _program(ocloc)
    if program is None:
        raise failed(
            name,
            f"{ocloc or 'ocloc'} is not installed; `make oracles` installs it in build/oracles{package_of('ocloc')}",
        )
    # With -g the vISA names the lines of the source; its instructions stay the same.
    default_options = "-g -cl-std=CL3.0 -cl-intel-greater-than-4GB-buffer-required"
    with TemporaryDirectory() as folder:
        file = f"{path.stem if path else 'program'}{'.spv' if is_spirv else '.cl'}"
        (Path(folder) / file).write_bytes(data)
        if path and not is_spirv:
            (Path(folder) / _INCLUDED).symlink_to(path.resolve().parent)
            default_options += f" -I{_INCLUDED}"
        command = [
            program,
            "compile",
            "-file",
            file,
            "-device",
            _STEPPINGS.get(target, DEVICES[target]),
            "-out_dir",
            "out",
        ]
        command += ["-spirv_input"] if is_spirv else []
        try:
            process = subprocess.run(
                [*command, "-options", f"{default_options} {options}", "-internal_options", _ZEBIN],
                cwd=folder,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SECONDS,
                env={**os.environ, **_DUMPS, "IGC_DumpToCustomDir": f"{folder}/dump"},
            )
        except subprocess.TimeoutExpired:
            raise failed(name, f"ocloc did not end within {SECONDS:g} s") from None
        except OSError as e:
            raise failed(name, f"cannot run '{program}': {e.strerror}") from None
        binaries = list(Path(folder).glob("out/*.bin"))

        def own(printed: str) -> str:
            """The output of ocloc, with the names of the user's files."""
            printed = printed.replace(f"{folder}/{file}", name).replace(f"{folder}/", "")
            return printed.replace(f"{_INCLUDED}/", f"{path.parent}/" if path else "")

        if len(binaries) != 1:
            raise _refusal(own(process.stdout + process.stderr), name, file, text)
        dumps = [p for p in Path(folder).glob("dump/*.visaasm") if ".inline." not in p.name]
        dumps.sort(key=lambda p: (p.stat().st_mtime_ns, p.name))
        texts = tuple(own(p.read_text(errors="replace")) for p in dumps)
        return _described(binaries[0].read_bytes(), CompiledProgram(name, text, target, abi.Info(), texts, {}, {}, ()))


def _program(ocloc: str | Path | None) -> str | None:
    """The compiler as an absolute path, or as a name that is looked for on PATH; None if it is not installed."""
    name = str(ocloc or "ocloc")
    if name in external_tools.ORACLES:
        return external_tools.find(name)
    return os.path.abspath(name) if os.sep in name else name


def is_path(source: str) -> bool:
    """Whether a text is the name of a program's file, and no program."""
    return "\n" not in source and source.endswith(SUFFIXES)


def _refusal(printed: str, name: str, file: str, text: str) -> CompileError:
    """The error for what ocloc printed of a program that it does not accept."""
    printed = re.split(r"^Build failed with", printed, flags=re.MULTILINE)[0]
    diagnostics: list[Diagnostic] = []
    for m in _MESSAGE.finditer(printed):
        kind: Severity = "error" if m["kind"] == "error" else "warning" if m["kind"] == "warning" else "note"
        # In debug information it calls the file 1.
        shown = name if m["file"] in ("1", file) else m["file"]
        one = Diagnostic(kind, m["text"], Position(shown, int(m["line"]), int(m["column"])))
        if kind == "note" and diagnostics:
            diagnostics[-1] = msgspec.structs.replace(diagnostics[-1], notes=(*diagnostics[-1].notes, one))
        else:
            diagnostics.append(one)
    if not any(d.severity == "error" for d in diagnostics):
        printed_text = " ".join(printed.split()) or "it printed nothing"
        diagnostics.append(Diagnostic("error", f"ocloc does not accept the program: {printed_text}", Position(name)))
    diagnostics.sort(key=lambda d: d.severity != "error")
    return CompileError(diagnostics, [Source(text, name)])


def _elf(binary: bytes, name: str) -> Mapping[str, tuple[bytes, int]]:
    """The contents and the size of each section; a section without contents has zeros."""
    elf = _opened(binary, name)
    return {s.name: (b"" if s["sh_type"] == "SHT_NOBITS" else s.data(), s["sh_size"]) for s in elf.iter_sections()}


def _opened(binary: bytes, name: str) -> Any:
    try:
        from elftools.common.exceptions import ELFError
        from elftools.elf.elffile import ELFFile
    except ImportError:
        raise failed(name, "pyelftools is not installed; `pip install xegpu-py[opencl]` installs it") from None
    try:
        return ELFFile(io.BytesIO(binary))
    except ELFError:
        raise failed(name, "the file is no ELF file, such as ocloc writes") from None


def _described(binary: bytes, compiled: CompiledProgram) -> CompiledProgram:
    """The result with what its binary says."""
    elf, sections = _opened(binary, compiled.file), _elf(binary, compiled.file)
    if ".ze_info" not in sections:
        raise failed(compiled.file, "the program has no kernel")
    try:
        info = msgspec.yaml.decode(sections[".ze_info"][0], type=abi.Info)
    except ImportError:
        raise failed(compiled.file, "pyyaml is not installed; `pip install xegpu-py[opencl]` installs it") from None
    memory: dict[str, bytes] = {}
    for section, segment in _SEGMENTS.items():
        data, size = sections.get(section, (b"", 0))
        if size:
            memory[segment] = memory.get(segment, b"") + (data or bytes(size))
    symbols = {}
    table = elf.get_section_by_name(".symtab")
    for entry in table.iter_symbols() if table else ():
        index = entry["st_shndx"]
        segment_name = _SEGMENTS.get(elf.get_section(index).name) if isinstance(index, int) else None
        if segment_name:
            symbols[entry.name] = segment_name, int(entry["st_value"])
    relocations = []
    for section, segment in _SEGMENTS.items():
        relocation_section = elf.get_section_by_name(f".rel{section}")
        for entry in relocation_section.iter_relocations() if relocation_section else ():
            symbol, kind = table.get_symbol(entry["r_info_sym"]).name, entry["r_info_type"]
            if symbol not in symbols or kind not in _ADDRESS_BYTES:
                raise failed(
                    compiled.file, f"a variable of the program holds the address of '{symbol}', not of a variable"
                )
            relocations.append(Relocation(segment, entry["r_offset"], kind, symbol))
    return msgspec.structs.replace(compiled, info=info, memory=memory, symbols=symbols, relocations=tuple(relocations))


def relocated(compiled: CompiledProgram, addresses: Mapping[str, int]) -> dict[str, bytes]:
    """The program's memory with the addresses in it, by segment.

    Args:
        addresses: where each segment lies.
    """
    segments = {segment: bytearray(data) for segment, data in compiled.memory.items()}
    for r in compiled.relocations:
        segment, offset = compiled.symbols[r.symbol]
        value = addresses[segment] + offset >> (32 if r.kind == 3 else 0)
        field = slice(r.offset, r.offset + _ADDRESS_BYTES[r.kind])
        contents = segments[r.segment]
        # The bytes there are the offset within the symbol, which is added.
        whole = int.from_bytes(contents[field], "little") + value
        contents[field] = (whole % (1 << 8 * _ADDRESS_BYTES[r.kind])).to_bytes(_ADDRESS_BYTES[r.kind], "little")
    return {segment: bytes(data) for segment, data in segments.items()}
