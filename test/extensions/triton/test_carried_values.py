"""How loops carry values of TTIR: the types of their SSA values, and the values of items."""

import pytest
from mlir import ir

from xegpu_py import parse
from xegpu_py.extensions.triton.lowering.regions import Slot
from xegpu_py.extensions.triton.lowering.types import Kind
from xegpu_py.extensions.triton.lowering.values import Descriptor, Pointer

ARRAY, OTHER = "an array", "another array"
POINTERS = Kind((16,), "f32", is_pointer=True)
LINE, BLOCKS = Kind((16,), "i32"), Kind((4, 8), "f16", is_descriptor=True)


def pointer(memory=ARRAY, index=None):
    return Pointer(memory, index, (16,), "f32")


def descriptor(memory=ARRAY, offset=None, shape=(None, None), strides=(None, None)):
    return Descriptor(Pointer(memory, offset, (), "f16"), shape, strides, (4, 8), "zero", False)


CASES = {
    "integers": (Slot(LINE), ["vector<16xi32>"]),
    "positions": (Slot(LINE, is_position=True), ["vector<16xindex>"]),
    "a scalar": (Slot(Kind((), "f16")), ["f16"]),
    "a matrix": (Slot(Kind((4, 8), "bf16")), ["vector<4x8xbf16>"]),
    "pointers to an array": (Slot(POINTERS, like=pointer()), ["vector<16xindex>"]),
    "addresses": (Slot(POINTERS), ["vector<16xi64>"]),
    "a descriptor": (Slot(BLOCKS, like=descriptor()), ["index"] * 5),
    "a descriptor of one dimension": (
        Slot(Kind((16,), "f16", is_descriptor=True), like=descriptor(shape=(None,), strides=(None,))),
        ["index"] * 3,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_types_of_what_is_carried(name):
    slot, types = CASES[name]
    with parse("module {}").context, ir.Location.unknown():
        assert [str(t) for t in slot.types] == types


def test_items_of_other_memory():
    """Pointers to another array are carried as addresses, and a descriptor of another tensor is refused."""
    with parse("module {}").context, ir.Location.unknown():
        assert Slot(POINTERS, like=pointer()).parts(pointer(OTHER, "index")) is None
        assert Slot(POINTERS, like=pointer()).parts(pointer(ARRAY, "index")) == ["index"]
        slot = Slot(BLOCKS, like=descriptor())
        assert slot.parts(descriptor(ARRAY, "at", ("h", "w"), ("p", "q"))) == ["at", "h", "w", "p", "q"]
        for like in (descriptor(OTHER), None):
            with pytest.raises(ValueError, match="it carries a descriptor of another tensor"):
                Slot(BLOCKS, like=like).parts(descriptor(ARRAY, "at"))
