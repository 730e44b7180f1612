"""A kernel is compiled again when anything that it refers to may have changed, whatever holds it."""

from __future__ import annotations

import array
import collections
import contextvars
import dataclasses
import enum
import functools
import os
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import xegpu_py
import xegpu_py.language as xl


class Slots:
    __slots__ = ("n",)


@dataclasses.dataclass(slots=True)
class Settings:
    n: int = 1


@dataclasses.dataclass(frozen=True)
class Frozen:
    n: int = 1


class Meta(type):
    n = 1


class OfMeta(metaclass=Meta):
    pass


class Descriptor:
    n = 1

    def __get__(self, owner: Any, kind: Any) -> int:
        return self.n


class Described:
    n = Descriptor()


class Computed:
    @property
    def n(self) -> int:
        return NUMBERS[0]

    def __getattr__(self, name: str) -> int:
        return NUMBERS[0]


class Base:
    n = 1


class Derived(Base):
    pass


class Numbers(list):
    pass


class Names(dict):
    pass


class Count(int):
    pass


class Kind(enum.Enum):
    ONE = 1

    def number(self) -> int:
        return NUMBERS[0]


class Pair(NamedTuple):
    n: int = 1

    def number(self) -> int:
        return NUMBERS[0]


def helper(n: int = 1) -> int:
    return n


def nine(n: int = 1) -> int:
    return 8 + n


HELPER_CODE = helper.__code__


@functools.lru_cache
def remembered() -> int:
    return NUMBERS[0]


def with_attribute() -> None:
    pass


SLOTS, SETTINGS, FROZEN, DESCRIBED, COMPUTED, DERIVED = (
    Slots(),
    Settings(),
    Frozen(),
    Described(),
    Computed(),
    Derived(),
)
NUMBERS, OWN, NAMES, COUNT = [1], Numbers([1]), Names(n=1), Count(1)
PAIR = Pair()
IN_SLOTS, IN_SETTINGS, IN_FROZEN, IN_DERIVED = Slots(), Settings(), Frozen(), Derived()
for holder in (IN_SLOTS, IN_SETTINGS, IN_FROZEN, IN_DERIVED):
    object.__setattr__(holder, "n", NUMBERS)
DEFAULTS, ORDERED, COUNTER = collections.defaultdict(int, n=1), collections.OrderedDict(n=1), collections.Counter(n=1)
BASE = {"n": [1]}
PROXY, CHAIN = types.MappingProxyType(BASE), collections.ChainMap({}, BASE)
USER_DICT, USER_LIST = collections.UserDict(n=1), collections.UserList([1])
OBJECTS, RECORDS = np.array([1, [1]], object), np.zeros(1, [("n", "i4")])
ARRAY, DEQUE, BYTES = array.array("i", [1]), collections.deque([1]), bytearray([1])
CONTEXT = contextvars.ContextVar("n", default=1)
VIEW = memoryview(BYTES)
PARTIAL = functools.partial(helper, n=1)
MODULE = types.ModuleType("of_a_user")
COUNT.n = 1
SLOTS.n = MODULE.n = with_attribute.n = 1
RECORDS["n"] = 1
os.environ["XEGPU_PY_TEST_N"] = "1"

CASES: dict[str, tuple[Callable[[], int], Callable[[], object]]] = {
    "slots": (lambda: SLOTS.n, lambda: setattr(SLOTS, "n", 9)),
    "dataclass with slots": (lambda: SETTINGS.n, lambda: setattr(SETTINGS, "n", 9)),
    "frozen dataclass": (lambda: FROZEN.n, lambda: object.__setattr__(FROZEN, "n", 9)),
    "metaclass": (lambda: OfMeta.n, lambda: setattr(Meta, "n", 9)),
    "descriptor": (lambda: DESCRIBED.n, lambda: setattr(Descriptor, "n", 9)),
    "property": (lambda: COMPUTED.n, lambda: NUMBERS.__setitem__(0, 9)),
    "computed attribute": (lambda: COMPUTED.other, lambda: NUMBERS.__setitem__(0, 9)),
    "base": (lambda: Derived.n, lambda: setattr(Base, "n", 9)),
    "base of an object": (lambda: DERIVED.n, lambda: setattr(Derived, "n", 9)),
    "list": (lambda: OWN[0], lambda: OWN.__setitem__(0, 9)),
    "dict": (lambda: NAMES["n"], lambda: NAMES.__setitem__("n", 9)),
    "attribute of an int": (lambda: COUNT.n, lambda: setattr(COUNT, "n", 9)),
    "defaultdict": (lambda: DEFAULTS["n"], lambda: DEFAULTS.__setitem__("n", 9)),
    "OrderedDict": (lambda: ORDERED["n"], lambda: ORDERED.__setitem__("n", 9)),
    "Counter": (lambda: COUNTER["n"], lambda: COUNTER.__setitem__("n", 9)),
    "mappingproxy": (lambda: PROXY["n"][0], lambda: BASE["n"].__setitem__(0, 9)),
    "ChainMap": (lambda: CHAIN["n"][0], lambda: BASE["n"].__setitem__(0, 9)),
    "UserDict": (lambda: USER_DICT["n"], lambda: USER_DICT.__setitem__("n", 9)),
    "UserList": (lambda: USER_LIST[0], lambda: USER_LIST.__setitem__(0, 9)),
    "array of objects": (lambda: OBJECTS[1][0], lambda: OBJECTS[1].__setitem__(0, 9)),
    "records": (lambda: RECORDS["n"][0], lambda: RECORDS.__setitem__("n", 9)),
    "array": (lambda: ARRAY[0], lambda: ARRAY.__setitem__(0, 9)),
    "deque": (lambda: DEQUE[0], lambda: DEQUE.__setitem__(0, 9)),
    "bytearray": (lambda: BYTES[0], lambda: BYTES.__setitem__(0, 9)),
    "memoryview": (lambda: VIEW[0], lambda: BYTES.__setitem__(0, 9)),
    "ContextVar": (lambda: CONTEXT.get(), lambda: CONTEXT.set(9)),
    "environ": (lambda: int(os.environ["XEGPU_PY_TEST_N"]), lambda: os.environ.__setitem__("XEGPU_PY_TEST_N", "9")),
    "getenv": (lambda: int(os.getenv("XEGPU_PY_TEST_N")), lambda: os.environ.__setitem__("XEGPU_PY_TEST_N", "9")),
    "defaults": (lambda: helper(), lambda: setattr(helper, "__defaults__", (9,))),
    "code": (lambda: helper(), lambda: setattr(helper, "__code__", nine.__code__)),
    "partial": (lambda: PARTIAL(), lambda: PARTIAL.keywords.__setitem__("n", 9)),
    "cache": (lambda: remembered(), lambda: (NUMBERS.__setitem__(0, 9), remembered.cache_clear())),
    "module": (lambda: MODULE.n, lambda: setattr(MODULE, "n", 9)),
    "module by a computed name": (lambda: getattr(MODULE, "n"), lambda: setattr(MODULE, "n", 9)),  # noqa: B009
    "method of an enumeration": (lambda: Kind.ONE.number(), lambda: NUMBERS.__setitem__(0, 9)),
    "method of a named tuple": (lambda: PAIR.number(), lambda: NUMBERS.__setitem__(0, 9)),
    "list in slots": (lambda: IN_SLOTS.n[0], lambda: NUMBERS.__setitem__(0, 9)),
    "list in a dataclass": (lambda: IN_SETTINGS.n[0], lambda: NUMBERS.__setitem__(0, 9)),
    "list in a frozen dataclass": (lambda: IN_FROZEN.n[0], lambda: NUMBERS.__setitem__(0, 9)),
    "list in an object": (lambda: IN_DERIVED.n[0], lambda: NUMBERS.__setitem__(0, 9)),
    "function": (lambda: with_attribute.n, lambda: setattr(with_attribute, "n", 9)),
}  # fmt: skip


def reset() -> None:
    NUMBERS[0] = OWN[0] = OBJECTS[1][0] = ARRAY[0] = DEQUE[0] = BYTES[0] = USER_LIST[0] = BASE["n"][0] = 1
    for names in (NAMES, DEFAULTS, ORDERED, COUNTER, USER_DICT, PARTIAL.keywords):
        names["n"] = 1
    for holder in (SLOTS, SETTINGS, Meta, Descriptor, Base, COUNT, MODULE, with_attribute):
        holder.n = 1
    if "n" in vars(Derived):
        del Derived.n
    object.__setattr__(FROZEN, "n", 1)
    RECORDS["n"] = 1
    helper.__defaults__, helper.__code__ = (1,), HELPER_CODE
    os.environ["XEGPU_PY_TEST_N"] = "1"
    CONTEXT.set(1)
    remembered.cache_clear()


def text_of(read: Callable[[], int]) -> tuple[Any, str]:
    """The version of a kernel that stores a number known when it is compiled, and its text."""
    version = KERNEL.bind(np.zeros(16, np.int32), f=read)[0]
    return version, str(version)


@xegpu_py.jit
def KERNEL(X, f: xl.Constexpr):
    xl.store(X + xl.arange(16), xl.full((16,), f(), xl.int32))


@pytest.mark.parametrize("name", CASES)
def test_what_a_kernel_refers_to_has_changed(name: str) -> None:
    read, change = CASES[name]
    reset()
    try:
        version, before = text_of(read)
        assert "dense<1>" in before and text_of(read) == (version, before)
        change()
        assert "dense<9>" in text_of(read)[1]
    finally:
        reset()
