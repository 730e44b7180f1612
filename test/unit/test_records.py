"""`xegpu_py.records.dataclass` against the standard library's."""

import copy
import dataclasses

import pytest

from xegpu_py import records
from xegpu_py.records import field


def classes(dataclass):
    @dataclass
    class Point:
        x: int
        y: int = 2
        z: list = field(default_factory=list)

        def __post_init__(self):
            self.z.append(self.x)

    @dataclass(frozen=True)
    class Name:
        text: str
        where: int = field(default=0, compare=False, repr=False)
        known: dict = field(default_factory=dict, init=False, compare=False)
        level: int = field(default=3, init=False)

    @dataclass(frozen=True)
    class Long(Name):
        more: str = "x"

        def __eq__(self, other):
            return super().__eq__(other) is True and self.more[:1] == other.more[:1]

    @dataclass(frozen=True, eq=False)
    class Same:
        value: int

        def __repr__(self):
            return "same"

    @dataclass(frozen=True)
    class Nothing:
        """No fields."""

    return Point, Name, Long, Same, Nothing


def outcome(call):
    try:
        found = call()
    except Exception as e:
        return type(e), str(e)
    return repr(found)


CALLS = (
    lambda point, name, long, same, nothing: [point(1), point(1, z=[5]), point(3, 4, [6]).z],
    lambda point, name, long, same, nothing: point(),
    lambda point, name, long, same, nothing: point(1, w=2),
    lambda point, name, long, same, nothing: [point(1) == point(1), point(1) == point(2), point(1) == name("a")],
    lambda point, name, long, same, nothing: hash(point(1)),
    lambda point, name, long, same, nothing: [name("a"), name("a", 5).where, name("a").known, name("a").level],
    lambda point, name, long, same, nothing: name("a", known={}),
    lambda point, name, long, same, nothing: name("a").known is name("a").known,
    lambda point, name, long, same, nothing: [name("a") == name("a", 1), hash(name("a")) == hash(name("a", 1))],
    lambda point, name, long, same, nothing: setattr(name("a"), "text", "b"),
    lambda point, name, long, same, nothing: delattr(name("a"), "text"),
    lambda point, name, long, same, nothing: [long("a"), long("a", more="xy") == long("a"), long("a") == name("a")],
    lambda point, name, long, same, nothing: {long("a"): 1}[long("a")],
    lambda point, name, long, same, nothing: [same(1), same(1) == same(1), len({same(1), same(1)})],
    lambda point, name, long, same, nothing: [nothing(), nothing() == nothing(), {nothing(): 1}],
    lambda point, name, long, same, nothing: nothing(1),
    lambda point, name, long, same, nothing: dataclasses.replace(point(1), y=5),
    lambda point, name, long, same, nothing: dataclasses.replace(name("a", 4), text="b").where,
    lambda point, name, long, same, nothing: [f.name for f in dataclasses.fields(long)],
    lambda point, name, long, same, nothing: [dataclasses.asdict(point(1)), dataclasses.astuple(name("a"))],
    lambda point, name, long, same, nothing: [copy.copy(point(1)), copy.deepcopy(name("a"))],
    lambda point, name, long, same, nothing: [cls.__match_args__ for cls in (point, name, long, same, nothing)],
)


@pytest.mark.parametrize("call", CALLS)
def test_records_are_dataclasses(call):
    ours, theirs = classes(records.dataclass), classes(dataclasses.dataclass)
    assert outcome(lambda: call(*ours)) == outcome(lambda: call(*theirs))


def test_records_compare_though_none_was_made_by_a_call():
    @records.dataclass(frozen=True)
    class Kept:
        name: str

    first, second = Kept.__new__(Kept), Kept.__new__(Kept)
    vars(first)["name"] = vars(second)["name"] = "a"
    assert first == second
    assert hash(first) == hash(second)
