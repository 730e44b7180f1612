"""The variable that an error of an indirect operand names: the nearest one."""

from types import SimpleNamespace

import pytest

from xegpu_py.engines.interpreter import nearest_base


@pytest.mark.parametrize(
    ("at", "name", "distance"),
    [
        (90, "a", -10), (100, "a", 0), (163, "a", 63), (164, "a", 64), (170, "a", 70),
        (181, "a", 81), (183, "b", -17), (199, "b", -1), (230, "b", 30), (500, "b", 300),
    ],
)  # fmt: skip
def test_the_nearest_variable(at, name, distance):
    """Before its first byte, within it, or behind its last one; a is at 100 to 163, and b at 200 to 231."""
    a, b = SimpleNamespace(name="a", bytes=64), SimpleNamespace(name="b", bytes=32)
    layout = SimpleNamespace(offset=lambda base: {"a": 100, "b": 200}[base.name])
    for bases in ((a, b), (b, a)):
        base, offset = nearest_base(SimpleNamespace(bases=bases), at, layout)
        assert (base.name, offset) == (name, distance)
