"""Kernel arguments written as words, as on a command line."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from xegpu_py.numerics.formats import STORAGE, Array, dtype_named
from xegpu_py.runtime.memory import zeros_aligned

DTYPES: dict[str, Any] = {name: dtype_named(storage) for name, storage in STORAGE.items()}
"""Element types by MLIR's names."""

_SHAPE = re.compile(r"\d+(?:x\d+)*\Z")

FORMS = """\
values of ARG, in the order of the kernel's arguments (SHAPE is such as 64x64):
  a.npy, bf16:a.npy            an array in a file; numpy's files have no
                               names for some types, which precede it
  i32:5, f32:1.5               a number
  zeros:TYPE:SHAPE             zeros
  ones:TYPE:SHAPE              ones
  full:TYPE:SHAPE:VALUE        an array of one value
  arange:TYPE:SHAPE            0, 1, 2, ...
  randn:TYPE:SHAPE[:seed=N]    normally distributed numbers
  rand:TYPE:SHAPE[:seed=N]     uniform from 0 to 1, or any integers
  small:TYPE:SHAPE[:seed=N]    integers from -4 to 4, or from 0 to 8 if unsigned
  bits:TYPE:SHAPE[:seed=N]     random bits, and values such as infinities"""
"""The forms of an argument, for help texts."""


def parse_argument(text: str) -> Any:
    """The array or number that a word describes; see `FORMS`.

    Raises:
        ValueError: if the word has none of these forms. The message quotes it.
        OSError: if its file cannot be read.
    """
    head, _, rest = text.partition(":")
    if text.endswith(".npy"):
        return _load(text)
    if head in _GENERATORS:
        return _generate(head, rest, text)
    if head in DTYPES:
        return _number(DTYPES[head], rest, text)
    known = ", ".join([*_GENERATORS, *DTYPES])
    raise ValueError(f"argument '{text}' is neither a .npy file nor begins with one of {known}")


def _load(text: str) -> Array:
    name, colon, path = text.partition(":")
    dtype = DTYPES.get(name) if colon else None
    try:
        with Path(path if dtype is not None else text).open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array: Array = np.lib.format.read_array(file, allow_pickle=False)
    except OSError:
        raise
    except Exception:
        # numpy evaluates the header as a Python literal: its errors are of any kind, from tokens to memory.
        raise ValueError(f"argument '{text}': the file is not an array in numpy's format") from None
    # numpy's files store arrays of ml_dtypes' types as untyped bytes.
    if dtype is not None and array.dtype != dtype:
        if array.dtype.itemsize != dtype.itemsize:
            raise ValueError(f"argument '{text}': the file's elements are {array.dtype}, not {name}")
        array = array.view(dtype)
    return _aligned(array)


def _aligned(array: Array) -> Array:
    made = zeros_aligned(array.shape, array.dtype)
    made[...] = array
    return made


def _dtype(name: str, text: str) -> np.dtype[Any]:
    if name not in DTYPES:
        raise ValueError(f"argument '{text}': unknown type '{name}'; there are {', '.join(DTYPES)}")
    found: np.dtype[Any] = DTYPES[name]
    return found


def _number(dtype: np.dtype[Any], word: str, text: str) -> Any:
    try:
        if _is_integer(dtype):
            value = int(word, 0)
            info = _limits(dtype)
            if not info.min <= value <= info.max:
                raise ValueError
            return np.array(value, dtype)[()]
        return np.array(float(word), dtype)[()]
    except ValueError:
        raise ValueError(f"argument '{text}': '{word}' is not a number of type {dtype}") from None


def _generate(kind: str, rest: str, text: str) -> Array:
    words = rest.split(":")
    if len(words) < 2 or not _SHAPE.match(words[1]):
        raise ValueError(f"argument '{text}': expected {kind}:TYPE:SHAPE, such as {kind}:f32:64x64")
    dtype, shape = _dtype(words[0], text), tuple(map(int, words[1].split("x")))
    # Operating systems allocate more memory than they have, and kill the process that uses it.
    size = math.prod(shape) * dtype.itemsize
    if size > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
        raise ValueError(f"argument '{text}': cannot allocate {size} bytes")
    extra = words[2:]
    if kind in _RANDOM:
        return _aligned(_RANDOM[kind](_seeded(extra, text), dtype, shape))
    if kind in _PLAIN:
        if extra:
            raise ValueError(f"argument '{text}': unexpected '{':'.join(extra)}' after the shape")
        return _aligned(_PLAIN[kind](shape, dtype))
    if len(extra) != 1:
        raise ValueError(f"argument '{text}': expected full:TYPE:SHAPE:VALUE")
    return _aligned(np.full(shape, _number(dtype, extra[0], text), dtype))


def _seeded(extra: list[str], text: str) -> np.random.Generator:
    if len(extra) > 1 or (extra and not re.match(r"seed=\d+\Z", extra[0])):
        raise ValueError(f"argument '{text}': expected nothing or seed=N after the shape")
    return np.random.default_rng(int(extra[0][5:]) if extra else 0)


def _is_integer(dtype: np.dtype[Any]) -> bool:
    return bool(np.issubdtype(dtype, np.integer)) or _is_narrow(dtype)


def _limits(dtype: np.dtype[Any]) -> Any:
    return ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]


def _is_narrow(dtype: np.dtype[Any]) -> bool:
    return dtype in (DTYPES["i4"], DTYPES["ui4"], DTYPES["i2"], DTYPES["ui2"])


def _rand(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    if _is_integer(dtype):
        info = _limits(dtype)
        wide: Any = np.int8 if _is_narrow(dtype) else dtype
        return rng.integers(info.min, info.max, shape, wide, endpoint=True).astype(dtype, copy=False)
    return rng.random(shape).astype(dtype)


def _small(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    first, last = (0, 8) if dtype.kind == "u" else (-4, 4)
    if _is_narrow(dtype):
        info = _limits(dtype)
        first, last = max(int(info.min), -4), min(int(info.max), 4 if info.min else 8)
    return rng.integers(first, last + 1, shape).astype(dtype)


def _bits(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    if _is_narrow(dtype):
        return _rand(rng, dtype, shape)
    held = np.dtype(f"uint{8 * dtype.itemsize}")
    found = rng.integers(0, np.iinfo(held).max, shape, held, endpoint=True)
    special = rng.choice(_special_bits(dtype).view(held), shape)
    kept: Array = np.where(rng.random(shape) < 0.5, found, special).view(dtype)
    return kept


def _special_bits(dtype: np.dtype[Any]) -> Array:
    """Special values and their neighbours: the least and greatest numbers, zeros, ones, infinities, NaNs."""
    if _is_integer(dtype):
        info = _limits(dtype)
        found: Array = np.array([info.min, info.min + 1, 0, 1, 2, info.max - 1, info.max], dtype)
        return np.concatenate([found, np.array([-1 % (int(info.max) + 1), 7, 100], dtype)])
    finfo = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    held = np.dtype(f"uint{8 * dtype.itemsize}")
    ordinary = [0.5, 1, 1.5, 2, 3, 10]
    positive = np.array([0, finfo.smallest_subnormal, finfo.smallest_normal, *ordinary, finfo.max], dtype)
    near = positive.view(held)
    near = np.concatenate([near, near + held.type(1), near[1:] - held.type(1)])
    near = np.concatenate([near, np.array([np.inf, np.nan]).astype(dtype).view(held)])
    signed: Array = np.concatenate([near, near | held.type(1 << (8 * dtype.itemsize - 1))]).view(dtype)
    return signed


_RANDOM: dict[str, Callable[[np.random.Generator, np.dtype[Any], tuple[int, ...]], Array]] = {
    "randn": lambda rng, dtype, shape: rng.standard_normal(shape).astype(dtype),
    "rand": _rand,
    "small": _small,
    "bits": _bits,
}
_PLAIN: dict[str, Callable[[tuple[int, ...], np.dtype[Any]], Array]] = {
    "arange": lambda shape, dtype: np.arange(math.prod(shape)).reshape(shape).astype(dtype),
    "zeros": np.zeros,
    "ones": np.ones,
}
_GENERATORS = (*_RANDOM, *_PLAIN, "full")
