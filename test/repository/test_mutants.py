"""Planted mistakes: none changes anything before it is active, and each active one changes its own place alone."""

import ast

import numpy as np
import pytest
import recorder
from mutants import mutations, run
from mutants.mutations import Planter

SOURCE = '''
def f(a, b=2):
    """Count."""
    total = 0
    for x in reversed(a):
        if x < 4 and not x == b:
            continue
        total += min(x, 10) - 1 if x != 5 else -b
    return total
'''


def planted(chosen: dict[int, int]):
    planter = Planter(chosen)
    tree = ast.fix_missing_locations(planter.visit(ast.parse(SOURCE)))
    names = {"__mutant__": mutations.ACTIVE}
    exec(compile(tree, "f.py", "exec"), names)
    return names["f"], planter


@pytest.fixture(autouse=True)
def inactive(monkeypatch):
    monkeypatch.setattr(mutations, "ACTIVE", [0])


def test_each_mistake():
    _, planter = planted({})
    every = {site: site + 1 for site in range(len(planter.sites))}
    function, planter = planted(every)
    assert planter.texts.keys() == every.keys()
    inputs = [[], [0, 1, 2, 3, 4], [5, 12, 11], [2, 3, 7], [1, 10, 0]]
    right = [function(values) for values in inputs]
    assert right == [planted({})[0](values) for values in inputs]
    changed = {}
    for site, number in every.items():
        mutations.ACTIVE[0] = number
        # A mistake may be an error.
        try:
            changed[site] = [function(values) for values in inputs] != right
        except (TypeError, UnboundLocalError):
            changed[site] = True
    unseen = {planter.texts[site] for site, differs in changed.items() if not differs}
    # A sum has one value in each order.
    assert unseen == {("reversed(a)", "a")}
    assert ("continue", "") in planter.texts.values()
    assert ("x < 4 and (not x == b)", "x < 4") in planter.texts.values()


def test_mistakes_are_of_named_functions_and_areas():
    paths = ("xegpu_py/numerics/rounding.py", "passes/xegpu_dce.py")
    files = {path: {name for name, _ in mutations.planted(path).sites} for path in paths}
    chosen = mutations.choose(files, 20, seed=1)
    assert len(chosen) == 20 and chosen == mutations.choose(files, 20, seed=1)
    assert chosen != mutations.choose(files, 20, seed=2)
    areas = [mutations.area(m.file) for m in chosen]
    assert areas.count("numerics") == areas.count("passes") == 10
    for mutation in chosen:
        assert mutation.function in files[mutation.file]
        assert mutation.original != mutation.changed


def test_the_nearest_tests_judge_first(monkeypatch):
    """Those that execute what few others of the file do, then the shortest; others before many parameters of one."""
    common, own, other = (f"xegpu_py/cache.py:{name}" for name in ("common", "own", "other"))
    elsewhere = [f"xegpu_py/collector.py:f{n}" for n in range(3)]
    numbers = {name: n for n, name in enumerate((common, own, other, *elsewhere), 1)}
    executed = {
        "test_far.py::test_kernel": (0.1, [common, *elsewhere]),
        "test_far.py::test_more": (0.1, [common, *elsewhere[:2]]),
        "test_cache.py::test_slow": (9.0, [common, own]),
        **{f"test_cache.py::test_all[{n}]": (0.1 * n, [common, own, other]) for n in range(5)},
    }
    tests = {
        name: (seconds, np.array([numbers[f] for f in used], np.uint32)) for name, (seconds, used) in executed.items()
    }
    monkeypatch.setattr(recorder, "read", lambda: (numbers, tests))
    files, costs = run.candidates(["xegpu_py/cache.py"])
    assert files == {"xegpu_py/cache.py": {"common", "own", "other"}}
    order = run.in_turns(costs[common])
    assert order == [
        *(f"test_cache.py::test_all[{n}]" for n in range(4)), "test_far.py::test_more", "test_cache.py::test_all[4]",
        "test_far.py::test_kernel", "test_cache.py::test_slow",
    ]  # fmt: skip
    assert run.in_turns(costs[other]) == [f"test_cache.py::test_all[{n}]" for n in range(5)]
