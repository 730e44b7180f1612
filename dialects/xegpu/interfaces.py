"""What ops of XeGPU, and of dialects above it, are: what passes ask instead of names."""

from typing import TYPE_CHECKING

from mlir import ir
from xegpu_py.dialects.xegpu.types import CacheHint

from xegpu_py.ir.definition import Attribute, Interface


class Hinted(Interface):
    """Has cache hints (RFC, L1_hint)."""

    l1_hint: Attribute[CacheHint] | None = None
    l2_hint: Attribute[CacheHint] | None = None
    l3_hint: Attribute[CacheHint] | None = None


class MemoryAccess(Interface):
    """Accesses memory by a descriptor, its operand `tdesc`."""

    if TYPE_CHECKING:

        @property
        def tdesc(self) -> ir.Value: ...


class BlockAccess(MemoryAccess):
    """Accesses the block of a descriptor."""


class ScatteredAccess(MemoryAccess):
    """Accesses memory at the address of each lane of a descriptor."""


class DescriptorUpdate(Interface):
    """Gives a descriptor that is moved by offsets."""


class DescriptorMaker(Interface):
    """Gives a descriptor of memory by an address or a memref."""
