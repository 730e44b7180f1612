"""Native code and lowered kernels on disk, which later processes reuse.

An entry is a file whose name is a digest of everything that its data depends on. The file contains this digest and one
of the data; an entry whose digests do not agree is ignored. An entry is written to a temporary file, which is then
renamed, so that other processes see complete entries only.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import warnings
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

VARIABLE = "XEGPU_PY_CACHE"
"""The environment variable that names the folder, or is `OFF`."""

OFF = "off"

LIMIT = 256 << 20
"""The largest size of a folder's entries of one kind together, in bytes."""

_NONBLOCK = getattr(os, "O_NONBLOCK", 0)

_MAGIC = b"xegpu-py cache 3\n"

_STALE = 3600.0
"""The age in seconds from which a temporary file is considered to belong to a process that was killed."""


def folder_of(choice: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder of the cache; None if there is no cache.

    Args:
        choice: a folder, or `OFF`. The default is the value of `VARIABLE`, or else a folder in the user's cache folder.
    """
    wanted = os.environ.get(VARIABLE, "") if choice is None else os.fspath(choice)
    if wanted.lower() == OFF:
        return None
    if wanted:
        return Path(wanted).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("xegpu-py", appauthor=False) / "native"


def digest(*parts: str) -> str:
    """A key that depends on every part."""
    found = hashlib.sha256()
    for part in parts:
        data = part.encode()
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()


@lru_cache
def package_state() -> str:
    """A digest of the names, sizes and times of the package's files: edits do not change the version."""
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


class Cache(Struct, frozen=True):
    """Entries of one kind in a folder.

    Attributes:
        folder: the folder, which is created by the first `put`.
        limit: the largest size of all entries of the kind together, in bytes; the least recently used are removed.
        kind: the ending of the entries' file names: "native" for code, "lowered" for kernels.
    """

    folder: Path
    limit: int = LIMIT
    kind: str = "native"

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.{self.kind}"

    def get(self, key: str) -> bytes | None:
        """The data of a key; None if there is no entry, or it is damaged or writable by other users."""
        path = self._path(key)
        try:
            # Opening a named pipe would wait for a writer.
            with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NONBLOCK)) as file:
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
        """Write data to the folder. If this is not possible the next process compiles again; a warning says so."""
        # Imported only when an entry is written: it imports Python's archive modules.
        import tempfile

        try:
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
        except OSError as e:
            reason = f"cannot write to the cache in '{self.folder}': {e.strerror}; compiled kernels are not kept"
            # Python shows a warning once for each line that warns: one line for all kinds of code.
            warnings.warn(reason, stacklevel=1)

    def _shrink(self) -> None:
        """Remove the least recently used entries beyond the limit, and temporary files of killed processes."""
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
    """Whether only this user can have written a file."""
    if not hasattr(os, "getuid"):
        return True
    return about.st_uid == os.getuid() and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
