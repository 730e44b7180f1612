"""What ops of XeGPU, and of dialects above it, are: what passes ask instead of names."""

from typing import TYPE_CHECKING

from mlir import ir

from xegpu_py.dialects.xegpu.types import CacheHint, Mode
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
        def mode(self) -> Mode: ...

        @property
        def tdesc(self) -> ir.Value: ...

        @property
        def value(self) -> ir.Value:
            """The vector that is loaded or stored, or updates memory; prefetches have none."""


class BlockAccess(MemoryAccess):
    """Accesses the block of a descriptor."""


class ScatteredAccess(MemoryAccess):
    """Accesses memory at the address of each lane of a descriptor."""


class Prefetch(Interface):
    """Brings memory into the caches, and has no other effect."""


class MatrixProduct(Interface):
    """Multiplies the matrices `lhs` and `rhs`, and adds `acc` if it is there."""

    if TYPE_CHECKING:

        @property
        def mode(self) -> Mode: ...

        @property
        def acc(self) -> ir.Value | None: ...

        @property
        def result(self) -> ir.Value: ...


class DescriptorUpdate(Interface):
    """Gives a descriptor that is moved by offsets."""


class DescriptorMaker(Interface):
    """Gives a descriptor of memory by an address or a memref."""
