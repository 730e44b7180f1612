"""Settings of all tests: they do not write to the user's caches, and hypothesis sets no time limit for examples."""

import atexit
import ctypes
import gc
import os
import sys
import zlib
from collections import OrderedDict, defaultdict
from contextlib import nullcontext
from pathlib import Path

os.environ["XEGPU_PY_CACHE"] = "off"
# By default standard output is written later than standard error, unless a tool sees to their order.
os.environ.pop("PYTHONUNBUFFERED", None)
# Read when numpy is imported: by default each worker's idle BLAS threads spin on the processors of the others.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import compiled_objects
import pytest
import recorder
from effort import SHARE, examples, with_each_value
from hypothesis import settings

from xegpu_py import cache, external_tools
from xegpu_py.engines.jit import engine, tiered_code
from xegpu_py.lower_kernel import KernelSource
from xegpu_py.runtime.executor import Executor
from xegpu_py.visa.finalizer import FINALIZERS, finalize

# glibc gives the memory of large arrays back to the system, and each page of the next one costs a fault.
if sys.platform == "linux" and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)):
    M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
    mallopt(M_TRIM_THRESHOLD, 1 << 30)
    mallopt(M_MMAP_THRESHOLD, 1 << 25)

# Looking for cycles among many objects that live on takes an eighth of the time, and after 100,000 objects, as the
# tools do, a thirtieth.
gc.set_threshold(1_000_000)
# A loaded machine may take any time for an example.
settings.register_profile("untimed", deadline=None, max_examples=examples(100))
settings.load_profile("untimed")

compiled_objects.install()

RECORDER = recorder.Recorder()

FEW = 6
"""So many cases of a test, or fewer, are given to each of Intel's finalizers."""


def pytest_collection_modifyitems(config, items):
    """Leaves cases out of `make test`, which `make sweep` runs.

    Of a test marked `each_value` it runs so many cases that each value of each parameter occurs; of one marked `sweep`
    those that the mark does not list. Each of many kernels is given to one of the finalizers, in turn.
    """
    left_out = {*_beyond_each_value(items), *filter(_is_of_sweep, items)}
    tests = defaultdict(lambda: defaultdict(dict))
    for item in items:
        if item in left_out:
            continue
        given = dict(item.callspec.params) if hasattr(item, "callspec") else {}
        name = given.pop("native_of", None)
        if name and "target" not in given and external_tools.find(name):
            tests[item.path, item.originalname][str(given)][name] = item
    for cases in tests.values():
        if SHARE < 1 and len(cases) > FEW:
            for turn, asked in enumerate(cases.values()):
                left_out |= set(asked.values()) - {list(asked.values())[turn % len(asked)]}
    if listed := config.getoption("listed"):
        names = {*Path(listed).read_text().splitlines()}
        left_out |= {item for item in items if not {item.nodeid, item.nodeid.partition("::")[0]} & names}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def _beyond_each_value(items):
    """Cases of tests marked `each_value` that `make test` leaves out."""
    tests = defaultdict(list)
    for item in items:
        if SHARE < 1 and item.get_closest_marker("each_value"):
            if _is_unknown(**item.callspec.params):
                yield item
            else:
                tests[item.path, item.originalname].append(item)
    for (_, name), cases in tests.items():
        kept = with_each_value([item.callspec.params for item in cases], name)
        yield from (item for i, item in enumerate(cases) if i not in kept)


def _is_of_sweep(item):
    """Whether only `make sweep` runs a case: one that the mark `sweep` of its test lists."""
    return SHARE < 1 and any(item.callspec.id in mark.args for mark in item.iter_markers("sweep"))


def _is_unknown(native_of=None, target=None, **_):
    """Whether a finalizer does not know the target: a case that would be skipped."""
    return native_of and target and getattr(target, "name", target) not in FINALIZERS[native_of].platforms


# Not fixtures, whose set-up takes a third of the time of a small test.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    with RECORDER.test(item.nodeid), pytest.MonkeyPatch.context() as patch:
        _lower_once(item, patch)
        _reduce_native_code(item, patch)
        result = yield
    if nextitem is None or nextitem.path != item.path:
        LOWERED.clear()
    return result


def pytest_sessionfinish(session):
    RECORDER.write()
    if not hasattr(session.config, "workerinput"):
        compiled_objects.prune()
    # pytest collects garbage five times at its end, among all objects that tests have left. Python does it once more,
    # and Triton's bindings complain of what it does not find.
    gc.freeze()
    atexit.register(gc.unfreeze)


def pytest_collection_finish():
    # Modules and collected tests live until the end.
    gc.freeze()


def pytest_configure(config):
    # pytest-lsp reads its option, and is loaded after the options.
    config.option.devtools = None


def pytest_addoption(parser):
    parser.addoption("--listed", metavar="FILE", help="run the tests and the files of tests that a file lists")
    parser.addoption("--save-screenshots", action="store_true", help="update docs/site/screenshots")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    for mark in item.iter_markers("needs"):
        if not external_tools.find(*mark.args):
            pytest.skip(f"needs {mark.args[0]}")


@pytest.fixture(scope="session", params=FINALIZERS)
def native_of(request):
    """`finalize` by each of Intel's finalizers; skips a test whose finalizer is missing or does not know the target."""
    name = request.param
    if not external_tools.find(name):
        pytest.skip(f"needs {name}")

    def native(assembly, target, registers=None):
        if target not in FINALIZERS[name].platforms:
            pytest.skip(f"{name} does not know {target}")
        return finalize(assembly, target, registers, name, seconds=300)

    native.name = name
    return native


@pytest.fixture
def own_code(monkeypatch):
    """The process keeps no native code of other tests: for a test that changes the rules which write the code."""
    monkeypatch.setattr(cache, "_memory", OrderedDict())


def _run_interpreted(executor, launch, prints=None):
    """As `Executor._run_both`, without native code."""
    with prints.reading(launch.memory) if prints else nullcontext():
        return executor._run_interpreted(launch)


_on_engine = Executor._on_engine


def _on_interpreter(executor):
    """As `Executor._on_engine`, without native code."""
    return executor._run_in_place if executor.engine == "jit" and executor.log is None else _on_engine(executor)


ON_INTERPRETER = {"fidelity", "language", "passes", "portability", "triton", "upstream"}
"""Folders of tests of what is lowered, and not of native code."""

_cache_of = KernelSource._cache


class Memory:
    """What the cache on disk keeps for users, in memory."""

    def __init__(self):
        self._kept = {}

    def kept(self, kind, key, make, **_):
        if (kind, key) not in self._kept:
            self._kept[kind, key] = make()
        return self._kept[kind, key]

    def clear(self):
        self._kept.clear()


LOWERED = Memory()
"""The kernels that the tests of a file have lowered."""


def _lower_once(item, patch):
    """Lower a kernel once for the tests of a file.

    Not for tests that may change the rules, and not for an eighth of all, as below.
    """

    def kept(source, options):
        cache, key = _cache_of(source, options)
        return (LOWERED if source.module.key and not cache.folder else cache), key

    if SHARE < 1 and _turn(item) and "monkeypatch" not in item.fixturenames:
        patch.setattr(KernelSource, "_cache", kept)


def _turn(item, turns=8):
    """A number of a test, by which so many tests take turns."""
    return zlib.crc32(item.nodeid.encode()) % turns


def _reduce_native_code(item, patch):
    """Reduce the native code that most tests compile, but none marked `native`, and none in `make sweep`.

    Three in four tests of the engines run quick code where launches are short. It is compiled in half the time,
    and compiling took more than half of theirs. The other tests always run quick code; seven in eight run
    `engine="both"` on the interpreter alone, and those of `ON_INTERPRETER` any engine, unless it is their parameter.
    """
    is_native = bool(item.get_closest_marker("native"))
    parts = {*item.path.parts}
    is_of_engines = "engines" in parts
    is_full = is_native or SHARE == 1 or _turn(item, 4 if is_of_engines else 8) == 0
    if is_native or (is_full and is_of_engines):
        patch.setattr(tiered_code, "QUICK_SECONDS", 0)
        patch.setattr(engine, "BRIEF", 0)
        return
    # In less time, optimized code does not save what its compilation takes.
    patch.setattr(tiered_code, "QUICK_SECONDS", 1)
    if is_full or is_of_engines:
        return
    patch.setattr(Executor, "_run_both", _run_interpreted)
    if parts & ON_INTERPRETER and "engine" not in item.fixturenames:
        patch.setattr(Executor, "_on_engine", _on_interpreter)
