"""`xegpu-emulate-narrow-types`: elements of 2 and 4 bits become bytes that hold several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlir import ir

from xegpu_py.deferred import deferred
from xegpu_py.ir.passes import Contents, Pass, register_pass
from xegpu_py.passes.analysis.ir_queries import chosen_kernels, has_narrow_elements, needs_emulation

if TYPE_CHECKING:
    from xegpu_py.passes.xegpu_emulate_narrow_types import block_elements
else:
    block_elements = deferred("xegpu_py.passes.xegpu_emulate_narrow_types.block_elements")


@register_pass("xegpu-emulate-narrow-types")
class XeGPUEmulateNarrowTypes(Pass):
    """Store elements of 2 and 4 bits in bytes.

    Memory and registers hold these elements in bytes. The elements (signless, signed and unsigned i4 and i2, and
    f4E2M1FN) lie in memory in the order of their linear index; the first element of a byte has its lowest bits. An
    argument keeps its type and is cast to a memref of i8. Blocks are loaded and stored as bytes, which are the operands
    of dpas. Arithmetic unpacks each element to a byte and packs the result, and so do the VNNI transform and transposes
    of single elements. A single element is stored by a compare-and-swap loop on its byte, because another thread may
    store the other elements of the byte at the same time.

        %d = xegpu.create_nd_tdesc %m[0, 64] {mode = vc} : memref<64x128xi4> -> !xegpu.tensor_desc<8x64xi4>
        %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x64xi4> -> vector<8x64xi4>
        %r = xegpu.dpas %x, %y {mode = vc} : vector<8x64xi4>, vector<8x16x8xi4> -> vector<8x16xi32>

    becomes

        %b = builtin.unrealized_conversion_cast %m : memref<64x128xi4> to memref<64x64xi8>
        %d = xegpu.create_nd_tdesc %b[0, 32] {mode = vc} : memref<64x64xi8> -> !xegpu.tensor_desc<8x32xi8>
        %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x32xi8> -> vector<8x32xi8>
        %p = vector.bitcast %x : vector<8x32xi8> to vector<8x64xi4>
        %r = xegpu.dpas %p, %y {mode = vc} : vector<8x64xi4>, vector<8x16x8xi4> -> vector<8x16xi32>

    Blocks and rows whose first column may lie within a byte are loaded twice and shifted. Stores of such blocks update
    the bytes that they share with other elements by compare and swap. They are refused if a loop carries their
    descriptor. Memrefs whose rows begin within a byte are refused as well.
    """

    kernel: str = ""

    def concerns(self, contents: Contents) -> bool:
        return has_narrow_elements(contents.ops)

    def run(self, op: ir.Operation) -> None:
        for func in chosen_kernels(op, self.kernel):
            if len(func.regions[0].blocks) == 1 and needs_emulation(func):
                block_elements.emulate(func)
