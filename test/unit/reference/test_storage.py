"""Memory of the reference evaluator: bytes at any alignment, across allocations and at both ends, and its messages."""

import re

import numpy as np
import pytest

import xegpu_py
from xegpu_py.reference import evaluate
from xegpu_py.reference.storage import BASE, PAGE, AddressSpace, Fault

DTYPES = [np.dtype(t) for t in (np.uint8, np.int16, np.float32, np.int64)]


def memory_of(*sizes):
    """A memory with an allocation of random bytes for each size."""
    memory, rng = AddressSpace("global memory", BASE), np.random.default_rng(sum(sizes))
    for number, size in enumerate(sizes):
        memory.add(f"array {number}", rng.integers(0, 256, size, np.uint8))
    return memory


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("start", [0, 1, 2, 3])
def test_elements_at_any_byte(dtype, start):
    memory = memory_of(37)
    (only,) = memory.allocations
    offsets = start + np.arange((37 - start) // dtype.itemsize) * dtype.itemsize
    expected = np.frombuffer(only.data.tobytes(), dtype, len(offsets), start)
    found = memory.read(only.address + offsets, dtype)
    assert found.dtype == dtype and found.tobytes() == expected.tobytes()
    before = only.data.copy()
    memory.write(only.address + offsets, found[::-1].copy())
    end = start + found.nbytes
    assert only.data[start:end].tobytes() == expected[::-1].tobytes()
    assert (only.data[:start] == before[:start]).all() and (only.data[end:] == before[end:]).all()


def test_elements_of_several_allocations_and_the_last_of_one_address():
    memory = memory_of(8, 16)
    first, second = memory.allocations
    addresses = np.array([[second.address + 8, first.address], [first.address + 4, second.address + 8]])
    expected = [[second.data[8:12], first.data[:4]], [first.data[4:], second.data[8:12]]]
    np.testing.assert_array_equal(memory.read(addresses, np.dtype(np.int32))[..., None].view(np.uint8), expected)
    memory.write(addresses, np.array([[1, 2], [3, 4]], np.int32))
    assert first.data.view(np.int32).tolist() == [2, 3] and second.data.view(np.int32)[2] == 4


@pytest.mark.parametrize(
    ("offset", "text"),
    [
        (-1, "0xfffff of global memory, 1 bytes before 'array 0', which has 8 bytes"),
        (5, "0x100005 of global memory, reaching 1 bytes over the end of 'array 0', which has 8 bytes"),
        (2 * PAGE - 4, "0x101ffc of global memory, 4 bytes before 'array 1', which has 16 bytes"),
        (2 * PAGE + 13, "0x10200d of global memory, reaching 1 bytes over the end of 'array 1', which has 16 bytes"),
    ],
)
def test_faults_name_the_nearest_allocation(offset, text):
    memory, address = memory_of(8, 16), np.array([BASE + offset])
    with pytest.raises(Fault, match=re.escape(f"reads 4 bytes at {text}")):
        memory.read(address, np.dtype(np.int32))
    with pytest.raises(Fault, match="writes 4 bytes at "):
        memory.write(address, np.zeros(1, np.int32))


def test_memory_without_allocations_and_read_only_memory():
    with pytest.raises(Fault, match="0x0 of shared local memory, which has no allocations"):
        AddressSpace("shared local memory").read(np.array([0]), np.dtype(np.uint8))
    memory = AddressSpace("global memory", BASE)
    memory.add("x", np.zeros(4, np.uint8), writable=False)
    with pytest.raises(Fault, match="writes to 'x', which is read-only"):
        memory.write(np.array([BASE]), np.ones(1, np.uint8))


@pytest.mark.parametrize(("names", "name"), [((), "%b"), (("x", "y"), "y")])
def test_arguments_are_named_as_the_caller_names_them(names, name):
    text = """gpu.module @m { gpu.func @k(%a: memref<4xi32>, %b: memref<?xi32>) kernel {
      %c0 = arith.constant 0 : index
      %c7 = arith.constant 7 : index
      %x = memref.load %a[%c0] : memref<4xi32>
      memref.store %x, %b[%c7] : memref<?xi32>
      gpu.return } }"""
    arrays = [np.zeros(4, np.int32), np.zeros(7, np.int32)]
    with pytest.raises(xegpu_py.DiagnosticError, match=f"'{name}'"):
        evaluate.run(xegpu_py.parse(text), "k", arrays, names=names)
