"""Searches: spaces, journals, states of trials, limits. Workers and their children are real processes."""

import io
import json
import os
import re
import signal
import time
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from markdown import ROOT

import xegpu_py
from xegpu_py import language
from xegpu_py.extensions.tuning import search, verification
from xegpu_py.extensions.tuning.cluster import TrialReport
from xegpu_py.extensions.tuning.evaluation import (
    OBJECTIVES,
    RUNS,
    TrialLaunch,
    TrialOutcome,
    Trials,
    arrays_of,
    copied,
    counts_of,
    difference,
    launch_of,
    named_objectives,
)
from xegpu_py.extensions.tuning.kernel_space import Subject
from xegpu_py.extensions.tuning.space import Parameter, Space
from xegpu_py.extensions.tuning.verification import Verification, write_failure
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.runtime.host_arrays import PointerTable
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.tools import xegpu_run, xegpu_tune


@pytest.fixture
def optuna():
    return pytest.importorskip("optuna", reason="the extra 'tune' is not installed")


def test_space_of_lighthouse_has_its_published_size():
    space = Space.from_file(ROOT / "examples/lighthouse_space.toml")
    assert space.combinations == 2_657_205
    assert len(list(space)) == 5292


@pytest.mark.parametrize(
    ("declared", "values"),
    [
        ({"low": 1, "high": 4}, [1, 2, 3, 4]),
        ({"low": 3, "high": 3}, [3]),
        ({"low": 1, "high": 6, "step": 2}, [1, 3, 5]),
        ({"low": 2, "high": 16, "log": True}, [2, 4, 8, 16]),
        ({"low": 3, "high": 20, "log": True}, [3, 6, 12]),
    ],
)
def test_ranges_of_integers(declared, values):
    assert [c["a"] for c in Space({"a": declared})] == values


VALUES = [(5.0, 1.0), (3.0, 4.0), (4.0, 4.0), (6.0, 0.5), (3.0, 4.0), (2.0, 9.0)]
"""Of each trial; the third one is surpassed by the second."""


def test_counts_of_a_launch():
    text = """\
.version 3.8
.kernel "counted"
.decl In v_type=G type=uq num_elts=1 align=qword
.decl X v_type=G type=d num_elts=32 align=GRF
.decl N v_type=G type=d num_elts=1 align=dword
.decl P v_type=P num_elts=1
.input In offset=64 size=8
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    mov (M1, 1) N(0,0)<1> 0x0:d
Again:
    lsc_load.ugm (M1_NM, 1) X:d32x32t flat[In]:a64
    add (M1, 1) N(0,0)<1> N(0,0)<0;1,0> 0x1:d
    cmp.lt (M1, 1) P N(0,0)<0;1,0> 0x5:d
    (P) jmp (M1, 1) Again
    lsc_store.ugm (M1_NM, 1) flat[In]:a64 X:d32x32t
    ret (M1, 1)
"""
    kernel = Kernel.from_assembly(text)
    counts = counts_of(kernel.program, kernel(np.zeros(32, np.int32), grid=3))
    assert counts == {"instructions": 3 * 23, "messages": 3 * 6, "lines": 3 * 6 * 2, "dpas": 0}


def tuning_of(values, objectives=("instructions", "messages"), hosts=""):
    trials = [search.Trial(n, {"a": n}, "done", v, host=hosts[n : n + 1]) for n, v in enumerate(values)]
    trials.insert(1, search.Trial(99, {"a": 99}, "failed", message="it does not compile\nhere"))
    return search.Tuning(tuple(trials), objectives, Space({"a": list(range(100))}), None)


def test_the_best_trials():
    assert [t.number for t in tuning_of(VALUES).front] == [5, 1, 4, 0, 3]
    assert tuning_of(VALUES).best.number == 5
    assert tuning_of(VALUES, ("messages",)).best.number == 5, "the first value is of the first objective"
    # Times of another machine are not compared.
    times = [(n,) for n, _ in VALUES]
    assert tuning_of(times, ("jit",), "aabaab").best.number == 1
    with pytest.raises(ValueError, match="none of 1 configurations succeeded: it does not compile$"):
        assert tuning_of([]).best


def test_measured_launches_run_optimized_code():
    calls = []
    executor = SimpleNamespace(optimize=lambda: calls.append("optimize"))
    run = SimpleNamespace(kernel=SimpleNamespace(executor=executor), again=lambda: calls.append("run"))
    assert 0 <= OBJECTIVES["jit"](run) < 60 and calls == ["optimize", "run", *["run"] * RUNS]


def test_the_table_and_the_plot_of_a_search(tmp_path, monkeypatch):
    pytest.importorskip("pandas", reason="the extra 'tune' is not installed")
    figures = pytest.importorskip("matplotlib.figure", reason="the extra 'tune' is not installed")
    table = tuning_of(VALUES).table()
    assert table["number"].tolist() == [0, 99, 1, 2, 3, 4, 5] and table["state"].tolist()[:2] == ["done", "failed"]
    assert table["objective:messages"].tolist()[2:] == [4.0, 4.0, 0.5, 4.0, 9.0] and table["a"].tolist()[1] == 99
    drawn = []
    monkeypatch.setattr(figures.Figure, "savefig", lambda figure, path: drawn.append(figure))
    for found in (tuning_of(VALUES), tuning_of([v[:1] for v in VALUES], ("instructions",)), tuning_of([])):
        found.plot(tmp_path / "t.svg")
    both, one, none = (
        [[line.get_xydata().tolist() for line in axes.get_lines()] for axes in figure.axes] for figure in drawn
    )
    values = [[n, v[0]] for n, v in enumerate(VALUES, 1)]
    assert both[0] == one[0] == [values, [[n, v] for n, v in enumerate((5, 3, 3, 3, 3, 2), 1)]]
    assert both[1] == [[[*v] for v in VALUES], [[2, 9], [3, 4], [3, 4], [5, 1], [6, 0.5]]]
    assert len(one) == 1 and none == [[[], []], [[], []]]
    axes = drawn[0].axes
    assert [a.get_xlabel() for a in axes] == ["trial", "instructions"]
    assert [a.get_ylabel() for a in axes] == ["instructions", "messages"]
    assert axes[0].get_yscale() == "log" and drawn[2].axes[0].get_yscale() == "linear"
    shown = [[text.get_text() for text in a.get_legend().get_texts()] for a in axes]
    assert shown == [["trial", "best so far"], ["trial", "front"]]


def test_values_in_a_journal():
    """A journal holds JSON's values; each is the value of its own type again."""
    choices = (1, True, 1.0, "1", None, (1, 2), "(1, 2, 3)", 0, False)
    parameter = Parameter("a", choices)
    for value in choices:
        kept = Parameter.kept(value)
        assert json.loads(json.dumps(kept)) == kept
        assert parameter.of(kept) == value and type(parameter.of(kept)) is type(value)
    assert Parameter.kept((1, 2)) == "(1, 2)" and parameter.of("gone") == "gone"


@pytest.mark.usefixtures("optuna")
def test_the_sampler_of_one_and_of_several_objectives(monkeypatch):
    asked = []

    def sampler(kind, seed, objectives):
        asked.append((kind, seed, objectives))
        raise InterruptedError

    monkeypatch.setattr(search, "_sampler", sampler)
    for options in (
        {"objective": "instructions"},
        {"objective": ["instructions", "messages"], "seed": 5},
        {"objective": "instructions", "sampler": "random"},
    ):
        with pytest.raises(InterruptedError):
            xegpu_py.tune(scaled, {"ROWS": [8, 16]}, (), **options)
    assert [kind for kind, *_ in asked] == ["tpe", "nsga2", "random"]
    assert [count for *_, count in asked] == [1, 2, 1] and asked[1][1] == 5


@pytest.mark.usefixtures("optuna")
@pytest.mark.parametrize("kind", ["random", "tpe", "grid"])
def test_configurations_that_constraints_exclude_are_not_tried(kind, monkeypatch):
    space = Space({"a": range(6), "b": range(3)}, ["a % 2 == b % 2"])
    journal = search.Journal(None, "constraints", space, 1, search._sampler(kind, 1, 1))
    begun = search._Search(None, space, journal, 99, kind, 1, None, None)
    begun.listed = None
    tried = []

    def submit(self, number, configuration, key, with_output):
        tried.append(configuration)
        journal.taken[search._key(configuration)] = None
        journal.tell(number, search.Trial(number, configuration, "done", values=(1.0,)))

    monkeypatch.setattr(search._Search, "_submit", submit)
    while begun._begin("key"):
        pass
    assert sorted(tried, key=str) == sorted(space, key=str) and len(tried) == 9
    excluded = [t for t in journal.trials() if t.state == "excluded"]
    assert all(t.message == "the constraint 'a % 2 == b % 2' does not hold" for t in excluded)
    assert all((t.configuration["a"] + t.configuration["b"]) % 2 for t in excluded) and bool(excluded) == (
        kind != "grid"
    )


@pytest.mark.parametrize("stream", ["terminal", "file", None])
@pytest.mark.parametrize("shown", [False, True])
def test_the_bar_is_shown_on_terminals(stream, shown, monkeypatch):
    pytest.importorskip("tqdm", reason="the extra 'tune' is not installed")
    written = io.StringIO()
    written.isatty = lambda: stream == "terminal"
    monkeypatch.setattr(search.sys, "stderr", written if stream else None)
    with search._bar(shown, 3) as bar:
        assert bar.disable == (not (shown and stream == "terminal"))
        bar.update(2)
    assert ("2/3" in written.getvalue()) == (shown and stream == "terminal")


class FourWorkers:
    """A cluster whose trials end in order, one at each look."""

    capacity = 4

    def __init__(self):
        self.waiting, self.counts = [], []

    def load(self, problem):
        return "key"

    def submit(self, number, *_):
        self.waiting.append(number)

    def finished(self):
        self.counts.append(len(self.waiting))
        yield self.waiting.pop(0), TrialReport("done", TrialOutcome("done", (1.0,)))


@pytest.mark.usefixtures("optuna")
@pytest.mark.parametrize(("kind", "most"), [("grid", 8), ("random", 8), ("tpe", 5)])
def test_how_many_trials_are_at_the_workers(kind, most):
    """Twice as many as run at once, or few more where the next configuration depends on results."""
    space, cluster, shown = Space({"a": range(40)}), FourWorkers(), []
    journal = search.Journal(None, "waiting", space, 1, search._sampler(kind, 1, 1))
    bar = SimpleNamespace(update=shown.append, set_postfix_str=shown.append)
    begun = search._Search(SimpleNamespace(reference=[]), space, journal, 20, kind, 1, None, None)
    begun.run(cluster, bar)
    assert cluster.counts == [most] * (20 - most) + [*range(most, 0, -1)]
    assert shown == [0] + [1, "best 1"] * 20 and journal.tried == 20


@pytest.mark.usefixtures("optuna")
@pytest.mark.parametrize("objectives", [1, 2])
def test_what_a_sampler_is_told_of_trials(objectives):
    """It learns from those with values, also if it asks for one again; the table has each of these once."""
    space = Space({"a": [1, 2, 3, 4]})
    journal = search.Journal(None, "told", space, objectives, search._sampler("random", 1, objectives))
    values, other = (3.0,) * objectives, "FAIL" if objectives > 1 else "PRUNED"
    told = [
        ("done", values, "COMPLETE"),
        (search.REPEATED, (), other),
        (search.REPEATED, values, "COMPLETE"),
        ("excluded", (), other),
        ("failed", (), other),
        ("interrupted", (), "FAIL"),
    ]
    for state, values, _ in told:
        number, configuration = journal.ask()
        journal.tell(number, search.Trial(number, configuration, state, values=values))
    found = [(trial.state.name, tuple(trial.values or ())) for trial in journal._study.trials]
    assert found == [(state, values) for _, values, state in told]
    assert [t.state for t in journal.trials()] == ["done", "excluded", "failed", "interrupted"]


@pytest.mark.usefixtures("optuna")
@pytest.mark.parametrize(
    ("host", "alive", "state"), [("", False, "FAIL"), ("", True, "RUNNING"), ("x", False, "RUNNING")]
)
def test_trials_of_a_search_that_was_killed_end(host, alive, state, tmp_path, monkeypatch):
    """Those of this machine alone: of processes of others nothing is known."""
    asked = tmp_path / "journal.db", "killed", Space({"a": [1, 2]}), 1, search._sampler("random", 1, 1)
    monkeypatch.setattr(search.platform, "node", lambda: host or "here")
    search.Journal(*asked).ask()
    monkeypatch.setattr(search.platform, "node", lambda: "here")
    monkeypatch.setattr(search, "_alive", lambda pid: alive)
    [trial] = search.Journal(*asked)._study.trials
    assert trial.state.name == state


def halved(kind):
    """What is tuned: a function of the user's, which makes the launch of a configuration."""
    if kind == "refuses":
        raise ValueError("no such tile")
    if kind == "no launch":
        return 5

    def launch(x, y):
        if kind == "fails":
            raise ValueError("out of registers")
        y[:] = x / (3 if kind == "wrong" else 2)

    return launch


@pytest.mark.parametrize(
    ("kind", "objective", "state", "message"),
    [
        ("right", lambda run: run.arguments[1].sum(), "done", ""),
        ("right", lambda run: float("nan"), "failed", "the objective is not finite: (nan,)"),
        ("right", lambda run: float("inf"), "failed", "the objective is not finite: (inf,)"),
        ("right", lambda run: "fast", "failed", "the objective failed: could not convert string to float: 'fast'"),
        ("right", lambda run: int("x"), "failed", "the objective failed: invalid literal for int()"),
        ("wrong", lambda run: 1, "wrong", "array 1 differs from that of the first trial at (1,): 0.3333"),
        ("fails", lambda run: 1, "failed", "out of registers"),
        ("refuses", lambda run: 1, "refused", "no such tile"),
        (
            "no launch",
            lambda run: 1,
            "refused",
            "must be a launch such as kernel[grid], a module with a grid, or callable",
        ),
    ],
)
def test_how_a_configuration_is_judged(kind, objective, state, message):
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    trials = Trials(halved, (x, y), None, {"objective": objective}, [x, x / 2])
    for wanted in (False, True):
        outcome = trials.run(({"kind": kind}, wanted))
        assert outcome.state == state and message in outcome.message, outcome
        assert outcome.values == ((14.0,) if state == "done" else ())
        assert (outcome.outputs is not None) == (wanted and state == "done")
    assert not y.any() and x.tolist() == list(range(8))


def test_launches_of_all_that_can_be_made(tmp_path):
    """Each runs with its grid, and tells the objectives what it launches; a function of the user's does not."""
    x, y = np.ones((64, 32), np.float32), np.zeros((64, 32), np.float32)
    kernel = scaled.compile(x, y, FACTOR=3.0, ROWS=8)
    file = tmp_path / "kernel.mlir"
    file.write_text(str(kernel.ir("xetile")))
    with_rows = partial(scaled, FACTOR=3.0, ROWS=8)
    for made, grid, rows, target in (
        (scaled, 2, 16, "pvcxt"),
        (scaled, None, 8, "pvcxt"),
        (lambda: kernel, 2, 16, "pvcxt"),
        (lambda: (kernel, 3), 2, 24, "pvcxt"),
        (lambda: (file, 3), 2, 24, "pvcxt"),
        (lambda: (file, 3, {"target": "pvc"}), 2, 24, "pvc"),
        (lambda: file, None, 8, "pvcxt"),
        (lambda: partial(scaled[3], FACTOR=3.0, ROWS=8), 2, 24, "pvcxt"),
        (lambda: partial(with_rows, grid=3), 2, 24, "pvcxt"),
        (lambda: partial(with_rows, ROWS=16), 2, 32, "pvcxt"),
        (lambda: with_rows, None, 8, "pvcxt"),
        (lambda: lambda a, b: b[:5].fill(3.0), 2, 5, None),
    ):
        launch, y[:] = launch_of(made, {"FACTOR": 3.0, "ROWS": 8} if made is scaled else {}, grid), 0
        launch.run((x, y))
        assert (y[:rows] == 3).all() and not y[rows:].any()
        if target is None:
            assert launch.bound is None
        else:
            found = launch.bound((x, y))
            assert (found.grid * (16 if rows == 32 else 8), found.kernel.target.name) == (rows, target)
            assert found.given[0] is x and len(found.passed) == 2


def test_results_that_are_wanted_without_a_reference():
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    trials = Trials(halved, (x, y), None, {"one": lambda run: 1}, None)
    assert trials.run(({"kind": "wrong"}, False)).outputs is None
    first, second = trials.run(({"kind": "wrong"}, True)).outputs
    assert first.tolist() == x.tolist() and second.tolist() == (x / 3).tolist()


def test_arrays_of_tables_and_tuples():
    """The copies of an array that is passed twice are one; a part of a table of pointers is an array of integers."""
    a, b = np.zeros(4, np.float32), np.ones(4, np.float32)
    table = PointerTable([a, b])
    arguments = (table, (b, 3, (a,)), table[1:], 5)
    assert [id(array) for array in arrays_of(arguments[:2])] == [id(x) for x in (a, b, b, a)]
    assert [array.tolist() for array in arrays_of(arguments[2:])] == [[0]]
    copies = copied(arguments, {})
    found = list(arrays_of(copies))
    assert found[0] is found[3] and found[1] is found[2] and found[0] is not a
    assert [x.tolist() for x in found] == [[0] * 4, [1] * 4, [1] * 4, [0] * 4, [0]] and copies[3] == 5


@pytest.mark.parametrize("own", [None, {"other": 1}])
def test_the_configuration_that_objectives_see(own):
    """That of the search, unless a launch has one of its own."""
    seen = []
    made = lambda kind: TrialLaunch(lambda arguments: None, configuration=own)  # noqa: E731
    objectives = {"seen": lambda run: seen.append(run.configuration) or 1.0}
    assert Trials(made, (), None, objectives, None).run(({"kind": "x"}, False)).state == "done"
    assert seen == [own or {"kind": "x"}]


def test_what_cannot_be_tuned():
    for options, message in (
        ({"ROWS": 8, "COLUMNS": 3}, "kernel 'scaled' has no parameter 'COLUMNS', and it is no option of compile"),
        ({"ROWS": 8, "FACTOR": 2}, "kernel 'scaled' takes 2 further arguments, not 3"),
    ):
        with pytest.raises(TypeError, match=message):
            launch_of(scaled, options).run((1, 2, 3))
    with pytest.raises(ValueError, match="a search needs an objective"):
        named_objectives([])
    with pytest.raises(ValueError, match="'objective' must be one of .*, or a function, but got 'speed'"):
        named_objectives("speed")
    with pytest.raises(ValueError, match="a space needs a parameter"):
        Space({})
    with pytest.raises(ValueError, match="cannot be enumerated: parameter 'b' is a continuous range"):
        list(Space({"a": [1, 2], "b": {"low": 0.5, "high": 1.5}}))
    with pytest.raises(ValueError, match="autotune needs a Config"):
        xegpu_py.autotune([])(scaled)


def test_constraints_exclude_and_are_named():
    space = Space({"a": range(4), "b": [1, 2]}, ["a % b == 0", lambda a: a < 3])
    assert list(space) == [c for c in Space({"a": [0, 1, 2], "b": [1, 2]}) if c["a"] % c["b"] == 0]
    assert space.refusal({"a": 1, "b": 2}) == "the constraint 'a % b == 0' does not hold"
    assert Space({"a": [0, 1]}, ["1 % a == 0"]).refusal({"a": 0})


@pytest.mark.parametrize(
    ("parameters", "constraints", "message"),
    [
        ({"a": []}, [], "has no values"),
        ({"a": [1, 1]}, [], "has a value twice"),
        ({"a": {"low": 1}}, [], "must have low and high"),
        ({"a": [1]}, ["a.real"], "may not have"),
        ({"a": [1]}, ["min(a, 2)(3)"], r"has 'min\(a, 2\)\(3\)', which a constraint may not have"),
        ({"a": [1]}, ["b > 1"], "names 'b'"),
        ({"a": [1]}, ["a >"], "is no expression"),
    ],
)
def test_illegal_declarations(parameters, constraints, message):
    with pytest.raises(ValueError, match=message):
        Space(parameters, constraints)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("9**9**9 > n", "computes a number of more than 4096 bits"),
        ("n << 10**12 > 1", "computes a number of more than 4096 bits"),
        ("2**2047 * 2**2049 > n", "computes a number of more than 4096 bits"),
        ("'a' * 10**9 == n", "multiplies, shifts or raises other values than numbers"),
        ("[0] * 10**9 == n", "multiplies, shifts or raises other values than numbers"),
        ("'%999999999d' % n == 'a'", "multiplies, shifts or raises other values than numbers"),
        ("n < 'a'", "'<' not supported between instances of 'int' and 'str'"),
    ],
)
def test_expressions_take_bounded_time(text, message):
    sentence = re.escape(f"constraint '{text}' has no value for {{'n': 1}}: {message}")
    with pytest.raises(ValueError, match=sentence):
        list(Space({"n": [1]}, [text]))


def test_expressions_at_the_bounds():
    # The largest number has 4096 bits, and floats that overflow fulfil no constraint.
    assert len(list(Space({"n": [1]}, ["2**1023 * 2**1024 > n", "n << 4094 > 1", "3 % 2.0 == n"]))) == 1
    assert list(Space({"n": [1]}, ["2.0**99999 > n"])) == []
    with pytest.raises(ValueError, match="is no expression: "):
        Space({"n": [1]}, ["-" * 100_000 + "n"])


def test_a_space_file_that_is_no_toml_has_one_located_error(tmp_path):
    (tmp_path / "s.toml").write_text("[parameters\n")
    with pytest.raises(DiagnosticError, match=r"s\.toml:1:\d+: error: the space file is not TOML"):
        Space.from_file(tmp_path / "s.toml")


def test_results_are_compared_by_format():
    one = np.ones(4, np.float32)
    assert difference([one * np.float32(1 + 1e-6)], [one], None) is None
    assert "at (0,): 1.25 instead of 1.0" in difference([one * 1.25], [one], None)
    assert difference([one * np.float32(1 + 1e-6)], [one], 0.0)
    assert difference([np.arange(3)], [np.array([0, 1, 3])], None)


@xegpu_py.jit(subgroups=1)
def scaled(X, Y, FACTOR: xegpu_py.Constexpr, ROWS: xegpu_py.Constexpr):
    m = language.program_id(0) * ROWS
    Y.tile((ROWS, 32), at=(m, 0)).store(X.tile((ROWS, 32), at=(m, 0)).load() * FACTOR)


def troubled(kind):
    """A launch that gives another result, hangs, eats memory, or crashes, by its parameter."""

    def launch(y):
        if kind == "hangs":
            time.sleep(600)
        if kind == "eats":
            held = np.ones(1 << 29, np.uint8)
            time.sleep(600 * int(held[0]))
        if kind == "crashes":
            os.kill(os.getpid(), signal.SIGABRT)
        if kind == "refuses":
            raise ValueError("not this one")
        y[:] = 2 if kind == "wrong" else 1

    return launch


def test_a_search_finds_the_best_and_its_journal_goes_on(client, tmp_path):
    x, y = np.ones((64, 32), np.float32), np.zeros((64, 32), np.float32)
    space = Space({"FACTOR": [2, 3], "ROWS": [8, 16, 24, 32]}, ["64 % ROWS == 0"])
    options = {"grid": lambda v: 64 // v["ROWS"], "scheduler": client, "sampler": "grid"}
    options["journal"] = tmp_path / "journal.db"
    first = xegpu_py.tune(scaled, space, (x, y), "instructions", 2, **options)
    assert [t.configuration["ROWS"] for t in first.trials] == [8, 16]
    found = xegpu_py.tune(scaled, space, (x, y), "instructions", 10, **options)
    states = {(t.configuration["FACTOR"], t.configuration["ROWS"]): t.state for t in found.trials}
    assert states == {(f, r): "done" if f == 2 else "wrong" for f in (2, 3) for r in (8, 16, 32)}
    assert found.trials[:2] == first.trials
    assert found.best.values[0] == min(t.values[0] for t in found.done)
    assert not y.any()

    found.save(tmp_path / "t.parquet")
    found.plot(tmp_path / "t.svg")
    assert (tmp_path / "t.parquet").stat().st_size and "<svg" in (tmp_path / "t.svg").read_text()
    found.save_best(tmp_path / "best.mlir")
    kernel = xegpu_py.compile(tmp_path / "best.mlir")
    assert kernel.options.registers == found.best_kernel().options.registers == 256
    kernel(x, y, grid=64 // found.best.configuration["ROWS"])
    assert (y == 2).all()


def test_hanging_greedy_crashing_and_wrong_trials_are_named(client):
    y = np.zeros(4, np.int32)
    # The limits are far above what a child needs to start, and what a loaded machine needs for the other trials.
    told = {}
    for kinds, limit in (["fine", "hangs"], 5.0), (["fine", "eats", "crashes", "refuses", "wrong"], 60.0):
        limits = {"limit": limit, "memory": 450 << 20, "scheduler": client, "sampler": "grid"}
        found = xegpu_py.tune(troubled, {"kind": kinds}, (y,), lambda run: 1.0, **limits)
        told |= {t.configuration["kind"]: (t.state, t.message) for t in found.trials}
    assert told["fine"] == ("done", "")
    assert told["hangs"] == ("ended", "it exceeded the limit of 5 s")
    assert told["eats"] == ("ended", "it exceeded the limit of 450 MiB of memory")
    assert told["crashes"][0] == "ended" and "signal 6" in told["crashes"][1]
    assert told["refuses"] == ("failed", "not this one")
    assert told["wrong"][0] == "wrong" and "2 instead of 1" in told["wrong"][1]


def vanishing(folder, number):
    """A launch that fails once a file is in a folder."""

    def launch(y):
        if os.listdir(folder):
            raise ValueError("not any more")
        y[:] = 1

    return launch


def test_a_first_trial_that_cannot_be_repeated(client, tmp_path):
    """A search that goes on compares with the results of the journal's first trial, which it runs again."""
    folder, space = tmp_path / "folder", {"folder": [str(tmp_path / "folder")], "number": [1, 2]}
    folder.mkdir()
    options = {"scheduler": client, "sampler": "grid", "journal": tmp_path / "journal.db", "limit": 60.0}
    search = partial(xegpu_py.tune, vanishing, space, (np.zeros(4, np.int32),), lambda run: 1.0)
    search(1, **options)
    (folder / "file").touch()
    with pytest.raises(ValueError, match="the first trial of the journal cannot be repeated: not any more"):
        search(2, **options)


def test_autotune_searches_spaces_and_on_workers(client):
    x, y = np.ones((64, 32), np.float32), np.zeros((64, 32), np.float32)
    kernel = xegpu_py.jit(scaled.__kernel_function__, subgroups=1)
    space = Space({"ROWS": [8, 16, 24, 32], "registers": [128, 256]}, ["64 % ROWS == 0"])
    configs = [xegpu_py.Config({"ROWS": rows}) for rows in (8, 32, 16)]
    own = {"objective": "instructions", "scheduler": client}
    searched = xegpu_py.autotune(space, budget=6, sampler="grid", **own)(kernel)
    listed = xegpu_py.autotune(configs, restore_value=["X"], **own)(kernel)
    for tuned in (searched, listed):
        tuned[lambda v: 64 // v["ROWS"]](x, y, 2)
        assert (y == 2).all()
        ((key, costs),) = tuned.costs.items()
        assert tuned.best[key] == min(costs, key=lambda pair: pair[1])[0]
        y[:] = 0
    assert len(*searched.costs.values()) == 6 and len(*listed.costs.values()) == 3
    assert {c.options["registers"] for c, _ in next(iter(searched.costs.values()))} == {128, 256}
    with pytest.raises(TypeError, match="unexpected keyword argument 'schedule'"):
        xegpu_py.autotune(configs, schedule=client)
    with pytest.raises(TypeError, match="constraints instead of a function that prunes"):
        xegpu_py.autotune(space, prune=lambda configs, given: configs)(kernel)


FILE = """
from __future__ import annotations

import numpy as np

import xegpu_py
import xegpu_py.language as xl


@xegpu_py.jit(subgroups=1)
def scale(X, Y, FACTOR: xegpu_py.Constexpr, ROWS: xegpu_py.Constexpr):
    m = xl.program_id(0) * ROWS
    Y.tile((ROWS, 32), at=(m, 0)).store(X.tile((ROWS, 32), at=(m, 0)).load() * FACTOR)


def wrong(ROWS, engine, FACTOR=2):
    # Another kernel for native code, as if it were wrong.
    kernel = scale.with_options(engine=engine)
    return lambda x, y: kernel[x.shape[0] // ROWS](x, y, FACTOR + (engine == "jit" and len(x) > 16), ROWS)


arguments = np.ones((64, 32), np.float32), np.zeros((64, 32), np.float32)


def grid(values):
    return 64 // values["ROWS"]
"""


def test_the_tool_searches_and_verifies(client, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scale.py").write_text(FILE)
    (tmp_path / "s.toml").write_text("[parameters]\nROWS = [8, 16, 32]\nFACTOR = [2]\n")
    own = ["--scheduler", client.scheduler.address, "--space", "s.toml"]
    best = ["--objective", "instructions", "--sampler", "grid", "-o", "best.mlir", "--table", "t.csv"]
    assert xegpu_tune.run(["scale.py", *own, *best]) == 0
    out = capsys.readouterr().out
    rows = [line.split(",") for line in (tmp_path / "t.csv").read_text().splitlines()]
    rows_at, cost_at = rows[0].index("ROWS"), rows[0].index("objective:instructions")
    best = min(rows[1:], key=lambda row: float(row[cost_at]))
    assert len(rows) == 4 and "3 trials: 3 done" in out and f"ROWS = {best[rows_at]}" in out
    # The written module is a kernel of a file, too, whose grid is an expression.
    (tmp_path / "m.toml").write_text("constants = {m = 64}\nparameters = {ROWS = [32], registers = [128, 256]}\n")
    words = ["best.mlir", "ones:f32:64x32", "zeros:f32:64x32", "--grid", "m // ROWS", "--space", "m.toml", *own[:2]]
    assert xegpu_tune.run([*words, "--verify"]) == 0
    assert capsys.readouterr().out == "2 configurations: 2 done\n"

    text = (
        FILE.replace("arguments = np", "_ = np")
        + "\n\ndef arguments(rows):\n    return (*map(np.ones, 2 * [(rows, 32)]),)\n"
    )
    (tmp_path / "scale.py").write_text(text)
    (tmp_path / "s.toml").write_text("[parameters]\nROWS = [8]\nrows = [8, 16, 32, 64]\n")
    assert xegpu_tune.run(["scale.py", *own, "--kernel", "wrong", "--verify"]) == 1
    found = capsys.readouterr().out
    assert "by jit: array 1 differs from that of the reference at (0, 0): 3.0 instead of 2.0" in found
    assert "no file: the kernel is hidden by a function" in found and "4 configurations: 2 done, 2 wrong" in found


def test_a_failure_is_written_as_a_file_that_runs(tmp_path, monkeypatch):
    space = Space({"ROWS": [8, 16], "rows": [16, 32]})
    given = lambda rows: (np.ones((rows, 32), np.float32), np.zeros((rows, 32), np.float32))  # noqa: E731
    checked = Verification(Subject(scaled, lambda rows: (*given(rows), 2), lambda v: len(v["X"]) // v["ROWS"]), space)
    assert checked.run({"ROWS": 16, "rows": 32}).state == "done"
    monkeypatch.setattr(verification, "difference", lambda own, *_: "it differs" if len(own[0]) > 16 else None)
    verdict = checked.run({"ROWS": 16, "rows": 32})
    assert (verdict.state, verdict.smallest) == ("wrong", {"ROWS": 8, "rows": 32})
    path = write_failure(tmp_path, checked, verdict)
    monkeypatch.chdir(tmp_path)
    command = path.read_text().splitlines()[0].removeprefix("// xegpu-run ").split()
    assert command[-2:] == ["4", "--engine=both"]
    assert xegpu_run.run([*command, "-o", "1=out.npy"]) == 0
    assert (np.load("out.npy") == 2).all()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.py"], "cannot open 'none.py'"),
        (["two.py"], "has several kernels: a, b; --kernel NAME chooses one"),
        (["two.py", "--kernel", "c"], "defines no kernel or function 'c'"),
        (["two.py", "--kernel", "a"], "defines no 'arguments', and there is no ARG"),
        (["two.py", "i32:1", "--kernel", "a", "--grid", "n // BM"], "grid 'n // BM' names 'BM'"),
    ],
)
def test_mistakes_of_the_command_line(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text("[parameters]\nROWS = [8]\n")
    kernels = "".join(f"@xegpu_py.jit\ndef {name}(n):\n    pass\n\n\n" for name in "ab")
    (tmp_path / "two.py").write_text(f"import xegpu_py\n\n\n{kernels}")
    with pytest.raises(SystemExit) as ended:
        xegpu_tune.run([*words, "--space", "s.toml"])
    assert ended.value.code == 2 and message in capsys.readouterr().err
    (tmp_path / "broken.py").write_text("x = 1\ny = x + nothing\n")
    with pytest.raises(DiagnosticError, match=r"broken\.py:2:1: error: NameError: name 'nothing' is not defined"):
        xegpu_tune.run(["broken.py", "--space", "s.toml"])


def test_mistakes_of_calls():
    pytest.importorskip("optuna", reason="the extra 'tune' is not installed")
    with pytest.raises(ValueError, match="'objective' must be one of"):
        xegpu_py.tune(scaled, {"ROWS": [8]}, (), "speed")
    with pytest.raises(ValueError, match="cannot be enumerated: parameter 'ROWS' is a continuous range"):
        xegpu_py.tune(scaled, {"ROWS": {"low": 8.5, "high": 9.5}}, (), sampler="grid", workers=1)
    with pytest.raises(ValueError, match="'sampler' must be one of"):
        xegpu_py.tune(scaled, {"ROWS": [8]}, (), sampler="best")
