"""Native code and lowered kernels on disk, from one process to the next.

An entry is a file whose name is a digest of all that its data depend on, and which says so inside, with a digest of
the data. What does not agree is as if it were not there. Entries are written to a file beside them and then renamed,
so that nobody sees half of one.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from xegpu_py.records import dataclass

VARIABLE = "XEGPU_PY_CACHE"
"""The environment variable that names the folder, or is `OFF`."""

OFF = "off"

LIMIT = 256 << 20
"""Bytes that a folder's entries of one kind may have together."""

_MAGIC = b"xegpu-py cache 3\n"
_STALE = 3600.0
"""Seconds after which a file that a writer has left behind is taken for forgotten."""


def folder_of(choice: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder where code is kept; None for none.

    Args:
        choice: a folder, or `OFF`; None for what the environment says, or else the user's folder of caches.
    """
    wanted = os.environ.get(VARIABLE, "") if choice is None else os.fspath(choice)
    if wanted.lower() == OFF:
        return None
    if wanted:
        return Path(wanted).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("xegpu-py", appauthor=False) / "native"


def digest(*parts: str) -> str:
    """A key: another one if any part is another one."""
    found = hashlib.sha256()
    for part in parts:
        data = part.encode()
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()


@lru_cache
def package_state() -> str:
    """A digest of the names, sizes and times of this package's files: while it is developed, its version stays."""
    package = sys.modules["xegpu_py"]
    roots = {*package.__path__, *(p for m in ("dialects", "passes") for p in getattr(package, m).__path__)}
    found = []
    for root in sorted(roots):
        for folder, _, names in os.walk(root):
            for name in names:
                if name.endswith((".py", ".ll")):
                    about = os.stat(os.path.join(folder, name))
                    found.append(f"{folder}/{name} {about.st_size} {about.st_mtime_ns}")
    return digest(*sorted(found))


@dataclass(frozen=True)
class Cache:
    """Entries of one kind in a folder.

    Attributes:
        folder: where they are; made when something is written.
        limit: bytes that all entries of the kind may have together; those not used for longest go first.
        kind: what they hold, the ending of their files' names: "native" for code, "lowered" for kernels.
    """

    folder: Path
    limit: int = LIMIT
    kind: str = "native"

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.{self.kind}"

    def get(self, key: str) -> bytes | None:
        """The data of a key; None if there is none, or what there is is damaged or another user's."""
        path = self._path(key)
        try:
            with path.open("rb") as file:
                about = os.fstat(file.fileno())
                if not (_own(about) and stat.S_ISREG(about.st_mode)):
                    return None
                found = file.read()
        except OSError:
            return None
        head = _head(key)
        data = found[len(head) + 32 :]
        if found[: len(head) + 32] != head + hashlib.sha256(data).digest():
            return None
        with suppress(OSError):
            os.utime(path)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keep data. A folder that cannot be written to is no error: the next process compiles again."""
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            number, name = tempfile.mkstemp(suffix=".new", dir=self.folder)
            os.close(number)
            new = Path(name)
            try:
                new.write_bytes(_head(key) + hashlib.sha256(data).digest() + data)
                os.replace(new, self._path(key))
            finally:
                new.unlink(missing_ok=True)
            self._shrink()

    def _shrink(self) -> None:
        """Remove what is beyond the limit, and what writers that were killed have left behind."""
        entries = []
        for item in os.scandir(self.folder):
            # Another process may remove it at the same time.
            with suppress(FileNotFoundError):
                about = item.stat()
                if item.name.endswith(f".{self.kind}"):
                    entries.append((about.st_mtime, about.st_size, item.path))
        newest = max((e[0] for e in entries), default=0.0)
        for left in self.folder.glob("*.new"):
            with suppress(FileNotFoundError):
                if left.stat().st_mtime < newest - _STALE:
                    left.unlink()
        total = sum(e[1] for e in entries)
        for _, size, path in sorted(entries):
            if total <= self.limit:
                break
            Path(path).unlink(missing_ok=True)
            total -= size


def _head(key: str) -> bytes:
    return _MAGIC + key.encode() + b"\n"


def _own(about: os.stat_result) -> bool:
    """Whether nobody but this user can have written a file."""
    if not hasattr(os, "getuid"):
        return True
    return about.st_uid == os.getuid() and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
