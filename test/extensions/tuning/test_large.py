"""Large launches: chunks of workgroups give the bytes of one launch, on all kernels with several workgroups."""

import pickle
import shlex
import zlib
from types import SimpleNamespace

import numpy as np
import pytest
from effort import some
from language.kernels import attention, elementwise, irregular, products, rows  # noqa: F401
from language.kernels.suite import RUNS
from markdown import ROOT

import xegpu_py
from xegpu_py import language
from xegpu_py.extensions.tuning.distributed_launch import LargeLaunch, _places, _written
from xegpu_py.runtime.host_arrays import parse_argument
from xegpu_py.tools.xegpu_run import argument_parser


def launches():
    """The command lines of test/run with several workgroups."""
    found = {}
    for path in sorted((ROOT / "test/run").glob("*.mlir")):
        text = path.read_text().replace("\\\n// RUN:", "")
        for line in text.splitlines():
            words = line.partition("|")[0].split("xegpu-run %s ")
            if line.startswith("// RUN:") and len(words) == 2 and "--grid" in line and "--engine reference" not in line:
                found[f"{path.name}: {words[1].strip()[:60]}"] = path, words[1]
    return found


LAUNCHES = launches()


def divided(kernel, arguments, names, grid, block=None):
    """Launch in chunks, one after the other, from the last to the first; the results travel as bytes."""
    launch = LargeLaunch.of(kernel, arguments, names, grid, block)
    chunks = launch.chunks(-(-launch.groups // 3))
    results = ((i, pickle.loads(pickle.dumps(launch.problem.run(chunks[i])))) for i in reversed(range(len(chunks))))
    return launch.merge(chunks, results)


def copies(arguments):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]


def same(one, other):
    return all(a.tobytes() == b.tobytes() for a, b in zip(one, other) if isinstance(a, np.ndarray))


REFUSED = "cannot be divided: atomic fadd gives results that depend on the order of workgroups"


@pytest.mark.parametrize("name", some(RUNS))
def test_tile_kernels(name):
    run = RUNS[name](np.random.default_rng(zlib.crc32(name.encode())))
    kernel = xegpu_py.jit(run.kernel)
    one, other = copies(run.arguments), copies(run.arguments)
    kernel(*one, grid=run.grid, **run.constants)
    given = kernel.bound(*other, **run.constants)
    try:
        divided(kernel, [*given.values()], [*given], run.grid)
    except xegpu_py.DiagnosticError as e:
        assert REFUSED in str(e)
        return
    assert same(one, other)


@pytest.mark.parametrize("name", some(LAUNCHES))
def test_run(name, capsys):
    path, words = LAUNCHES[name]
    args = argument_parser().parse_intermixed_args([str(path), *shlex.split(words)])
    options = {name: getattr(args, name) for name in ("target", "model", "registers") if getattr(args, name)}
    kernel = xegpu_py.compile(path, args.kernel, **options)
    one, other = ([parse_argument(word) for word in args.args] for _ in range(2))
    done = kernel(*one, grid=args.grid, block=args.block)
    printed = capsys.readouterr().out
    try:
        found = divided(kernel, other, [], args.grid, args.block)
    except xegpu_py.DiagnosticError as e:
        assert REFUSED in str(e)
        return
    assert same(one, other)
    assert sorted(capsys.readouterr().out) == sorted(printed)
    assert found.threads == done.threads and found.executed.tolist() == done.executed.tolist()


def made(function, arguments, grid):
    kernel = xegpu_py.jit(function)
    names = list(kernel.bound(*arguments))
    return divided(kernel, arguments, names, grid)


def racing(Y, n):
    # The last workgroup stores what is there already: only a log of stores tells that it does.
    i = language.arange(0, 16)
    language.store(Y + i, language.where(language.program_id(0) == n, 0, 7))


def ticket(X, Y):
    mine = language.atomic_add(X, 1)
    language.store(Y + mine, language.program_id(0))


def mixed(X):
    language.atomic_max(X + language.arange(0, 16), language.program_id(0) * 3)
    language.store(X + 16 + language.program_id(0), 5)


def both_kinds(X):
    if language.program_id(0) == 0:
        language.atomic_max(X, 9)
    else:
        language.atomic_add(X, 1)


def shifted(X):
    i = language.program_id(0)
    language.store(X + i + 1, language.load(X + i) + 1)


def counted(X, Y):
    language.atomic_add(X, 1)
    language.store(Y + language.program_id(0), language.load(X + language.program_id(0)))


def overlapped(X, Y):
    language.store(X, language.load(Y))


def both_in_one(X):
    language.store(X, 5)
    language.atomic_add(X, 1)


def outside(X):
    language.store(X + language.program_id(0) * 1000, 1)


def test_races_between_chunks_are_reported():
    y = np.zeros(16, np.int32)
    with pytest.raises(
        xegpu_py.DiagnosticError, match="workgroups . to . and workgroups . to . write different values"
    ):
        made(racing, (y, 2), 3)
    assert not y.any()
    with pytest.raises(xegpu_py.DiagnosticError, match="a race of kernel 'both_kinds': .* and others write different"):
        made(both_kinds, (np.zeros(1, np.int32),), 3)
    read = "a race of kernel '{}': workgroups {} read, and {} write, byte {} of 'X'"
    x, y = np.zeros(7, np.int32), np.zeros(6, np.int32)
    with pytest.raises(
        xegpu_py.DiagnosticError, match=read.format("shifted", "[24] to [35]", "workgroups . to .", "(8|16)")
    ):
        made(shifted, (x,), 6)
    with pytest.raises(xegpu_py.DiagnosticError, match=read.format("counted", "0 to 1", "others", "0")):
        made(counted, (x, y), 6)
    assert not x.any() and not y.any()
    # What is stored again does not change.
    made(shifted, (np.arange(7, dtype=np.int32),), 6)


def test_what_cannot_be_divided_is_refused():
    x, y = np.zeros(32, np.int32), np.zeros(4, np.int32)
    with pytest.raises(
        xegpu_py.DiagnosticError, match=r"test_large.py:\d+:\d+: .*uses the value that atomic iadd returns"
    ):
        made(ticket, (x, y), 3)
    with pytest.raises(ValueError, match="share memory, which chunks of workgroups do not see"):
        made(overlapped, (x[:3], x[1:]), 3)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="'X' is read-only, but kernel 'mixed' changes it"):
        made(mixed, (x,), 1)
    with pytest.raises(xegpu_py.DiagnosticError, match="atomic iadd and other operations write one element of"):
        made(both_in_one, (y,), 3)
    with pytest.raises(xegpu_py.DiagnosticError, match="over the end of 'X'"):
        made(outside, (y,), 3)


def test_atomics_of_chunks_are_combined_with_what_is_there():
    x = np.arange(32, dtype=np.int32)
    one, other = x.copy(), x.copy()
    xegpu_py.jit(mixed)(one, grid=7)
    made(mixed, (other,), 7)
    assert same([one], [other]) and one[0] == 18


def test_on_a_cluster_with_files_and_dask_arrays(client, tmp_path):
    x = np.memmap(tmp_path / "x", np.float32, "w+", shape=(64, 32))
    x[:] = np.arange(64 * 32).reshape(64, 32)
    y = np.memmap(tmp_path / "y", np.float32, "w+", shape=(64, 32))
    done = xegpu_py.jit(scale)[lambda v: 64 // v["ROWS"]].on(client, chunk=3)(x, y, ROWS=8)
    assert (np.fromfile(tmp_path / "y", np.float32) == 2 * np.asarray(x).ravel()).all()
    assert done.chunks == 3 and done.statistics.threads == 8
    tuned = xegpu_py.autotune([xegpu_py.Config({"ROWS": n}) for n in (16, 32)], objective="instructions")
    y[:] = 0
    tuned(xegpu_py.jit(scale))[lambda v: 64 // v["ROWS"]].on(client, chunk=1)(x, y)
    assert (np.asarray(y) == 2 * np.asarray(x)).all()
    array = pytest.importorskip("dask.array")
    given = array.zeros((64, 32), dtype=np.float32, chunks=(16, 32))
    done = xegpu_py.jit(scale)[8].on(client)(x, given, ROWS=8)
    assert done.chunks == 8
    found = done.arrays["Y"]
    assert found.chunks == given.chunks and (found.compute() == 2 * x).all()


def scale(X, Y, ROWS: xegpu_py.Constexpr):
    m = language.program_id(0) * ROWS
    Y.tile((ROWS, 32), at=(m, 0)).store(X.tile((ROWS, 32), at=(m, 0)).load() * 2)


@pytest.mark.parametrize(
    ("stores", "changed", "atomics", "expected"),
    [
        ([(4, 8)], [], {}, {"": [4, 5, 6, 7, 8, 9, 10, 11]}),
        ([], [5, 6, 9], {}, {"": [5, 6, 9]}),
        ([(4, 2)], [5, 6, 9], {}, {"": [4, 5, 6, 9]}),
        ([(0, 2)], [9], {("iadd", 4): [16]}, {"iadd": [16], "": [0, 1, 9]}),
        ([], [], {("xor", 4): [16, 24], ("smax", 8): [8]}, {"xor": [16, 24], "smax": [8]}),
        ([], [], {}, {}),
        ([(16, 1)], [], {("iadd", 4): [16]}, "atomic iadd and other operations write one element"),
        ([], [], {("iadd", 4): [16], ("smax", 8): [16]}, "atomic smax and other operations write one element"),
    ],
)
def test_bytes_that_a_chunk_has_written(stores, changed, atomics, expected):
    """Those of messages in the log, and of others those that differ; of atomics what they add to an element."""
    before = np.arange(32, dtype=np.uint8)
    after = before.copy()
    after[changed] += 100
    for (_, size), starts in atomics.items():
        for start in starts:
            after[start : start + size] ^= 0x11
    log = SimpleNamespace(
        joined_in=lambda array, kind: (
            [np.array(part, np.int64) for part in zip(*stores)] or [np.zeros(0, np.int64)] * 2
        ),
        atomics_in=lambda array: {key: np.array(starts) for key, starts in atomics.items()},
    )
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected):
            _written(log, 3, before, after)
        return
    found = {part.operation: part for part in _written(log, 3, before, after)}
    assert all(part.argument == 3 for part in found.values())
    if plain := found.get(""):
        assert (np.diff(plain.starts) > plain.sizes[:-1]).all()
        np.testing.assert_array_equal(plain.values, after[expected[""]])
    assert {
        rule: _places(p.starts, p.sizes if not rule else p.sizes * 0 + 1).tolist() for rule, p in found.items()
    } == expected
    for (rule, size), starts in atomics.items():
        old, new = (np.array([x[at : at + size].view(f"u{size}")[0] for at in starts]) for x in (before, after))
        value = {"iadd": new - old, "xor": new ^ old}.get(rule, new)
        np.testing.assert_array_equal(found[rule].values, value)
        assert (found[rule].sizes == size).all()
