"""Intel's finalizer: vISA assembly to native ISA, by the program `GenX_IR`."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from xegpu_py import oracles
from xegpu_py.numerics.formats import TYPES

PROGRAM = "GenX_IR"

PACKAGE = "libigc-tools"

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


class FinalizerError(Exception):
    """The finalizer rejects the text or is not installed. The message says which and why."""


class FinalizerMissing(FinalizerError):
    """The finalizer is not installed."""


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
    """

    text: str
    instructions: int
    registers: int
    total_registers: int
    spill_bytes: int


def available() -> bool:
    """Whether the finalizer is installed."""
    return oracles.find(PROGRAM) is not None


def finalize(assembly: str, platform: str, registers: int | None = None, seconds: float = SECONDS) -> Native:
    """Native ISA of a kernel.

    Args:
        assembly: vISA assembly with one kernel; with several, the finalizer would overwrite its own output files.
        platform: what the finalizer calls the GPU: `Target.platform`.
        registers: registers of a thread, 128 or 256; None for the usual number. The assembly text cannot state it.
        seconds: the time limit.

    Raises:
        FinalizerError: if it is not installed, does not accept the text, or does not end in time.
    """
    program = oracles.find(PROGRAM)
    if program is None:
        raise FinalizerMissing(f"{PROGRAM} is not installed; Debian has it in the package {PACKAGE}")
    size = ["-TotalGRFNum", str(registers)] if registers else []
    with TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "kernel.visaasm").write_text(assembly, encoding="utf-8")
        try:
            done = subprocess.run(
                [program, "kernel.visaasm", "-platform", platform, *size, *OPTIONS, "-output"],
                cwd=path,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            raise FinalizerError(f"{PROGRAM} did not end within {seconds:g} s") from None
        native = sorted(path.glob("*.asm"))
        errors = "".join(p.read_text(errors="replace") for p in sorted(path.glob("*.errors.txt")))
        # Its exit status is not reliable: success means that the native text exists and no errors were printed.
        if len(native) != 1 or errors:
            raise FinalizerError(_reason(errors + "\n" + done.stdout + done.stderr, done.returncode))
        return _native(native[0].read_text(errors="replace"))


def _reason(output: str, status: int) -> str:
    lines = (line.strip(" \t/\\*") for line in output.split("\n"))
    kept = [
        line
        for line in lines
        if line
        and not line.startswith((PROGRAM, "Found a total", "---", "Instruction / Operand"))
        and "!!!" not in line
    ]
    if status < 0:
        return f"{PROGRAM} crashed (signal {-status}), for example because variables exceed the registers"
    return f"{PROGRAM} does not accept it: " + ("; ".join(dict.fromkeys(kept)) or f"it ended with status {status}")


def _native(text: str) -> Native:
    def count(pattern: re.Pattern[str]) -> int:
        m = pattern.search(text)
        return int(m[1]) if m else 0

    used = _registers(text, count(_GRF_BYTES) or 32)
    return Native(text, count(_INSTRUCTIONS), len(used), count(_TOTAL), count(_SPILLED))


def _registers(text: str, grf_bytes: int) -> set[int]:
    used: set[int] = set()
    for m in _DECLARED.finditer(text):
        if not m["name"].startswith(_ALWAYS):
            element = TYPES[m["type"]].bytes if m["type"] in TYPES else 1
            start = int(m["register"]) * grf_bytes + int(m["element"]) * element
            used.update(range(start // grf_bytes, -(-(start + int(m["bytes"])) // grf_bytes)))
    for line in _CODE.findall(text):
        for m in _NAMED.finditer(line):
            used.update(range(int(m[1]), int(m[1]) + int(m[2] or 1)))
    return used
