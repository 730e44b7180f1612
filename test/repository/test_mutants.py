"""Planted mistakes: none changes anything before it is active, and each active one changes its own place alone."""

import ast

import pytest
from mutants import mutations
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
