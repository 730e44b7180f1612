"""The types of arguments of public functions: the mechanism, and that every door has it."""

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest

import xegpu_py
from xegpu_py import numerics
from xegpu_py.argument_types import Range, check, checked
from xegpu_py.runtime.options import Options

ACCEPTED = [
    (5, int),
    (np.int64(5), int),
    (True, bool),
    (np.True_, bool),
    (5, float),
    (np.float32(5), float),
    ("a", str),
    (None, int | None),
    (Path("a"), str | Path),
    ("a", Literal["a", "b"] | None),
    ([1, 2], Sequence[int]),
    (range(3), Sequence[int]),
    (np.arange(3), Sequence[int]),
    ((1, 2), tuple[int, ...]),
    ((1, "a"), tuple[int, str]),
    ({"a": 1}, Mapping[str, Any]),
    (len, Callable[..., Any]),
    (64, Annotated[int, Range(0, 64)]),
    (0, Annotated[int, Range(0, 64)] | None),
    (object(), Any),
    ([object()], Sequence[Any]),
]

REFUSED = [
    (True, int, TypeError, "'x' must be an integer, but got True"),
    (1.0, int, TypeError, "'x' must be an integer, but got 1.0"),
    ("1", int | None, TypeError, "'x' must be an integer or None, but got '1'"),
    (1, bool, TypeError, "'x' must be True or False, but got 1"),
    ("no", bool, TypeError, "'x' must be True or False, but got 'no'"),
    (False, float, TypeError, "'x' must be a number, but got False"),
    (b"a", str | Path, TypeError, "'x' must be a string or a Path, but got b'a'"),
    ("c", Literal["a", "b"] | None, ValueError, "'x' must be one of a, b or None, but got 'c'"),
    (3, Literal["a", "b"], TypeError, "'x' must be one of a, b, but got 3"),
    ("ab", Sequence[str], TypeError, "'x' must be a list of which each element is a string, but got 'ab'"),
    ([1, "a"], Sequence[int], TypeError, "'x' must be a list of which each element is an integer, but got [1, 'a']"),
    *((value, tuple[int, str], TypeError, "'x' must be a list") for value in ((1,), (1, 2), ("a", "b"), (1, "a", 2))),
    (5, Mapping[str, Any], TypeError, "'x' must be a Mapping, but got 5"),
    (5, Callable[..., Any], TypeError, "'x' must be a function, but got 5"),
    (65, Annotated[int, Range(0, 64)], ValueError, "'x' must be 0 to 64, but got 65"),
    (-1, Annotated[int, Range(0, 64)] | None, ValueError, "'x' must be 0 to 64, but got -1"),
    (0, Annotated[int, Range(1)], ValueError, "'x' must be at least 1, but got 0"),
    (5, Callable, TypeError, "'x' must be a function, but got 5"),
    (5, os.PathLike, TypeError, "'x' must be a Path, but got 5"),
    (5, np.ndarray, TypeError, "'x' must be a ndarray, but got 5"),
    ("x" * 99, int, TypeError, "'x' must be an integer, but got a str"),
    (np.zeros((2, 2)), int, TypeError, "'x' must be an integer, but got a ndarray"),
    (np.array([1.5]), Sequence[int], TypeError, "'x' must be a list of which each element is an integer"),
    (np.arange(2), tuple[int, ...], TypeError, "'x' must be a list"),
    (np.array([1, "a"], object), Sequence[int], TypeError, "'x' must be a list of which each element is an integer"),
    (np.array(1), Sequence[int], TypeError, "'x' must be a list"),
    (np.bool_(True), int, TypeError, "'x' must be an integer, but got"),
]


@pytest.mark.parametrize(("value", "hint"), ACCEPTED)
def test_values_of_a_type_are_accepted(value, hint):
    check("x", value, hint)


@pytest.mark.parametrize(("value", "hint", "error", "message"), REFUSED)
def test_other_values_are_refused(value, hint, error, message):
    with pytest.raises(error, match=re.escape(message)):
        check("x", value, hint)


def test_all_kinds_of_parameters_are_checked():
    @checked
    def function(first: int, *rest: int, option: bool = False, **others: int) -> tuple[Any, ...]:
        """Its documentation."""
        return first, rest, option, others

    assert function(1, 2, 3, option=True, other="free") == (1, (2, 3), True, {"other": "free"})
    assert function.__doc__ == "Its documentation."
    wrong: list[Any] = [(("a",), {}, "first"), ((1, 2, "a"), {}, "argument 2"), ((1,), {"option": 1}, "option")]
    for arguments, keywords, name in wrong:
        with pytest.raises(TypeError, match=f"'{name}' must be "):
            function(*arguments, **keywords)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'first'"):
        function()


class Wrong:
    """A value of no type of ours."""


_NAMES = (
    "compile", "parse", "import_upstream", "run_pipeline", "register_pass", "load_program", "bisect", "tune",
    "zeros_aligned", "Space",
)  # fmt: skip

DOORS = {name: getattr(xegpu_py, name) for name in _NAMES}

UNCHECKED = {"scheduler"}
"""Parameters of types that only type checkers import."""


@pytest.mark.parametrize("name", DOORS)
def test_every_typed_parameter_of_a_door_is_checked(name):
    parameters = list(inspect.signature(DOORS[name]).parameters.values())
    typed = [p for p in parameters if p.annotation not in (p.empty, "Any", Any) and p.kind is not p.VAR_KEYWORD]
    tried = [p for p in typed if p.name not in UNCHECKED]
    assert tried
    for parameter in tried:
        arguments: tuple[Any, ...] = ()
        keywords: dict[str, Any] = {parameter.name: Wrong()}
        if parameter.kind is parameter.VAR_POSITIONAL:
            arguments, keywords = (*["a"] * parameters.index(parameter), Wrong()), {}
        with pytest.raises(TypeError, match=r"^'[\w ]+' must be .*, but got .*Wrong"):
            DOORS[name](*arguments, **keywords)


@pytest.mark.parametrize("name", Options.__struct_fields__)
def test_every_option_is_checked(name):
    with pytest.raises((TypeError, ValueError), match=f"'{name}' must be |there are "):
        Options(**{name: Wrong()})


def test_threads_and_lengths_are_bounded():
    for given, message in (
        ({"threads": 0}, "'threads' must be 1 to "),
        ({"threads": 10**9}, "'threads' must be 1 to "),
        ({"prefetch": 65}, "'prefetch' must be 0 to 64, but got 65"),
        ({"schedules": -1, "check": ("races",)}, "'schedules' must be at least 0"),
    ):
        with pytest.raises(ValueError, match=message):
            Options(**given)
    assert Options(threads=1024, prefetch=64).prefetch == 64


def test_descriptors_of_files_are_no_files():
    with pytest.raises(TypeError, match="'module' must be .* but got 0"):
        xegpu_py.compile(0)
    with pytest.raises(ValueError, match="must not contain the character 0"):
        xegpu_py.compile(Path("a\0b.mlir"))


def test_matrices_that_do_not_match_are_refused():
    types = {"W": "hf", "A": "hf", "dst_type": "f", "src0_type": "f"}
    a, b, acc = np.zeros((8, 16), np.float16), np.zeros((16, 4), np.float16), np.zeros((8, 4), np.float32)
    assert numerics.multiply(acc, a, b, **types).shape == (8, 4)
    with pytest.raises(
        ValueError, match=re.escape("'a' and 'b' must be [M, K] and [K, N], but got [8, 16] and [15, 4]")
    ):
        numerics.multiply(acc, a, b[:15], **types)
    with pytest.raises(ValueError, match=re.escape("but got [16] and [16, 4]")):
        numerics.multiply(acc, a[0], b, **types)
    with pytest.raises(ValueError, match=re.escape("'acc' must be [8, 4], but got [4, 8]")):
        numerics.multiply(acc.T, a, b, **types)
    with pytest.raises(ValueError, match="'W' must be one of .* but got 'bfloat16'"):
        numerics.multiply(acc, a, b, **{**types, "W": "bfloat16"})


def test_numbers_of_the_host_are_checked():
    with pytest.raises(ValueError, match="'b' must not be 0"):
        xegpu_py.cdiv(4, 0)
    with pytest.raises(TypeError, match="'a' must be .*, but got '4'"):
        xegpu_py.cdiv("4", 2)
    with pytest.raises(ValueError, match="'n' must be at least 0, but got -3"):
        xegpu_py.next_power_of_2(-3)
    assert (xegpu_py.cdiv(7, 2), xegpu_py.next_power_of_2(0)) == (4, 1)
