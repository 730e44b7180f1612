"""The arguments of Triton's launches as those of kernels: types, memory, and the numbers that are passed."""

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from xegpu_py.extensions.triton.arguments import (
    DTYPES,
    Parameter,
    at_path,
    key_of,
    memory_of,
    padding_of,
    parameters_of,
    passed,
)
from xegpu_py.runtime.host_arrays import PointerTable, Window


def tensor(array, writeable=True, device=None, **more):
    """An array as a tensor whose memory is that of the array that it views."""
    root = array if array.base is None else array.base
    span = (array.ctypes.data, root.ctypes.data, root.ctypes.data + root.nbytes, writeable)
    return SimpleNamespace(xegpu_span=span, device=device, **more)


def descriptor(base, shape, strides, **more):
    return SimpleNamespace(base=base, shape=shape, strides=strides, **more)


def test_parameters_of_a_signature():
    signature = [
        ("X", "*fp32"), ("n", "i32"), ("BLOCK", "constexpr"), ("T", ("*kbf16", ["i64", ("constexpr", "*u8")])),
        ("P", "**i1"), ("D", "tensordesc<fp16[64, 32]>"), ("E", "tensordesc_im2col<fp8e5[4]>"), ("F", "fp64"),
    ]  # fmt: skip
    assert parameters_of(signature) == (
        Parameter("X", (0,), "array", "fp32"),
        Parameter("n", (1,), "number", "i32"),
        Parameter("T[0]", (3, 0), "array", "bf16"),
        Parameter("T[1][0]", (3, 1, 0), "number", "i64"),
        Parameter("T[1][1][1]", (3, 1, 1, 1), "array", "u8"),
        Parameter("P", (4,), "array", "i64"),
        Parameter("D", (5,), "descriptor", "fp16", 2),
        Parameter("E", (6,), "descriptor", "fp8e5", 1),
        Parameter("F", (7,), "number", "fp64"),
    )


@pytest.mark.parametrize("kind", ["*fp8e4b15", "fp8e4b15", "tensordesc<fp8e4b15[2]>", ("i32", "*fp8e4b15")])
def test_unknown_types_are_refused(kind):
    name = r"A\[1\]" if isinstance(kind, tuple) else "A"
    with pytest.raises(TypeError, match=f"^argument '{name}' must have a type of i8, i16, .*, but got fp8e4b15$"):
        parameters_of([("A", kind)])


def test_names_of_what_a_parameter_becomes():
    assert Parameter("X", (0,), "array", "fp32").names() == ("X",)
    sizes = ("D.shape[0]", "D.shape[1]", "D.strides[0]", "D.strides[1]")
    assert Parameter("D", (0,), "descriptor", "fp32", 2).names() == ("D", *sizes, *sizes)


def test_arguments_in_tuples():
    assert at_path([1, (2, (3, 4))], (1, 1, 0)) == 3
    assert at_path([1, (2, (3, 4))], (0,)) == 1


def test_memory_of_tensors():
    memory = np.zeros(64, np.float32)
    part = memory[5:9]
    first = memory.ctypes.data
    wrapped = tensor(part, writeable=False)
    assert memory_of(wrapped, "X") == (first + 20, first, first + 256, False)
    # A tensor whose elements are taken for another type has the memory of that.
    other = SimpleNamespace(base=tensor(part, data_ptr=None), data_ptr=None)
    assert memory_of(SimpleNamespace(base=other), "X") == (first + 20, first, first + 256, True)
    storage = SimpleNamespace(data_ptr=lambda: first, nbytes=lambda: 256)
    of_torch = SimpleNamespace(
        untyped_storage=lambda: storage, data_ptr=lambda: first + 8, base=tensor(part, data_ptr=0)
    )
    for device in (None, SimpleNamespace(type="cpu"), "xegpu"):
        of_torch.device = device
        assert memory_of(of_torch, "X") == (first + 8, first, first + 256, True)
    of_torch.device = SimpleNamespace(type="cuda")
    with pytest.raises(TypeError, match="argument 'X' must be a tensor in the host's memory, but got one on device"):
        memory_of(of_torch, "X")
    with pytest.raises(TypeError, match=r"argument 'X' must be a tensor or wrap\(array\), but got ndarray"):
        memory_of(memory, "X")


def test_keys_tell_launches_apart():
    """All that changes what a launch does changes its key."""
    memory = np.zeros((8, 4), np.float32)
    array, number = Parameter("X", (0,), "array", "fp32"), Parameter("n", (0,), "number", "fp32")
    assert key_of(array, None) is None
    assert key_of(array, tensor(memory)) == key_of(array, tensor(memory)) != key_of(array, tensor(memory[1:]))
    assert key_of(number, 3) == 3
    # Zeros of both signs and all NaN are themselves.
    assert len({key_of(number, x) for x in (0.0, -0.0, 1.5, float("nan"))}) == 4
    assert key_of(number, float("nan")) == key_of(number, float("nan"))
    block = Parameter("D", (0,), "descriptor", "fp32", 2)
    bases = (tensor(memory), tensor(memory[1:]))
    descriptors = [
        descriptor(bases[0], [8, 4], [4, 1]),
        descriptor(bases[1], [8, 4], [4, 1]),
        descriptor(bases[0], [7, 4], [4, 1]),
        descriptor(bases[0], [8, 4], [8, 1]),
        descriptor(bases[0], [8, 4], [4, 1], padding="nan"),
        descriptor(bases[0], [8, 4], [4, 1], round_f32_to_tf32=True),
    ]
    assert len({key_of(block, d) for d in descriptors}) == len(descriptors)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "zero"),
        ({"padding": "nan"}, "nan"),
        ({"round_f32_to_tf32": True}, "zero-tf32"),
        ({"padding": "nan", "round_f32_to_tf32": True}, "nan-tf32"),
        ({"round_f32_to_tf32": False}, "zero"),
    ],
)
def test_padding_of_descriptors(fields, expected):
    assert padding_of(SimpleNamespace(**fields)) == expected


@pytest.mark.parametrize(
    ("kind", "argument", "expected"),
    [
        ("i8", 255, np.int8(-1)), ("i8", -128, np.int8(-128)), ("u16", 65535, np.int16(-1)), ("i1", True, np.int8(1)),
        ("i32", 2**31, np.int32(-(2**31))), ("u64", 2**64 - 2, np.int64(-2)), ("i64", -5, np.int64(-5)),
        ("fp16", 0.1, np.float16(0.1)), ("fp64", 0.1, np.float64(0.1)),
        ("fp32", 1 + 2**-24 + 2**-50, np.float32(1 + 2**-23)),
        ("fp32", 3, np.float32(3)),
        ("bf16", 1.5, ml_dtypes.bfloat16(1.5)),
    ],
)  # fmt: skip
def test_numbers_are_rounded_once_or_wrap_around(kind, argument, expected):
    (found,) = passed(Parameter("n", (0,), "number", kind), argument)
    assert found.dtype == DTYPES[kind] == expected.dtype and found == expected


def test_arrays_are_windows_of_their_memory():
    memory = np.arange(64, dtype=np.float32)
    (found,) = passed(Parameter("X", (0,), "array", "fp32"), tensor(memory[5:9]))
    assert found.ctypes.data == memory.ctypes.data + 20 and found.dtype == np.float32 and found.flags.writeable
    (found,) = passed(Parameter("X", (0,), "array", "fp32"), tensor(memory, writeable=False))
    assert not found.flags.writeable
    (found,) = passed(Parameter("X", (0,), "array", "i64"), None)
    assert found.dtype == np.int64 and found.size == 1 and not found.any()


class Tensor:
    """A tensor of this process, which holds its memory."""

    def __init__(self, array):
        self.array = array

    @property
    def xegpu_span(self):
        return self.array.ctypes.data, self.array.ctypes.data, self.array.ctypes.data + self.array.nbytes, True

    def data_ptr(self):
        return self.array.ctypes.data

    def stride(self):
        return (1,)


class OtherDevice(Tensor):
    """A tensor without memory in this process."""

    @property
    def xegpu_span(self):
        raise RuntimeError


class Foreign:
    """An object that is no tensor, whose code is not run."""

    @property
    def xegpu_span(self):
        raise ValueError


class Pointing(Foreign):
    data_ptr = None


class Striding(Foreign):
    stride = None


def test_tables_of_addresses():
    """Addresses in tensors of the process become the memory from each on, if a kernel asks for that."""
    memory = np.zeros(64, np.float32)
    first, second = Tensor(memory[:16]), Tensor(memory[32:])
    others = [OtherDevice(memory[20:24]), Tensor(memory[2:2]), Pointing(), Striding()]
    start, table = memory.ctypes.data, Parameter("X", (0,), "array", "i64")
    assert first and second and others

    def found(*addresses, parameter=table, points=True):
        (result,) = passed(parameter, tensor(np.array(addresses, np.int64)), points)
        return result

    made = found(start, start + 12, start + 128, start + 255)
    assert isinstance(made, PointerTable)
    assert [a.ctypes.data - start for a in made.arrays] == [0, 12, 128, 255]
    assert [a.span for a in made.arrays] == [(start, start + 64)] * 2 + [(start + 128, start + 256)] * 2
    assert [a.nbytes for a in made.arrays] == [64, 52, 128, 1]
    # Behind the end of a tensor, before all, and in one of another device.
    for beyond in (start + 64, start + 256, 0, 5, start + 84):
        assert type(found(start, beyond)) is Window
    assert type(found(start, points=False)) is Window
    assert type(found()) is Window
    (numbers,) = passed(Parameter("X", (0,), "array", "fp64"), tensor(np.array([start], np.float64)), True)
    assert type(numbers) is Window


def test_descriptors_pass_their_sizes_twice():
    """Extents and strides of 64 bits, as the kernel of a descriptor takes them, and those of the descriptor's parts."""
    memory = np.zeros((8, 4), np.float16)
    given = descriptor(tensor(memory), [2**31 + 5, 4], [4, 1])
    base, *sizes = passed(Parameter("D", (0,), "descriptor", "fp16", 2), given)
    assert base.ctypes.data == memory.ctypes.data and base.dtype == np.float16
    assert [int(n) for n in sizes] == [2**31 + 5, 4, 4, 1, -(2**31) + 5, 4, 4, 1]
    assert [n.dtype.itemsize for n in sizes] == [8, 8, 8, 8, 4, 4, 8, 8]
