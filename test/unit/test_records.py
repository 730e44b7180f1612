import dataclasses
import pickle
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from xegpu_py.records import record


def made(decorator: Any, **options: Any) -> Any:
    @decorator(**options)
    class Record:
        """A record."""

        first: int
        second: str = "b"
        third: list[int] = field(default_factory=list)
        fourth: int = field(default=4, compare=False, repr=False)
        fifth: list[int] = field(default_factory=list, init=False, compare=False)
        shared: ClassVar[int] = 6

        def __post_init__(self) -> None:
            object.__setattr__(self, "sixth", self.first + 1)

    return Record


@pytest.mark.parametrize("options", [{}, {"frozen": True}, {"eq": False}, {"frozen": True, "eq": False}])
def test_records_behave_as_dataclasses(options: dict[str, bool]) -> None:
    for cls in (made(dataclass, **options), made(record, **options)):
        x = cls(1, third=(1, 2))
        assert repr(x).endswith("Record(first=1, second='b', third=(1, 2), fifth=[])")
        assert (x.sixth, x.shared, x.fifth, cls(2).third) == (2, 6, [], [])
        assert cls(1).fifth is not cls(1).fifth and cls(1).third is not cls(1).third
        same, equal = cls(1, "b", (1, 2), 5), options.get("eq", True)
        assert (x == same, x != same) == (equal, not equal)
        assert x != cls(2, third=(1, 2)) and x != (1, "b", (1, 2))
        assert (cls.__hash__ is None) == (equal and "frozen" not in options)
        if cls.__hash__ is not None:
            assert (hash(x) == hash(same)) == equal
        assert dataclasses.replace(x, first=7).sixth == 8
        assert [f.name for f in dataclasses.fields(x)] == ["first", "second", "third", "fourth", "fifth"]
        with pytest.raises(TypeError):
            cls()
        with pytest.raises(TypeError):
            cls(1, fifth=[])
        if "frozen" in options:
            with pytest.raises(AttributeError):
                x.first = 2
            with pytest.raises(AttributeError):
                del x.first
        else:
            x.first = 2
            assert x.first == 2


@record(frozen=True)
class Base:
    first: int

    def __repr__(self) -> str:
        return "own"


@record(frozen=True)
class Derived(Base):
    second: int = 2


def test_inherited_and_own_methods_are_kept() -> None:
    assert repr(Base(1)) == "own" and repr(Derived(1)) == "Derived(first=1, second=2)"
    assert Base(1) != Derived(1) and pickle.loads(pickle.dumps(Derived(1))) == Derived(1)
