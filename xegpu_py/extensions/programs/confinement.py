"""Confinement of the process that runs host code, by means that need no privileges.

Host code is native code whose memory accesses are not checked, so a program with a bug, or a hostile one, can do
anything that its process can. The process therefore gives up, for good, what no program needs.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import resource
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

# Landlock's system calls, which have the same numbers on all architectures: https://docs.kernel.org/userspace-api/landlock.html

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446

_VERSION = 1
"""The flag of `_CREATE_RULESET` that asks for the version of the interface."""

_PATH_BENEATH = 1

_NO_NEW_PRIVILEGES = 38
"""PR_SET_NO_NEW_PRIVS."""

_READ = 1 << 2 | 1 << 3
"""Reading files and listing folders."""

_WRITE = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 14
"""Writing, truncating, making and removing files and folders."""

_FILES = {1: (1 << 13) - 1, 2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
"""The kinds of access to files that each version of the interface added. Execution of programs is one of them."""

_NETWORK = {4: 3}
"""Likewise for the network: binding and connecting TCP sockets."""

_SCOPES = {6: 3}
"""Likewise for other processes: abstract UNIX sockets and signals."""

_SYSTEM = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/proc/self", "/proc/cpuinfo", "/sys/devices/system/cpu",
           "/dev/null", "/dev/zero", "/dev/urandom")  # fmt: skip
"""Files and folders of the system that Python, numpy and LLVM read."""


def confine(writable: Iterable[Path]) -> bool:
    """Give up privileges of this process and of all threads that it starts later.

    The process can no longer gain privileges or dump its memory, and its memory is limited to that of the machine.
    With Landlock (Linux 5.13) it can only read the system's libraries and Python's modules, change the given folders,
    and start no program. From Linux 6.7 it can use no TCP, and from 6.12 send no signal to other processes.

    Returns:
        Whether Landlock restricts the process.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        return False
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    if version < 1:
        return False
    files, network, scopes = (
        sum(bits for since, bits in kinds.items() if since <= version) for kinds in (_FILES, _NETWORK, _SCOPES)
    )
    ruleset = struct.pack("QQQ", files, network, scopes)[: 8 if version < 4 else 16 if version < 6 else 24]
    rules = libc.syscall(_CREATE_RULESET, ruleset, ctypes.c_size_t(len(ruleset)), 0)
    if rules < 0:
        return False
    modules = (sys.prefix, sys.base_prefix, *(folder for folder in sys.path if folder), *_package_folders())
    for path in (*_SYSTEM, *modules):
        _allow(libc, rules, Path(path), _READ & files)
    for folder in writable:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        _allow(libc, rules, folder, (_READ | _WRITE) & files)
    restricted: int = libc.syscall(_RESTRICT_SELF, rules, 0)
    os.close(rules)
    return restricted == 0


def _package_folders() -> list[str]:
    """The folders of this package, which need not be below one of `sys.path`."""
    package = sys.modules["xegpu_py"]
    return [*package.__path__, *(f for name in ("dialects", "passes") for f in getattr(package, name).__path__)]


def _allow(libc: ctypes.CDLL, rules: int, path: Path, access: int) -> None:
    """Allow access to a file, or to a folder and all that is in it; nothing if it does not exist."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not path.is_dir():
        # These are for folders only.
        access &= 1 << 1 | 1 << 2 | 1 << 14
    libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", access, descriptor), 0)
    os.close(descriptor)
