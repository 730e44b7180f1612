"""Keeps object code that tests compile, for other tests and later runs: LLVM takes a fifth of the time of `make test`.

LLVM's output depends on its input only, so that no change of the package makes an entry wrong.
"""

from __future__ import annotations

import functools
import hashlib
import os
import time
import zlib
from contextlib import suppress

from recorder import ROOT

from xegpu_py.engines.jit import native_code
from xegpu_py.engines.jit.llvm import Machine

FOLDER = ROOT / "build" / "compiled"

DAYS = 3
"""Entries are removed which no test has used for so long, such as those of random programs."""


def install() -> None:
    """Make the JIT look for object code in the folder before it compiles."""
    compiled = native_code.compiled
    FOLDER.mkdir(parents=True, exist_ok=True)

    @functools.wraps(compiled)
    def kept(text: str, target: Machine, passes: str, level: int) -> bytes:
        path = FOLDER / hashlib.sha256(repr((text, target, passes, level)).encode()).hexdigest()
        with suppress(OSError, zlib.error):
            code = zlib.decompress(path.read_bytes())
            os.utime(path)
            return code
        code = compiled(text, target, passes, level)
        new = path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            new.write_bytes(zlib.compress(code, 1))
            new.replace(path)
        return code

    native_code.compiled = kept


def prune() -> None:
    """Remove entries that were not used for `DAYS`."""
    oldest = time.time() - DAYS * 86400
    for path in FOLDER.iterdir():
        with suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()
