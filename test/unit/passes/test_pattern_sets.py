"""Sets of patterns import a module for ops whose names begin as the set says: it must name all beginnings."""

import importlib
import pkgutil

import pytest

from xegpu_py import passes
from xegpu_py.passes.common.patterns import PatternSet

MODULES = [m.name for m in pkgutil.walk_packages(passes.__path__, f"{passes.__name__}.")]
SETS = {
    f"{name}.{attribute}": found
    for name in MODULES
    for attribute, found in vars(importlib.import_module(name)).items()
    if isinstance(found, PatternSet) and found.modules
}


def test_all_sets_are_found() -> None:
    assert len({id(s) for s in SETS.values()}) >= 7


@pytest.mark.parametrize("name", SETS)
def test_modules_are_imported_for_their_ops(name: str) -> None:
    patterns = SETS[name]
    patterns.load()
    for op, function in patterns.items():
        known = patterns.modules.get(function.__module__)
        # None for the module of the set, which is always imported.
        assert known is None or op.startswith(known), f"{function.__module__} is not imported for {op}"
