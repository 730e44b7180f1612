"""Intel's finalizer: vISA assembly to native ISA, by the program `GenX_IR`."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

PROGRAM = "GenX_IR"
PACKAGE = "libigc-tools"
SECONDS = 20.0

_COUNTS = {
    "instructions": re.compile(r"^//\.instCount (\d+)", re.MULTILINE),
    "grf": re.compile(r"^//\.RA type\s+(.+)$", re.MULTILINE),
    "spills": re.compile(r"^//\.spill size (\d+)", re.MULTILINE),
    "registers": re.compile(r"^//\.GRF count (\d+)", re.MULTILINE),
}
_FRAME = re.compile(r"^[\s/\\!-]*(?:-{3,}|!{3})")


class FinalizerError(Exception):
    """The finalizer is not there, or does not accept the text. The message says which and why."""


@dataclass(frozen=True)
class Native:
    """What the finalizer made of one kernel.

    Attributes:
        text: native ISA, as it prints it.
        instructions: number of native instructions.
        registers: registers used.
        spill_bytes: bytes spilled to memory.
    """

    text: str
    instructions: int
    registers: int
    spill_bytes: int


def available() -> bool:
    """Whether the finalizer is installed."""
    return shutil.which(PROGRAM) is not None


def finalize(assembly: str, platform: str, seconds: float = SECONDS) -> list[Native]:
    """Native ISA of each kernel of an assembly text.

    Args:
        assembly: vISA assembly.
        platform: what the finalizer calls the GPU: `Target.platform`.
        seconds: after how long it is given up.

    Raises:
        FinalizerError: if it is not installed, does not accept the text, or does not end in time.
    """
    if not available():
        raise FinalizerError(f"{PROGRAM} is not installed; Debian has it in the package {PACKAGE}")
    with TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "kernel.visaasm").write_text(assembly, encoding="utf-8")
        try:
            done = subprocess.run(
                [PROGRAM, "kernel.visaasm", "-platform", platform, "-output"],
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
        # Its exit status says nothing: that the native text is there and no errors are is the success.
        if not native or errors:
            raise FinalizerError(_reason(errors + "\n" + done.stdout + done.stderr, done.returncode))
        return [_native(p.read_text(errors="replace")) for p in native]


def _reason(output: str, status: int) -> str:
    lines = (line.strip(" \t/\\*") for line in output.split("\n"))
    kept = [
        line
        for line in lines
        if line
        and not line.startswith((PROGRAM, "Found a total", "---", "Instruction / Operand"))
        and "!!!" not in line
    ]
    return f"{PROGRAM} does not accept it: " + ("; ".join(dict.fromkeys(kept)) or f"it ended with status {status}")


def _native(text: str) -> Native:
    def count(name: str) -> int:
        m = _COUNTS[name].search(text)
        return int(m[1]) if m and m[1].isdigit() else 0

    return Native(text, count("instructions"), count("registers"), count("spills"))
