"""`make unexecuted` notes each statement of functions, and no other."""

import contextlib

import unexecuted

SOURCE = b'''"""A module."""
X = 1

class C:
    """A class."""
    y = 2

    def f(self, n):
        """A docstring."""
        if n > 0:
            m = 1
        elif n == 0:
            m = 2
        else:
            m = 3
        try:
            return 1 // n
        except ZeroDivisionError:
            for _ in range(n):
                m += 1
            else:
                m += 5
        finally:
            m += 7
        with open(f"/no/{n}") as file:
            def g():
                return file
        return m
'''

STATEMENTS = [10, 11, 12, 13, 15, 16, 17, 19, 20, 22, 24, 25, 26, 27, 28]


def executed(n: int) -> list[int]:
    module = {"__lines__": bytearray(64)}
    exec(unexecuted.marked(SOURCE, "m.py"), module)
    assert not any(module["__lines__"]) and module["C"].f.__doc__ == "A docstring."
    with contextlib.suppress(OSError):
        module["C"]().f(n)
    return [line for line, mark in enumerate(module["__lines__"]) if mark]


def test_statements_that_are_executed_are_marked() -> None:
    assert sorted(unexecuted.statements(SOURCE, "m.py")) == STATEMENTS
    assert executed(1) == [10, 11, 16, 17, 24]
    assert executed(-1) == [10, 12, 15, 16, 17, 24]
    assert executed(0) == [10, 12, 13, 16, 17, 19, 22, 24, 25]
