"""Spaces, searches and files of kernels that are not legal: each is refused by a sentence."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import xegpu_py
from xegpu_py.extensions.tuning import search, verification
from xegpu_py.extensions.tuning.cluster import Cluster, TrialReport, needing
from xegpu_py.extensions.tuning.distributed_launch import Mapped, _travelling
from xegpu_py.extensions.tuning.kernel_space import Subject, module_text
from xegpu_py.extensions.tuning.space import Space, expression
from xegpu_py.plugins import MissingExtra

RANGE = "the range of parameter 'a' "


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"low": 1}, f"{RANGE}must have low and high, and may have step and log"),
        (
            {"low": 1, "high": 2, "by": 1, "at": 0},
            f"{RANGE}must have low and high, and may have step and log, but got at, by",
        ),
        ({"low": 2, "high": 1}, f"{RANGE}is not legal: {{'low': 2, 'high': 1}}"),
        ({"low": 0, "high": 1, "log": True}, f"{RANGE}is not legal"),
        ({"low": 0.0, "high": 1.0, "log": True}, f"{RANGE}is not legal"),
        ({"low": 1, "high": 2, "step": 0}, f"{RANGE}is not legal"),
        ({"low": 1, "high": 2, "step": -1}, f"{RANGE}is not legal"),
        ({"low": 1, "high": 2, "step": 1, "log": True}, f"{RANGE}is not legal"),
        ({"low": "1", "high": "2"}, f"{RANGE}is not legal"),
        ({"low": None, "high": 2}, f"{RANGE}is not legal"),
        ({"low": 1, "high": 2, "step": "1"}, f"{RANGE}is not legal"),
        ({"low": float("nan"), "high": 2}, f"{RANGE}is not legal"),
        ({"low": 1.0, "high": float("inf")}, f"{RANGE}is not legal"),
        ([], "parameter 'a' has no values"),
        ([1, 2, 1], "parameter 'a' has a value twice: [1, 2, 1]"),
    ],
)
def test_parameters(declared, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Space({"a": declared})


@pytest.mark.parametrize(
    ("declared", "values"),
    [
     ({"low": 0.5, "high": 2}, None), ({"low": 0.5, "high": 2.0, "step": 0.5}, [0.5, 1.0, 1.5, 2.0]),
     ({"low": 0, "high": 0}, [0]), ({"low": 1, "high": 1, "log": True}, [1]),
     ({"low": -1, "high": 2, "step": 3}, [-1, 2]), ("word", ["word"]), (range(0, 6, 5), [0, 5]),
     ([[1, 2], [2, 1]], [(1, 2), (2, 1)]), ([1, 1.0, True], [1, 1.0, True]),
    ],
)  # fmt: skip
def test_legal_parameters(declared, values):
    [parameter] = Space({"a": declared}).parameters
    assert [*map(repr, parameter.choices)] == [*map(repr, values or [])]
    assert values or (parameter.low, parameter.high) == (0.5, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a +", "grid 'a +' is no expression: invalid syntax"),
        ("a.b", "grid 'a.b' has 'a.b', which a grid may not have"),
        ("[a]()", "which a grid may not have"),
        ("a + c + max(b)", "grid 'a + c + max(b)' names 'c', which is neither a parameter nor a constant"),
    ],
)
def test_expressions(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        expression(text, ["a", "b"], "grid")


def test_values_of_expressions():
    names, value = expression("cdiv(a, 3) + min(a, b) - abs(-b) * max(1, a) ** 2", ["a", "b", "c"], "grid")
    assert names == {"a", "b"} and value({"a": 7, "b": 2, "c": 0}) == 3 + 2 - 2 * 49
    with pytest.raises(ValueError, match="grid '1 << a' has no value for {'a': 5000}: computes a number of more than"):
        expression("1 << a", ["a"], "grid")[1]({"a": 5000, "b": 1})


KERNEL = """gpu.module @m { gpu.func @fill(%y: memref<16xi32>) kernel {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : i32
  memref.store %c7, %y[%c0] : memref<16xi32>
  gpu.return } }"""
NONE = Space({"a": [1, 2]}, ["a > 2"])


def test_searches(tmp_path):
    pytest.importorskip("optuna", reason="the extra 'tune' is not installed")
    distributed = pytest.importorskip("distributed", reason="the extra 'tune' is not installed")
    assert distributed
    y = np.zeros(16, np.int32)

    def tune(space=NONE, **options):
        return search.tune(lambda a: KERNEL, space, [y], **{"budget": 1, "workers": 1, **options})

    (tmp_path / "folder.db").mkdir()
    for error, message, options in (
        (ValueError, "'sampler' must be one of tpe, nsga2, grid, random or None, but got 'best'", {"sampler": "best"}),
        (ValueError, "'budget' must be ", {"budget": 0}),
        (ValueError, f"'{tmp_path}/folder.db' is no journal that can be opened", {"journal": tmp_path / "folder.db"}),
        (ConnectionError, "there is no scheduler at tcp://127.0.0.1:1: ", {"scheduler": "tcp://127.0.0.1:1"}),
        (ValueError, "'scheduler' must be an address such as tcp://host:8786: ", {"scheduler": "nowhere://x:1"}),
        (TypeError, "'scheduler' must be ", {"scheduler": 5}),
    ):
        with pytest.raises(error, match=re.escape(message)):
            tune(**options)


def test_spaces_without_a_configuration(client):
    with pytest.raises(ValueError, match="no configuration of the space fulfils the constraints"):
        search.tune(lambda a: KERNEL, NONE, [np.zeros(16, np.int32)], budget=1, scheduler=client, sampler="grid")
    with pytest.raises(ValueError, match="no configuration of the space fulfils the constraints"):
        next(verification.verify(Subject(lambda a: KERNEL, ()), NONE, scheduler=client))


def test_files_of_kernels_and_arrays(tmp_path):
    kernel = xegpu_py.Kernel.from_assembly(xegpu_py.compile(KERNEL).asm)
    with pytest.raises(ValueError, match="the kernel has no module"):
        module_text(kernel, [])
    text = module_text(xegpu_py.compile(KERNEL, target="pvc", registers=256), ["one", "two"])
    assert text.startswith("// one\n// two\n") and xegpu_py.compile(text).options.registers == 256
    with pytest.raises(ValueError, match=f"the worker cannot map '{tmp_path}/none': No such file or directory"):
        Mapped(f"{tmp_path}/none", np.dtype(np.int32), (4,), 0).private()


def test_arrays_in_files_travel_as_places(tmp_path):
    """A whole array in a file does; a part of one, or a result of arithmetic with one, travels as its elements."""
    file = np.memmap(tmp_path / "a", np.int32, "w+", 8, (4, 6))
    file[:] = np.arange(24).reshape(4, 6)
    assert _travelling(file) == Mapped(str((tmp_path / "a").resolve()), np.dtype(np.int32), (4, 6), 8)
    turned = np.memmap(tmp_path / "a", np.int32, "r", 8, (6, 4), order="F")
    for part in (file[1:], file[:, ::2], file + 1, file.T, turned):
        found = _travelling(part)
        assert type(found) is np.ndarray and np.array_equal(found, part)
    plain = np.arange(3)
    assert _travelling(plain) is plain and _travelling(5) == 5


def test_a_missing_library_names_the_extra():
    with (
        pytest.raises(MissingExtra, match=r"pip install 'xegpu-py\[tune\]' .there is no 'no_such_module'.$"),
        needing("it"),
    ):
        import no_such_module  # noqa: F401


def test_rules_of_triton():
    with pytest.raises(ValueError, match="'prune_configs_by' has early_config_prune, perf_model and top_k, not best$"):
        xegpu_py.autotune([xegpu_py.Config({"N": 16})], key=[], prune_configs_by={"top_k": 2, "best": 1})


LOST = "its worker was lost"


@pytest.mark.parametrize(
    ("status", "outcome", "attempts", "expected"),
    [
        ("finished", TrialReport("done", 5), 1, TrialReport("done", 5)),
        ("finished", TrialReport("failed", "signal 9"), 1, TrialReport("failed", "signal 9")),
        ("finished", TrialReport("ended", "more than 5 s"), 1, TrialReport("ended", "more than 5 s")),
        # A child that somebody ended gets one more attempt.
        ("finished", TrialReport("ended", "signal 9"), 1, "signal 9"),
        ("finished", TrialReport("ended", "signal 9"), 2, TrialReport("ended", "signal 9")),
        ("finished", TrialReport("ended", "signal 9"), 3, TrialReport("ended", "signal 9")),
        ("error", ValueError("wrong"), 1, TrialReport("failed", "ValueError: wrong")),
        ("error", RuntimeError("scattered data"), 1, LOST),
        ("error", type("FutureCancelledError", (Exception,), {})(), 1, LOST),
        ("cancelled", None, 1, LOST),
        ("lost", None, 2, LOST),
    ],
)
def test_reports_of_jobs(status, outcome, attempts, expected):
    """The report of a trial, or why it starts again."""
    pytest.importorskip("distributed")
    future = SimpleNamespace(status=status, result=lambda: outcome, exception=lambda: outcome)
    cluster = SimpleNamespace(_retry=lambda job, why: why)
    assert Cluster._report(cluster, SimpleNamespace(future=future, attempts=attempts)) == expected


def test_attempts_of_a_trial():
    for attempts, again in ((1, True), (2, True), (3, False)):
        started = []
        job = SimpleNamespace(token="t", attempts=attempts)
        cluster = SimpleNamespace(_start=started.append, _jobs={"t": job})
        found = Cluster._retry(cluster, job, LOST)
        if again:
            assert found is None and started == [job] and job.attempts == attempts + 1 and cluster._jobs
        else:
            assert found == TrialReport("ended", f"{LOST}, 3 times") and not started and not cluster._jobs
