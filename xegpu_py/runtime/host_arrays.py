"""The memory of arguments: numpy, DLPack, packed elements, words of a command line, staged copies."""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from xegpu_py.deferred import deferred, pattern
from xegpu_py.numerics.formats import ARRAYS, STORAGE, Array, dtype_named, element_bits, pack_bytes, unpack_bytes
from xegpu_py.runtime.device_memory import Buffer, DeviceMemory, HostMemory, copy_sparse, zeros_aligned

if TYPE_CHECKING:
    import ml_dtypes
else:
    ml_dtypes = deferred("ml_dtypes")

# Arrays of the host as memory: which addresses they span, and which of them overlap.

Span = tuple[int, int]
"""The address of a first byte, and that after the last byte."""


def is_masked(argument: object) -> bool:
    """Whether an object is an array of numpy.ma or another subclass of numpy's arrays with a mask."""
    return isinstance(argument, np.ndarray) and type(argument) is not np.ndarray and hasattr(argument, "mask")


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
    last_byte = start + sum((n - 1) * s for n, s in zip(array.shape, array.strides)) + array.itemsize
    if last_byte >= 1 << 63:
        raise ValueError(f"has strides of {array.strides} bytes, which reach beyond the host's memory")
    return start, last_byte


def memory_between(start: int, stop: int) -> Array:
    """This process's memory between two addresses, uint8. The caller keeps the memory alive."""
    if start == stop:
        return np.zeros(0, np.uint8)
    memory: Any = (ctypes.c_uint8 * (stop - start)).from_address(start)
    return np.ndarray(stop - start, np.uint8, memory)


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
    for i, (span_start, span_end) in enumerate(spans):
        touching = [g for g in groups if any(span_start < spans[j][1] and spans[j][0] < span_end for j in g)]
        groups = [g for g in groups if g not in touching] + [[j for g in touching for j in g] + [i]]
    return sorted((sorted(g) for g in groups), key=min)


def copy_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy with the same strides and alignment, for which a kernel has the same version."""
    copy: np.ndarray[Any, Any]
    if not array.size or min(array.strides, default=0) < 0:
        copy = array.copy()
        return copy
    start, last_byte = span_of(array)
    memory = np.zeros(last_byte - start + 64, np.uint8)
    offset = (start - memory.ctypes.data) % 64
    copy = np.ndarray(array.shape, array.dtype, memory, offset, array.strides)
    copy[...] = array
    return copy


# Arrays of other libraries as numpy arrays of the same memory, by DLPack.
#
# numpy's own `from_dlpack` supports neither bf16 nor 8-bit floats, and makes read-only arrays.
#
# Source: DLPack, dlpack.h of version 1.1, and its Python specification.

_CPU = (1, 3)
"""Devices in the host's memory: kDLCPU and kDLCUDAHost."""

_INT, _UINT, _FLOAT, _BFLOAT, _BOOL, _E4M3FN, _E5M2 = 0, 1, 2, 4, 6, 10, 12

_DTYPES = {
    **{(_INT, bits): f"int{bits}" for bits in (8, 16, 32, 64)},
    **{(_UINT, bits): f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{(_FLOAT, bits): f"float{bits}" for bits in (16, 32, 64)},
    (_BFLOAT, 16): "bfloat16",
    (_BOOL, 8): "bool",
    (_E4M3FN, 8): "float8_e4m3fn",
    (_E5M2, 8): "float8_e5m2",
}
"""The names of numpy's types by DLPack's type code and width."""


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


def from_dlpack(exporter: Any) -> np.ndarray[Any, Any]:
    """A numpy array of the memory of an object with `__dlpack__`; nothing is copied.

    Raises:
        TypeError: if it is not in the host's memory, or numpy has no type for its elements.
    """
    device = exporter.__dlpack_device__()[0]
    if int(device) not in _CPU:
        raise TypeError(f"an array must lie in the host's memory, but DLPack says device {int(device)}")
    capsule = exporter.__dlpack__()
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _Tensor.from_address(address(capsule, b"dltensor"))
    name = _DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if name is None:
        raise TypeError(
            f"DLPack's elements of code {tensor.code}, {tensor.bits} bits and {tensor.lanes} lanes have no type"
        )
    dtype = dtype_named(name)
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(n * dtype.itemsize for n in tensor.strides[: tensor.ndim]) if tensor.strides else None
    data = (tensor.data or 0) + tensor.byte_offset
    if not data or 0 in shape:
        return np.zeros(shape, dtype)
    interface = {
        "shape": shape,
        "typestr": f"<u{dtype.itemsize}",
        "strides": strides,
        "data": (data, False),
        "version": 3,
    }
    return np.asarray(_Memory(capsule, interface)).view(dtype)


# The caller's arrays in device memory while a kernel runs.


class _StagedArray(Struct):
    """An array argument: its input's name, its own and its memory's name in messages, the addresses from `start` up to
    `end`, and the address of its first element."""

    name: str
    array: np.ndarray[Any, Any]
    title: str
    memory: str
    start: int
    end: int
    first: int


def _table_entry(array: Any) -> np.ndarray[Any, Any]:
    if isinstance(array, Window):
        return array
    if hasattr(array, "__array_interface__"):
        return np.asarray(array)
    if hasattr(array, "__dlpack__"):
        return from_dlpack(array)
    raise TypeError(f"'arrays' must be a list of arrays, but an element is a {type(array).__name__}")


class PointerTable(np.ndarray[Any, np.dtype[np.int64]]):
    """An argument of a kernel: the addresses, on the device, of arrays that a launch moves there, as int64.

    Attributes:
        arrays: the arrays; a part of a table has none.
    """

    arrays: tuple[np.ndarray[Any, Any], ...]

    def __new__(cls, arrays: Iterable[Any]) -> PointerTable:
        if not isinstance(arrays, Iterable) or getattr(arrays, "ndim", 1) == 0:
            raise TypeError(f"'arrays' must be a list of arrays, but got {arrays!r}")
        arrays_held = tuple(_table_entry(a) for a in arrays)
        table = np.zeros(len(arrays_held), np.int64).view(cls)
        table.arrays = arrays_held
        return table

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
        self._arrays: list[_StagedArray] = []
        self._packed: list[tuple[_StagedArray, Buffer]] = []
        self._groups: list[tuple[list[_StagedArray], int, Buffer]] = []
        self._in_place: list[tuple[list[_StagedArray], int, Buffer]] = []
        self._tables: list[tuple[str, list[str], Buffer]] = []

    def add_table(self, name: str, table: PointerTable, title: str, memory: str) -> None:
        """Add a table of pointers and the arrays to which they point; errors as of `add`."""
        buffer = self._memory.allocate(memory, table.nbytes)
        names = [f"{name}[{i}]" for i in range(len(table))]
        self._tables.append((name, names, buffer))
        for i, (array_name, array) in enumerate(zip(names, table.arrays)):
            self.add(array_name, array, f"array {i} of {title}", f"{memory}[{i}]")

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
            self._packed.append((_StagedArray(name, array, title, memory, 0, 0, 0), buffer))
            return
        try:
            start, end = array.span if isinstance(array, Window) else span_of(array)
        except ValueError as e:
            raise ValueError(f"{title} {e}") from None
        first = int(array.ctypes.data) if array.size else start
        self._arrays.append(_StagedArray(name, array, title, memory, start, end, first))

    def addresses(self) -> dict[str, bytes]:
        """Move all arrays to device memory; returns their addresses by the names of their inputs.

        Arrays are copied, except those that native code can access in place.

        Raises:
            ValueError: if different arrays overlap, or a packed array shares memory with another one.
        """
        address_bytes = {
            staged_array.name: np.uint64(buffer.address).tobytes() for staged_array, buffer in self._packed
        }
        for staged_array, _ in self._packed:
            for other_array in [*self._arrays, *(g for g, _ in self._packed if g is not staged_array)]:
                if _share_elements(staged_array.array, other_array.array):
                    raise ValueError(
                        f"{staged_array.title} shares memory with {other_array.title}, and is not contiguous"
                    )
        for numbers in overlapping([(g.start, g.end) for g in self._arrays]):
            members = [self._arrays[i] for i in numbers]
            _refuse_overlaps(members)
            block_start, block_end = min(m.start for m in members), max(m.end for m in members)
            names = ", ".join(m.memory for m in members)
            if (
                isinstance(self._memory, HostMemory)
                and block_start % 8 == 0
                and all(m.array.flags.writeable for m in members)
            ):
                self._in_place.append(
                    (members, block_start, self._memory.attach(names, memory_between(block_start, block_end)))
                )
                continue
            buffer = self._memory.allocate(names, block_end - block_start)
            copy_sparse(self._memory.bytes_of(buffer), memory_between(block_start, block_end))
            self._groups.append((members, block_start, buffer))
        address_bytes |= {
            m.name: np.uint64(buffer.address + m.first - block_start).tobytes()
            for members, block_start, buffer in [*self._groups, *self._in_place]
            for m in members
        }
        for name, pointers, buffer in self._tables:
            self._memory.bytes_of(buffer)[:] = np.frombuffer(b"".join(map(address_bytes.pop, pointers)), np.uint8)
            address_bytes[name] = np.uint64(buffer.address).tobytes()
        return address_bytes

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
        for staged_array, buffer in self._packed:
            elements = self._memory.bytes_of(buffer).view(staged_array.array.dtype).reshape(staged_array.array.shape)
            if elements.tobytes() != staged_array.array.tobytes():
                packed.append((staged_array.array, elements))
                if not staged_array.array.flags.writeable:
                    raise ValueError(f"{staged_array.title} is read-only, but kernel '{kernel}' changes it")
        changed_arrays = []
        for members, start, buffer in self._groups:
            device_bytes, host_bytes = self._memory.bytes_of(buffer), memory_between(start, start + buffer.bytes)
            if not np.array_equal(device_bytes, host_bytes):
                changed_arrays.append((members, device_bytes, host_bytes))
                for m in members:
                    byte_range = slice(m.start - start, m.end - start)
                    if not m.array.flags.writeable and not np.array_equal(
                        device_bytes[byte_range], host_bytes[byte_range]
                    ):
                        raise ValueError(f"{m.title} is read-only, but kernel '{kernel}' changes it")
        for _, device_bytes, host_bytes in changed_arrays:
            host_bytes[:] = device_bytes
        for array, elements in packed:
            array[...] = elements


def _refuse_overlaps(members: list[_StagedArray]) -> None:
    """Check that each two arrays are the same memory, or share no elements.

    Raises:
        ValueError: if two different arrays share elements.
    """
    for a, b in itertools.combinations(members, 2):
        if (a.start, a.end) != (b.start, b.end) and _share_elements(a.array, b.array):
            raise ValueError(f"{b.title} overlaps {a.title.rstrip(',')}; give one array for both, or a copy")


def _share_elements(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether arrays have an element in common. True also if that takes too long to find out."""
    step_limit: Any = 1 << 20
    try:
        return np.shares_memory(a, b, max_work=step_limit)
    except np.exceptions.TooHardError:
        return True


# Kernel arguments written as words, as on a command line.


class _Dtypes(Mapping[str, Any]):
    """numpy's types by MLIR's names. Those of ml_dtypes, whose import takes 5 ms, are looked up when asked for."""

    def __getitem__(self, name: str) -> Any:
        return dtype_named(STORAGE[name])

    def __iter__(self) -> Iterator[str]:
        return iter(STORAGE)

    def __len__(self) -> int:
        return len(STORAGE)


DTYPES = _Dtypes()
"""Element types by MLIR's names."""

_SHAPE = pattern(r"\d+(?:x\d+)*\Z")

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
    head, _, specification = text.partition(":")
    try:
        if text.endswith(".npy"):
            return _load(text)
        if head in _GENERATORS:
            return _generate(head, specification, text)
    except MemoryError as e:
        raise ValueError(f"argument '{text}' does not fit the memory: {e}") from None
    if head in DTYPES:
        return _number(DTYPES[head], specification, text)
    forms_text = ", ".join([*_GENERATORS, *DTYPES])
    raise ValueError(f"argument '{text}' is neither a .npy file nor begins with one of {forms_text}")


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
    aligned_copy = zeros_aligned(array.shape, array.dtype)
    aligned_copy[...] = array
    return aligned_copy


def _dtype(name: str, text: str) -> np.dtype[Any]:
    if name not in DTYPES:
        raise ValueError(f"argument '{text}': unknown type '{name}'; there are {', '.join(DTYPES)}")
    return DTYPES[name]


def _number(dtype: np.dtype[Any], literal: str, text: str) -> Any:
    try:
        if _is_integer(dtype):
            value = int(literal, 0)
            info = _limits(dtype)
            if not info.min <= value <= info.max:
                raise ValueError
            return np.array(value, dtype)[()]
        return np.array(float(literal), dtype)[()]
    except ValueError:
        raise ValueError(f"argument '{text}': '{literal}' is not a number of type {dtype}") from None


def _generate(generator: str, specification: str, text: str) -> Array:
    fields = specification.split(":")
    if len(fields) < 2 or not _SHAPE.match(fields[1]):
        raise ValueError(f"argument '{text}': expected {generator}:TYPE:SHAPE, such as {generator}:f32:64x64")
    dtype, shape = _dtype(fields[0], text), tuple(map(int, fields[1].split("x")))
    # Operating systems allocate more memory than they have, and kill the process that uses it.
    size = math.prod(shape) * dtype.itemsize
    if size > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
        raise ValueError(f"argument '{text}': cannot allocate {size} bytes")
    extra = fields[2:]
    if generator in _RANDOM:
        return _aligned(_RANDOM[generator](_seeded(extra, text), dtype, shape))
    if generator in _PLAIN:
        if extra:
            raise ValueError(f"argument '{text}': unexpected '{':'.join(extra)}' after the shape")
        return _aligned(_PLAIN[generator](shape, dtype))
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
    lowest, highest = (0, 8) if dtype.kind == "u" else (-4, 4)
    if _is_narrow(dtype):
        info = _limits(dtype)
        lowest, highest = max(int(info.min), -4), min(int(info.max), 4 if info.min else 8)
    return rng.integers(lowest, highest + 1, shape).astype(dtype)


def _bits(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    if _is_narrow(dtype):
        return _rand(rng, dtype, shape)
    bits_dtype = np.dtype(f"uint{8 * dtype.itemsize}")
    random_bits = rng.integers(0, np.iinfo(bits_dtype).max, shape, bits_dtype, endpoint=True)
    special = rng.choice(_special_bits(dtype).view(bits_dtype), shape)
    return np.where(rng.random(shape) < 0.5, random_bits, special).view(dtype)


def _special_bits(dtype: np.dtype[Any]) -> Array:
    """Special values and their neighbours: the least and greatest numbers, zeros, ones, infinities, NaNs."""
    if _is_integer(dtype):
        info = _limits(dtype)
        special_values: Array = np.array([info.min, info.min + 1, 0, 1, 2, info.max - 1, info.max], dtype)
        return np.concatenate([special_values, np.array([-1 % (int(info.max) + 1), 7, 100], dtype)])
    finfo = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    bits_dtype = np.dtype(f"uint{8 * dtype.itemsize}")
    ordinary = [0.5, 1, 1.5, 2, 3, 10]
    positive = np.array([0, finfo.smallest_subnormal, finfo.smallest_normal, *ordinary, finfo.max], dtype)
    neighbours = positive.view(bits_dtype)
    neighbours = np.concatenate([neighbours, neighbours + bits_dtype.type(1), neighbours[1:] - bits_dtype.type(1)])
    # Beyond infinity are signaling NaNs, and beyond the canonical NaN those with payloads.
    nonfinite = np.array([np.inf, np.nan]).astype(dtype).view(bits_dtype)
    neighbours = np.concatenate([neighbours, nonfinite, nonfinite + bits_dtype.type(1)])
    return np.concatenate([neighbours, neighbours | bits_dtype.type(1 << (8 * dtype.itemsize - 1))]).view(dtype)


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
        self._packed: dict[tuple[int, int], tuple[Array, Array, Array, int]] = {}

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
        per_byte = 8 // bits
        strides = [s if n > 1 else 0 for s, n in zip(argument.strides, argument.shape)]
        if strides and strides[-1] not in (0, 1):
            raise ValueError(f"{title} has elements that do not lie side by side; numpy.ascontiguousarray makes it so")
        if any(s < 0 for s in strides) or any(s % per_byte for s in strides[:-1]):
            raise ValueError(
                f"{title} has rows that begin within a byte when packed; let them be multiples of {per_byte}"
            )
        count = sum((n - 1) * s for n, s in zip(argument.shape, strides)) + 1 if argument.size else 0
        start = int(argument.ctypes.data)
        for (packed_array, size), _ in self._packed.items():
            if start < packed_array + size and packed_array < start + count and (packed_array, size) != (start, count):
                raise ValueError(f"{title} overlaps another array of elements of {bits} bits; give a copy")
        if (start, count) not in self._packed:
            flat: Array = np.lib.stride_tricks.as_strided(argument.view(np.uint8), (count,), (1,))
            packed = pack_bytes(flat, bits)
            packed.flags.writeable = argument.flags.writeable
            self._packed[start, count] = (flat, packed, packed.copy(), bits)
        packed = self._packed[start, count][1]
        shape = (*argument.shape[:-1], -(-argument.shape[-1] // per_byte)) if argument.ndim else ()
        steps = (*(s // per_byte for s in strides[:-1]), 1) if argument.ndim else ()
        if argument.flags.c_contiguous:
            return packed.reshape(shape)
        return np.lib.stride_tricks.as_strided(packed, shape, steps, writeable=argument.flags.writeable)

    def write_back(self) -> None:
        """Copy changes of the packed copies back to the arrays."""
        for flat, packed, original, bits in self._packed.values():
            changed_bytes = np.flatnonzero(packed != original)
            per_byte = 8 // bits
            element_indices = (changed_bytes[:, None] * per_byte + np.arange(per_byte)).ravel()
            values = unpack_bytes(packed[changed_bytes], bits)
            flat[element_indices[element_indices < len(flat)]] = values[element_indices < len(flat)]


def packed_shape(shape: Sequence[int | None], element: str) -> tuple[int | None, ...]:
    """The shape of a packed array in bytes; None for unknown extents."""
    bits = element_bits(element)
    if not bits or not shape or shape[-1] is None:
        return tuple(shape)
    return (*shape[:-1], -(-shape[-1] * bits // 8))
