"""`python -m xegpu_py`: print the versions of the installation, for bug reports."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import packages_distributions, version

from xegpu_py import external_tools
from xegpu_py.cache import folder_of
from xegpu_py.engines.jit.host import chosen_host
from xegpu_py.runtime.options import ENGINES
from xegpu_py.target import TARGETS
from xegpu_py.tools import driver


def _providers(module: str) -> str:
    """The distributions that provide an imported package, with their versions."""
    names = sorted(set(packages_distributions().get(module, [])))
    return ", ".join(f"{name} {version(name)}" for name in names) or "not from an installed distribution"


def _native() -> str:
    """The CPU that the JIT compiles for, and LLVM's version."""
    try:
        host = chosen_host()
    except (RuntimeError, ValueError) as e:
        return f"none: {e}"
    machine, bits = host.machine, 8 * host.vector_bytes
    registers = f"{host.vector_registers} vector registers of {bits} bits"
    return f"LLVM {machine.version}, {machine.cpu} ({machine.triple}): {registers}"


def _cache() -> str:
    try:
        folder = folder_of()
    except ValueError as e:
        return f"none: {e}"
    if folder is None:
        return "off"
    files = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    writable = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    size = sum(path.stat().st_size for path in files) / 2**20
    return f"{folder}, {len(files)} files, {size:.1f} MiB{'' if writable else ', not writable'}"


def rows() -> list[tuple[str, str]]:
    """The lines of the report, as names and values."""
    return [
        ("xegpu-py", version("xegpu-py")),
        ("Python", f"{platform.python_version()} ({sys.executable})"),
        ("system", f"{platform.platform()}, {platform.machine()}"),
        ("MLIR bindings", _providers("mlir")),
        ("LLVM library", _providers("llvm")),
        ("numpy", version("numpy")),
        ("ml_dtypes", version("ml_dtypes")),
        ("native code", _native()),
        ("cache", _cache()),
        ("engines", ", ".join((*ENGINES, "reference"))),
        ("targets", ", ".join(TARGETS)),
        *(
            (f"{name} ({what})", external_tools.find(name) or "not found")
            for name, what in external_tools.ORACLES.items()
        ),
    ]


def run(argv: Sequence[str]) -> int:
    """Print the report; the exit status."""
    description = "Print the versions of xegpu-py and what it uses, for bug reports."
    parser = driver.Parser("python -m xegpu_py", "", description, ["python -m xegpu_py"])
    parser.parse_args(argv)
    for name, value in rows():
        print(f"{name}: {value}")
    return 0


if __name__ == "__main__":
    driver.main(run)
