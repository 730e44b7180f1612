"""Intel's finalizers: vISA assembly to native ISA.

`GenX_IR` compiles the text itself. IGC since 2.0 has no such program: its compiler of OpenCL C, `ocloc`, gets the text
as the inline assembly of a kernel.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from signal import SIGSEGV
from tempfile import TemporaryDirectory

from xegpu_py import external_tools
from xegpu_py.numerics.formats import TYPES
from xegpu_py.target import TARGETS

_PACKAGES = {"GenX_IR": "libigc-tools", "ocloc": "intel-ocloc"}
"""Debian's packages of finalizers."""


def package_of(name: str) -> str:
    """The end of a message that a finalizer is missing: Debian's package, if there is one."""
    return f"; Debian has {name} in the package {_PACKAGES[name]}" if name in _PACKAGES else ""


OPTIONS = ("-enableHalfLSC",)
"""Messages of half the lanes, which Intel's compiler uses. Without them, the registers of each message are those of 16
(dg2) or 32 lanes, more than its compiler declares for 8 or 16."""

SECONDS = 20.0

_INSTRUCTIONS = re.compile(r"^//\.instCount (\d+)", re.MULTILINE)

_TOTAL = re.compile(r"^//\.thread_config numGRF=(\d+)", re.MULTILINE)

_SPILLED = re.compile(r"^//\.spill size (\d+)", re.MULTILINE)

_GRF_BYTES = re.compile(r"^//\.declare BuiltInR0 .*\bsize=(\d+)", re.MULTILINE)

_DECLARED = re.compile(
    r"^//\.declare (?P<name>\S*) +\(\d+\) +rf=r size=(?P<bytes>\d+) type=(?P<type>\w+) .*"
    r"\(r(?P<register>\d+)\.(?P<element>\d+)\)",
    re.MULTILINE,
)

_CODE = re.compile(r"^(?!//)[^/\n]*", re.MULTILINE)

_NAMED = re.compile(r"\br(\d+)(?:\.\d+|:(\d+)(?!\w))?")

_ALWAYS = ("%", "BuiltIn", "Builtin", "implBufPtr", "localIdBufPtr")
"""Prefixes of the names of variables that it lists for every kernel, used or not."""


_LINE = re.compile(r"near line (\d+)")

_VIOLATING = re.compile(r"Violating Instruction: *(.*?) *(?:///.*)?$", re.MULTILINE)

_NOISE = re.compile(
    r"!!!|^(Found a total|---|Instruction / Operand|Instruction variables' decls|\.decl |Error in CISA routine"
    r"|Diagnostics:|Violating Instruction|Please check|for the exact error|error: parsing vISA|error: backend compiler"
    r"|Build failed with|Command was|\S*errors\.txt)| -output$"
)
"""Lines of their output that say nothing about the kernel."""

_DIRECTIVES = (".version", ".kernel", ".input", ".implicit_")
"""Beginnings of the lines that inline assembly does without."""

_INPUT = re.compile(
    r"^\.(?:input|implicit_(?P<kind>\w+)) (?P<name>\S+) offset=(?P<offset>\d+) size=(?P<size>\d+)", re.MULTILINE
)

_IMPLICIT = {
    "LOCAL_SIZE": "get_local_size({})",
    "GROUP_COUNT": "get_num_groups({})",
    "LOCAL_ID": "sub_group_broadcast(get_local_id({}), 0)",
}
"""OpenCL C's expressions for an implicit input, for each of three dimensions."""

_INTEGERS = {1: ("ub", "uint"), 2: ("uw", "uint"), 4: ("ud", "uint"), 8: ("uq", "ulong")}
"""By bytes, the type whose bits are copied from an argument, and that of the number of these bits in OpenCL C."""

_C_TYPES = {
    "ub": "uchar",
    "b": "char",
    "uw": "ushort",
    "w": "short",
    "ud": "uint",
    "d": "int",
    "uq": "ulong",
    "q": "long",
    "hf": "ushort",
    "bf": "ushort",
    "f": "float",
    "df": "double",
}
"""The type of a parameter in OpenCL C. That of 16-bit floats is their bits: `half` is not a parameter's type."""

_DUMPS = {"IGC_ShaderDumpEnable": "1", "IGC_DisableRecompilation": "1", "IGC_VISAOptions": " ".join(OPTIONS)}
"""Variables of IGC's: native code is written, of one compilation only, even if it spills, with the same options."""

LONGEST = 256 << 10
"""The most bytes of inline assembly: one instruction of SPIR-V, of 65,535 words, holds it."""

_TOO_LONG = "Can't encode instruction with word count greater than"
"""ocloc's error for longer assembly."""

_UNDECODED = "<<error formatting instruction"
"""Listing of an instruction that Intel's own decoder does not know."""

_INLINED = "/// Inlined ASM\n{\n"
"""Marker before the inline assembly in IGC's text."""


class FinalizerError(Exception):
    """The finalizer rejects the text or is not installed. The message says which and why.

    Attributes:
        line: the line of the assembly that it names, counted from 1; None if it names none.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class KernelTooLong(FinalizerError):
    """The assembly exceeds `LONGEST`, which limits the finalizers that read it as inline assembly."""


class FinalizerMissing(FinalizerError):
    """No finalizer is installed, or not the one that was asked for."""


@dataclass(frozen=True)
class Native:
    """The output of the finalizer for one kernel.

    Attributes:
        text: native ISA, as it prints it.
        instructions: number of native instructions.
        registers: number of registers used: those in which its variables lie, and those that instructions name. It
            prints no such number, so this one is counted in what it prints.
        total_registers: registers that a thread has.
        spill_bytes: bytes spilled to memory; 0 where it prints nothing about them.
        binary: the file that a driver launches (zebin, an ELF file), of ocloc; empty of the others.
    """

    text: str
    instructions: int
    registers: int
    total_registers: int
    spill_bytes: int
    binary: bytes = b""


@dataclass(frozen=True)
class Finalizer:
    """One of Intel's finalizers.

    Attributes:
        platforms: its name of each target that it knows.
        command: its arguments for a platform and a number of registers, None for the usual one.
        inline: whether it reads OpenCL C with inline assembly, `kernel.cl`, and not assembly, `kernel.visaasm`.
    """

    platforms: Mapping[str, str]
    command: Callable[[str, int | None], Sequence[str]]
    inline: bool


def _genx(platform: str, registers: int | None) -> Sequence[str]:
    size = ["-TotalGRFNum", str(registers)] if registers else []
    return ["kernel.visaasm", "-platform", platform, *size, *OPTIONS, "-output"]


def _ocloc(device: str, registers: int | None) -> Sequence[str]:
    size = f" -cl-intel-{registers}-GRF-per-thread" if registers else ""
    return [
        "compile",
        "-q",
        "-file",
        "kernel.cl",
        "-device",
        device,
        "-options",
        f"-cl-std=CL3.0{size}",
        "-out_dir",
        "out",
    ]


DEVICES = {"pvc": "pvc-xl-a0", "pvcxt": "pvc", "dg2": "dg2", "bmg": "bmg", "lnl": "lnl", "ptl": "ptl", "cri": "cri"}
"""The GPUs that ocloc compiles for, and its names of them."""

FINALIZERS = {
    "ocloc": Finalizer({t: device for t, device in DEVICES.items() if t != "dg2"}, _ocloc, True),
    "GenX_IR-2024": Finalizer({"pvc": "PVC", "pvcxt": "PVCXT", "bmg": "XE2", "lnl": "XE2"}, _genx, False),
    "GenX_IR": Finalizer({"pvc": "PVC", "pvcxt": "PVCXT", "dg2": "DG2"}, _genx, False),
}
"""The finalizers by the names of their programs, the newest first. The newer ones know dg2 too, but accept no
shifts of 64 bits for it, which kernels here have."""

GPUS = tuple(t for t in TARGETS if any(t in f.platforms for f in FINALIZERS.values()))
"""The names of the targets that a finalizer knows."""


def available(target: str) -> str | None:
    """The newest finalizer that is installed and knows a target; None if there is none."""
    return next((n for n, f in FINALIZERS.items() if target in f.platforms and external_tools.find(n)), None)


def finalize(
    assembly: str, target: str, registers: int | None = None, finalizer: str | None = None, seconds: float = SECONDS
) -> Native:
    """Native ISA of a kernel.

    Args:
        assembly: vISA assembly with one kernel.
        target: the name of the GPU.
        registers: registers of a thread, 128 or 256; None for the usual number. The assembly text cannot state it.
        finalizer: one of FINALIZERS; None for the newest that is installed and knows the target, or for kernels that
            are too long for it the next one.
        seconds: the time limit.

    Raises:
        FinalizerError: if it is not installed, does not know the target, does not accept the text, or does not end in
            time.
    """
    name = finalizer or available(target)
    knowing = [n for n, f in FINALIZERS.items() if target in f.platforms]
    if not knowing:
        raise FinalizerError(f"the finalizer does not know target {target}; it knows {', '.join(GPUS)}")
    if name is not None and name not in knowing:
        platforms = ", ".join(FINALIZERS[name].platforms)
        raise FinalizerError(f"the finalizer {name} does not know target {target}; it knows {platforms}")
    if name is None or external_tools.find(name) is None:
        finalizer_name = name or f"a finalizer that knows {target} ({', '.join(knowing)})"
        raise FinalizerMissing(
            f"{finalizer_name} is not installed; `make oracles` installs it in build/oracles"
            f"{package_of(name or 'GenX_IR')}"
        )
    *newer, last = [finalizer] if finalizer else [n for n in knowing if external_tools.find(n)]
    for name in newer:
        with suppress(KernelTooLong):
            return _finalize(assembly, target, registers, name, seconds)
    return _finalize(assembly, target, registers, last, seconds)


def _finalize(assembly: str, target: str, registers: int | None, name: str, seconds: float) -> Native:
    """Native ISA of a kernel by a finalizer that is installed and knows the target."""
    program = external_tools.find(name)
    assert program is not None
    with TemporaryDirectory() as folder:
        path = Path(folder)
        lines: list[int] = []
        if FINALIZERS[name].inline:
            text, lines = opencl(assembly, TARGETS[target].grf_bytes)
            (path / "kernel.cl").write_text(text, encoding="utf-8")
        else:
            (path / "kernel.visaasm").write_text(assembly, encoding="utf-8")
        try:
            process = subprocess.run(
                [program, *FINALIZERS[name].command(FINALIZERS[name].platforms[target], registers)],
                cwd=path,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds,
                env={**os.environ, **_DUMPS, "IGC_DumpToCustomDir": folder},
            )
        except subprocess.TimeoutExpired:
            raise FinalizerError(f"{name} did not end within {seconds:g} s") from None
        native = sorted(path.glob("*.asm"))
        errors = "".join(p.read_text(errors="replace") for p in sorted(path.glob("*.errors.txt")))
        # Its exit status is not reliable: success means that the native text exists and no errors were printed.
        if len(native) != 1 or errors:
            output = errors + "\n" + process.stdout + process.stderr
            if _TOO_LONG in output:
                others = [n for n, f in FINALIZERS.items() if target in f.platforms and not f.inline]
                hint = f"{' and '.join(others)} {'take' if len(others) > 1 else 'takes'} longer ones"
                # Indentation is left out.
                size = sum(len(line.strip()) + 1 for line in assembly.split("\n"))
                raise KernelTooLong(
                    f"{name} takes kernels of at most {LONGEST >> 10} KiB of assembly, but this one has "
                    f"{size >> 10} KiB; {hint if others else f'no other finalizer knows target {target}'}"
                )
            line = int(match[1]) if (match := _LINE.search(output)) else None
            if line is not None and lines:
                [inlined] = path.glob("*.inline.visaasm")
                line -= inlined.read_text(errors="replace").partition(_INLINED)[0].count("\n") + 3
                line = lines[line] if 0 <= line < len(lines) else None
            if violating := _VIOLATING.search(output):
                statements = [text.strip() for text in assembly.split("\n")]
                line = statements.index(violating[1]) + 1 if violating[1] in statements else None
            raise FinalizerError(_reason(name, output, process.returncode), line)
        listed = _native(native[0].read_text(errors="replace"))
        if _UNDECODED in listed.text:
            raise FinalizerError(f"{name} does not accept it: it makes an instruction that the GPU does not have")
        return replace(listed, binary=b"".join(p.read_bytes() for p in path.glob("out/*.bin")))


def opencl(assembly: str, grf_bytes: int) -> tuple[str, list[int]]:
    """A kernel as OpenCL C with inline assembly, and for each line of this the line of the assembly, counted from 1.

    The kernel's arguments are those of the assembly in the order of their offsets, one for each element; the numbers of
    64 bits that are addresses are pointers. A kernel of hardware threads (`Target="cm"`) has subgroups in their place:
    `SimdSize` work items in x are one of them. Shared local memory is one array, which begins at address 0.
    """
    lanes = int(_found(r"^\.kernel_attr SimdSize=(\d+)", assembly) or 16)
    threads = _found(r'^\.kernel_attr Target="(\w+)"', assembly) == "cm"
    operands: list[str] = []
    parameters: list[str] = []
    copies: list[str] = []
    for m in sorted(_INPUT.finditer(assembly), key=lambda m: int(m["offset"])):
        [(form, align)] = re.findall(
            rf"^\.decl {re.escape(m['name'])} v_type=G type=(\w+) .*?align=(\w+)", assembly, re.MULTILINE
        )
        size = TYPES[form].bytes
        count, bits = int(m["size"]) // size, f"{m['name']}_bits"
        # The bits are copied, whatever their type: as integers.
        integer, plain = _INTEGERS[size]
        copies.append(f".decl {bits} v_type=G type={integer} num_elts={count} align={align} alias=<{m['name']},0>")
        for i in range(count):
            row, at = divmod(i * size, grf_bytes)
            copies.append(f"mov (M1_NM, 1) {bits}({row},{at // size})<1> %{len(operands)}(0,0)<0;1,0>")
            if m["kind"]:
                number = f"(uint){_IMPLICIT[m['kind']].format(i)}"
                operands.append(f"{number} / {lanes}" if threads and i == 0 and m["kind"] != "GROUP_COUNT" else number)
                continue
            name = f"arg{len(parameters)}"
            pointer = form == "uq" and count == 1
            c_type = "__global char *" if pointer else f"{_C_TYPES[form]} "
            element = f"[{i}]" if count > 1 else ""
            parameters.append(f"    {c_type}{name} /* {m['name'].replace('*/', '')}{element} */")
            operands.append(f"as_{plain}({name})" if form in ("f", "df") else name if pointer else f"({plain}){name}")
    local = int(_found(r"^\.kernel_attr SLMSize=(\d+)", assembly) or 0) << 10
    numbered = [(line.strip(), n) for n, line in enumerate(assembly.split("\n"), 1) if line.strip()]
    # The kernel around it returns.
    asm_lines = [(line.replace("%", "%%"), n) for line, n in numbered[:-1] if not line.startswith(("//", *_DIRECTIVES))]
    declared = sum(line.startswith(".decl") for line, _ in asm_lines)
    body = [*asm_lines[:declared], *((line, 0) for line in copies), *asm_lines[declared:]]
    quoted = "\n".join("        " + _quoted(line + "\n") for line, _ in body)
    # Operands that only say that they are used come last, for the numbers of the others.
    constraints = ", ".join(f'"rw.u"({operand})' for operand in [*operands, *["slm"][: bool(local)]])
    listed = "\n" + ",\n".join(parameters) if parameters else "void"
    name = _found(r'^\.kernel "(.*)"', assembly) or ""
    text = (
        # A name of its own, which is no word of C and none of its functions, and the kernel's in the binary.
        f"__kernel void entry({listed}) __asm__({_quoted(name)});\n\n"
        f"__attribute__((intel_reqd_sub_group_size({lanes})))\n__kernel void entry({listed}) {{\n"
        + (f"    __local char slm[{local}];\n" if local else "")
        + f'    __asm__ volatile (\n        "{{\\n"\n{quoted}\n        "}}\\n"\n        : : {constraints});\n}}\n'
    )
    return text, [n for _, n in body]


def _found(pattern: str, text: str) -> str | None:
    m = re.search(pattern, text, re.MULTILINE)
    return m and m[1]


def _quoted(line: str) -> str:
    escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _reason(name: str, output: str, status: int) -> str:
    if status < 0 or status == 128 + SIGSEGV:
        number = -status if status < 0 else status - 128
        return f"{name} crashed (signal {number}), for example because variables exceed the registers"
    lines = (line.strip(" \t/\\*") for line in output.split("\n"))
    error_lines = [line for line in lines if line and not _NOISE.search(line)]
    return f"{name} does not accept it: " + ("; ".join(dict.fromkeys(error_lines)) or f"it ended with status {status}")


def _native(text: str) -> Native:
    def count(pattern: re.Pattern[str]) -> int:
        m = pattern.search(text)
        return int(m[1]) if m else 0

    register_count = _registers(text, count(_GRF_BYTES) or 32)
    return Native(text, count(_INSTRUCTIONS), len(register_count), count(_TOTAL), count(_SPILLED))


def _registers(text: str, grf_bytes: int) -> set[int]:
    register_numbers: set[int] = set()
    for m in _DECLARED.finditer(text):
        if not m["name"].startswith(_ALWAYS):
            element = TYPES[m["type"]].bytes if m["type"] in TYPES else 1
            start = int(m["register"]) * grf_bytes + int(m["element"]) * element
            register_numbers.update(range(start // grf_bytes, -(-(start + int(m["bytes"])) // grf_bytes)))
    for line in _CODE.findall(text):
        for m in _NAMED.finditer(line):
            register_numbers.update(range(int(m[1]), int(m[1]) + int(m[2] or 1)))
    return register_numbers
