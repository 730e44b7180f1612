"""The memory of arguments: numpy, DLPack, packed elements, words of a command line, staged copies."""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from msgspec import Struct

from xegpu_py.numerics.formats import ARRAYS, STORAGE, Array, dtype_named, element_bits, pack_bytes, unpack_bytes
from xegpu_py.runtime.device_memory import Buffer, DeviceMemory, HostMemory, copy_sparse, zeros_aligned

# Arrays of the host as memory: which addresses they span, and which of them overlap.

Span = tuple[int, int]
"""The address of a first byte, and that after the last byte."""


def is_masked(given: object) -> bool:
    """Whether an object is an array of numpy.ma or another subclass of numpy's arrays with a mask."""
    return isinstance(given, np.ndarray) and type(given) is not np.ndarray and hasattr(given, "mask")


def check_numbers(array: np.ndarray[Any, Any], title: str) -> None:
    """Check that an array is one of plain numbers, as kernels access it.

    Raises:
        TypeError: if it has a mask, which kernels would ignore, or elements that are no numbers in native byte order.
    """
    dtype = array.dtype
    if is_masked(array):
        raise TypeError(f"{title} must be an array without a mask, but got a masked array; pass its data or filled()")
    if not dtype.isnative and dtype.kind in "iufc":
        raise TypeError(
            f"{title} must be an array of numbers in native byte order, but got an array of {dtype}; "
            f"astype({dtype.name!r}) makes a copy in native byte order"
        )
    if dtype.hasobject or dtype.fields or dtype.kind in "SUMm" or not dtype.isnative:
        raise TypeError(f"{title} must be an array of numbers in native byte order, but got an array of {dtype}")


def span_of(array: np.ndarray[Any, Any]) -> Span:
    """The bytes between the first and the last element of an array.

    Raises:
        ValueError: if it has a negative stride, or spans more than the host's memory.
    """
    start = int(array.ctypes.data)
    if array.size == 0:
        return start, start
    if any(s < 0 for s in array.strides):
        raise ValueError("has a negative stride; use numpy.ascontiguousarray")
    end = start + sum((n - 1) * s for n, s in zip(array.shape, array.strides)) + array.itemsize
    if end >= 1 << 63:
        raise ValueError(f"has strides of {array.strides} bytes, which reach beyond the host's memory")
    return start, end


def memory_between(start: int, end: int) -> Array:
    """This process's memory between two addresses, uint8. The caller keeps the memory alive."""
    if start == end:
        return np.zeros(0, np.uint8)
    memory: Any = (ctypes.c_uint8 * (end - start)).from_address(start)
    return np.ndarray(end - start, np.uint8, memory)


class Window(np.ndarray[Any, Any]):
    """An array argument of whose memory a kernel may access more than the elements: what precedes and follows them too.

    Attributes:
        span: the addresses of all that may be accessed.
    """

    span: Span

    @classmethod
    def at(cls, first: int, start: int, end: int, dtype: np.dtype[Any]) -> Window:
        """The elements from an address up to the end of the memory in which it lies, which begins at `start`.

        The caller keeps the memory alive.
        """
        count = max(end - first, 0) // dtype.itemsize
        made = memory_between(first, first + count * dtype.itemsize).view(dtype).view(cls)
        made.span = start, end
        return made

    @classmethod
    def of(cls, array: np.ndarray[Any, Any]) -> Window:
        """A contiguous array as its own window."""
        made = array.view(cls)
        made.span = span_of(array)
        return made

    def __array_finalize__(self, made_from: Any) -> None:
        self.span = getattr(made_from, "span", (0, 0))

    def is_aligned(self, alignment: int) -> bool:
        """Whether its first element is so many bytes, or a multiple, behind the begin of what may be accessed."""
        return not self.size or (int(self.ctypes.data) - self.span[0]) % alignment == 0


def overlapping(spans: Sequence[Span]) -> list[list[int]]:
    """The numbers of spans in groups, ordered by their first members. Spans of different groups do not overlap."""
    groups: list[list[int]] = []
    for i, (start, end) in enumerate(spans):
        touching = [g for g in groups if any(start < spans[j][1] and spans[j][0] < end for j in g)]
        groups = [g for g in groups if g not in touching] + [[j for g in touching for j in g] + [i]]
    return sorted((sorted(g) for g in groups), key=min)


def copy_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy with the same strides and alignment, for which a kernel has the same version."""
    made: np.ndarray[Any, Any]
    if not array.size or min(array.strides, default=0) < 0:
        made = array.copy()
        return made
    start, end = span_of(array)
    memory = np.zeros(end - start + 64, np.uint8)
    offset = (start - memory.ctypes.data) % 64
    made = np.ndarray(array.shape, array.dtype, memory, offset, array.strides)
    made[...] = array
    return made


# Arrays of other libraries as numpy arrays of the same memory, by DLPack.
#
# numpy's own `from_dlpack` supports neither bf16 nor 8-bit floats, and makes read-only arrays.
#
# Source: DLPack, dlpack.h of version 1.1, and its Python specification.

_CPU = (1, 3)
"""Devices in the host's memory: kDLCPU and kDLCUDAHost."""

_INT, _UINT, _FLOAT, _BFLOAT, _BOOL, _E4M3FN, _E5M2 = 0, 1, 2, 4, 6, 10, 12

_DTYPES: dict[tuple[int, int], Any] = {
    **{(_INT, bits): np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{(_UINT, bits): np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{(_FLOAT, bits): np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    (_BFLOAT, 16): np.dtype(ml_dtypes.bfloat16),
    (_BOOL, 8): np.dtype(bool),
    (_E4M3FN, 8): np.dtype(ml_dtypes.float8_e4m3fn),
    (_E5M2, 8): np.dtype(ml_dtypes.float8_e5m2),
}
"""The numpy types by DLPack's type code and width."""


class _Tensor(ctypes.Structure):
    """`DLTensor`, with which a `DLManagedTensor` begins."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Memory:
    """The memory of a capsule. numpy arrays refer to this object, which keeps the capsule alive."""

    def __init__(self, capsule: Any, interface: dict[str, Any]) -> None:
        self.capsule, self.__array_interface__ = capsule, interface


def from_dlpack(given: Any) -> np.ndarray[Any, Any]:
    """A numpy array of the memory of an object with `__dlpack__`; nothing is copied.

    Raises:
        TypeError: if it is not in the host's memory, or numpy has no type for its elements.
    """
    device = given.__dlpack_device__()[0]
    if int(device) not in _CPU:
        raise TypeError(f"an array must lie in the host's memory, but DLPack says device {int(device)}")
    capsule = given.__dlpack__()
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _Tensor.from_address(address(capsule, b"dltensor"))
    dtype = _DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise TypeError(
            f"DLPack's elements of code {tensor.code}, {tensor.bits} bits and {tensor.lanes} lanes have no type"
        )
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(n * dtype.itemsize for n in tensor.strides[: tensor.ndim]) if tensor.strides else None
    data = (tensor.data or 0) + tensor.byte_offset
    if not data or 0 in shape:
        return np.zeros(shape, dtype)
    bits = f"|u{dtype.itemsize}" if dtype.itemsize == 1 else f"<u{dtype.itemsize}"
    interface = {"shape": shape, "typestr": bits, "strides": strides, "data": (data, False), "version": 3}
    return np.asarray(_Memory(capsule, interface)).view(dtype)


# The caller's arrays in device memory while a kernel runs.


class _Given(Struct):
    """An array argument: its input's name, its own and its memory's name in messages, the addresses from `start` up to
    `end`, and the address of its first element."""

    name: str
    array: np.ndarray[Any, Any]
    title: str
    memory: str
    start: int
    end: int
    first: int


class PointerTable(np.ndarray[Any, np.dtype[np.int64]]):
    """An argument of a kernel: the addresses, on the device, of arrays that a launch moves there, as int64.

    Attributes:
        arrays: the arrays; a part of a table has none.
    """

    arrays: tuple[np.ndarray[Any, Any], ...]

    def __new__(cls, arrays: Iterable[Any]) -> PointerTable:
        held = tuple(np.asarray(a) if hasattr(a, "__array_interface__") else from_dlpack(a) for a in arrays)
        made = np.zeros(len(held), np.int64).view(cls)
        made.arrays = held
        return made

    def __array_finalize__(self, made_from: Any) -> None:
        self.arrays = ()

    def __reduce__(self) -> Any:
        return (PointerTable, (self.arrays,)) if self.arrays else super().__reduce__()


class Staged:
    """The array arguments of a launch, copied to device memory and back, as if the kernel worked on them in place.

    An array that is passed twice is one buffer; other arrays that share elements are an error. If an array lies between
    the rows of a strided array, it does on the device too. The bytes between the rows of a strided array can be
    accessed, as on a GPU, and are copied back too.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory = memory
        self._given: list[_Given] = []
        self._packed: list[tuple[_Given, Buffer]] = []
        self._groups: list[tuple[list[_Given], int, Buffer]] = []
        self._in_place: list[tuple[list[_Given], int, Buffer]] = []
        self._tables: list[tuple[str, list[str], Buffer]] = []

    def add_table(self, name: str, table: PointerTable, title: str, memory: str) -> None:
        """Add a table of pointers and the arrays to which they point; errors as of `add`."""
        buffer = self._memory.allocate(memory, table.nbytes)
        names = [f"{name}[{i}]" for i in range(len(table))]
        self._tables.append((name, names, buffer))
        for i, (one, array) in enumerate(zip(names, table.arrays)):
            self.add(one, array, f"array {i} of {title}", f"{memory}[{i}]")

    def add(self, name: str, array: np.ndarray[Any, Any], title: str, memory: str, packed: bool = False) -> None:
        """Add the array of an input.

        Args:
            title, memory: the names in messages of the argument and of its memory.
            packed: whether the kernel accesses the elements of a strided array as contiguous, in row-major order.

        Raises:
            TypeError: if it has a mask, or its elements are not numbers in native byte order.
            ValueError: if it has a negative stride.
        """
        check_numbers(array, title)
        if packed and not array.flags.c_contiguous:
            buffer = self._memory.allocate(memory, array.nbytes)
            self._memory.bytes_of(buffer)[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            self._packed.append((_Given(name, array, title, memory, 0, 0, 0), buffer))
            return
        try:
            start, end = array.span if isinstance(array, Window) else span_of(array)
        except ValueError as e:
            raise ValueError(f"{title} {e}") from None
        first = int(array.ctypes.data) if array.size else start
        self._given.append(_Given(name, array, title, memory, start, end, first))

    def addresses(self) -> dict[str, bytes]:
        """Move all arrays to device memory; returns their addresses by the names of their inputs.

        Arrays are copied, except those that native code can access in place.

        Raises:
            ValueError: if different arrays overlap, or a packed array shares memory with another one.
        """
        found = {given.name: np.uint64(buffer.address).tobytes() for given, buffer in self._packed}
        for given, _ in self._packed:
            for other in [*self._given, *(g for g, _ in self._packed if g is not given)]:
                if _share_elements(given.array, other.array):
                    raise ValueError(f"{given.title} shares memory with {other.title}, and is not contiguous")
        for numbers in overlapping([(g.start, g.end) for g in self._given]):
            members = [self._given[i] for i in numbers]
            _refuse_overlaps(members)
            start, end = min(m.start for m in members), max(m.end for m in members)
            names = ", ".join(m.memory for m in members)
            if (
                isinstance(self._memory, HostMemory)
                and start % 8 == 0
                and all(m.array.flags.writeable for m in members)
            ):
                self._in_place.append((members, start, self._memory.attach(names, memory_between(start, end))))
                continue
            buffer = self._memory.allocate(names, end - start)
            copy_sparse(self._memory.bytes_of(buffer), memory_between(start, end))
            self._groups.append((members, start, buffer))
        found |= {
            m.name: np.uint64(buffer.address + m.first - start).tobytes()
            for members, start, buffer in [*self._groups, *self._in_place]
            for m in members
        }
        for name, parts, buffer in self._tables:
            self._memory.bytes_of(buffer)[:] = np.frombuffer(b"".join(map(found.pop, parts)), np.uint8)
            found[name] = np.uint64(buffer.address).tobytes()
        return found

    @property
    def in_place(self) -> bool:
        """Whether the kernel accesses all arrays where they are."""
        return not self._packed and not self._groups and not self._tables

    def write_back(self, kernel: str) -> None:
        """Copy the arrays that the kernel changed back.

        Raises:
            ValueError: if a read-only array has changed. Nothing is copied then.
        """
        packed = []
        for given, buffer in self._packed:
            elements = self._memory.bytes_of(buffer).view(given.array.dtype).reshape(given.array.shape)
            if elements.tobytes() != given.array.tobytes():
                packed.append((given.array, elements))
                if not given.array.flags.writeable:
                    raise ValueError(f"{given.title} is read-only, but kernel '{kernel}' writes to it")
        changed = []
        for members, start, buffer in self._groups:
            now, before = self._memory.bytes_of(buffer), memory_between(start, start + buffer.bytes)
            if not np.array_equal(now, before):
                changed.append((members, now, before))
                for m in members:
                    own = slice(m.start - start, m.end - start)
                    if not m.array.flags.writeable and not np.array_equal(now[own], before[own]):
                        raise ValueError(f"{m.title} is read-only, but kernel '{kernel}' writes to it")
        for _, now, before in changed:
            before[:] = now
        for array, elements in packed:
            array[...] = elements


def _refuse_overlaps(members: list[_Given]) -> None:
    """Check that each two arrays are the same memory, or share no elements.

    Raises:
        ValueError: if two different arrays share elements.
    """
    for a, b in itertools.combinations(members, 2):
        if (a.start, a.end) != (b.start, b.end) and _share_elements(a.array, b.array):
            raise ValueError(f"{b.title} overlaps {a.title.rstrip(',')}; give one array for both, or a copy")


def _share_elements(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether arrays have an element in common. True also if that takes too long to find out."""
    most: Any = 1 << 20
    try:
        return np.shares_memory(a, b, max_work=most)
    except np.exceptions.TooHardError:
        return True


# Kernel arguments written as words, as on a command line.

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
    try:
        if text.endswith(".npy"):
            return _load(text)
        if head in _GENERATORS:
            return _generate(head, rest, text)
    except MemoryError as e:
        raise ValueError(f"argument '{text}' does not fit the memory: {e}") from None
    if head in DTYPES:
        return _number(DTYPES[head], rest, text)
    known = ", ".join([*_GENERATORS, *DTYPES])
    raise ValueError(f"argument '{text}' is neither a .npy file nor begins with one of {known}")


def _load(text: str) -> Array:
    name, colon, path = text.partition(":")
    dtype = DTYPES.get(name) if colon else None
    path = path if dtype is not None else text
    if os.path.exists(path) and not os.path.isfile(path):
        # Reading a pipe that nobody writes to would not end.
        raise ValueError(f"argument '{text}': it is not a regular file")
    try:
        with Path(path).open("rb") as file, warnings.catch_warnings():
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
    return DTYPES[name]


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
    return np.where(rng.random(shape) < 0.5, found, special).view(dtype)


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
    # Beyond infinity are signaling NaNs, and beyond the canonical NaN those with payloads.
    rest = np.array([np.inf, np.nan]).astype(dtype).view(held)
    near = np.concatenate([near, rest, rest + held.type(1)])
    return np.concatenate([near, near | held.type(1 << (8 * dtype.itemsize - 1))]).view(dtype)


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


class PackedArrays:
    """The packed copies of a launch's arrays of one element a byte; changes are copied back after the launch."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, int], tuple[Array, Array, Array, int]] = {}

    def pack(self, argument: Any, element: str, title: str) -> Any:
        """The packed copy of an array of ml_dtypes' type for an element; other arguments are returned unchanged.

        Args:
            element: MLIR's name of the element type.
            title: the array's name in errors.

        Returns:
            uint8[..., n / elements of a byte], with the array's strides in whole bytes.

        Raises:
            ValueError: if rows of the packed array would not begin at bytes, or the array overlaps another one.
        """
        names = ARRAYS.get(element, ())
        if not isinstance(argument, np.ndarray) or argument.dtype.name not in names:
            return argument
        bits = element_bits(element)
        each = 8 // bits
        strides = [s if n > 1 else 0 for s, n in zip(argument.strides, argument.shape)]
        if strides and strides[-1] not in (0, 1):
            raise ValueError(f"{title} has elements that do not lie side by side; numpy.ascontiguousarray makes it so")
        if any(s < 0 for s in strides) or any(s % each for s in strides[:-1]):
            raise ValueError(f"{title} has rows that begin within a byte when packed; let them be multiples of {each}")
        count = sum((n - 1) * s for n, s in zip(argument.shape, strides)) + 1 if argument.size else 0
        start = int(argument.ctypes.data)
        for (other, size), _ in self._held.items():
            if start < other + size and other < start + count and (other, size) != (start, count):
                raise ValueError(f"{title} overlaps another array of elements of {bits} bits; give a copy")
        if (start, count) not in self._held:
            flat: Array = np.lib.stride_tricks.as_strided(argument.view(np.uint8), (count,), (1,))
            packed = pack_bytes(flat, bits)
            packed.flags.writeable = argument.flags.writeable
            self._held[start, count] = (flat, packed, packed.copy(), bits)
        packed = self._held[start, count][1]
        shape = (*argument.shape[:-1], -(-argument.shape[-1] // each)) if argument.ndim else ()
        steps = (*(s // each for s in strides[:-1]), 1) if argument.ndim else ()
        if argument.flags.c_contiguous:
            return packed.reshape(shape)
        return np.lib.stride_tricks.as_strided(packed, shape, steps, writeable=argument.flags.writeable)

    def write_back(self) -> None:
        """Copy changes of the packed copies back to the arrays."""
        for flat, packed, before, bits in self._held.values():
            changed = np.flatnonzero(packed != before)
            each = 8 // bits
            places = (changed[:, None] * each + np.arange(each)).ravel()
            values = unpack_bytes(packed[changed], bits)
            flat[places[places < len(flat)]] = values[places < len(flat)]


def packed_shape(shape: Sequence[int | None], element: str) -> tuple[int | None, ...]:
    """The shape of a packed array in bytes; None for unknown extents."""
    bits = element_bits(element)
    if not bits or not shape or shape[-1] is None:
        return tuple(shape)
    return (*shape[:-1], -(-shape[-1] * bits // 8))
