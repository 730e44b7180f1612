"""`xegpu-unroll`: splits ops into ops for which the target has one message or instruction."""

from __future__ import annotations

from mlir import ir

from xegpu_py.dialects.xegpu.op_interfaces import BlockLoad
from xegpu_py.ir.module import walk
from xegpu_py.ir.operation import implements
from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.passes.analysis.ir_queries import subgroup_functions
from xegpu_py.passes.xegpu_unroll.unroll_driver import Legalization
from xegpu_py.passes.xegpu_unroll.unroll_patterns import transform_in_registers
from xegpu_py.passes.xegpu_unroll.unroll_plan import make_plan


@register_pass("xegpu-unroll")
class XeGPUUnroll(Pass):
    """Divide blocks, vectors and products.

    They become parts for which the target has one message or instruction. The pass plans the parts of all vectors and
    blocks, and then rewrites the ops. Blocks are split into blocks that one message moves; neighbouring blocks share a
    message by array_length. Their descriptors are split where they are created, moved and carried by loops. Products
    are split into those of one dpas, padded with zeros at the edges. They are computed in slabs of K, each as deep as
    a message of A is wide, and operands are loaded directly before their slab. With `load-ahead` a slab is as deep as
    one dpas, so that the next operands can be loaded while the rest of a product is computed; see `xegpu-load-ahead`.
    Gathers are split into gathers of fewer lanes, and transpositions of narrow elements become transpositions of
    32-bit units. Chains of elementwise ops are computed piece by piece, so that few registers are live at a time. A
    load whose transform no message does becomes a plain load and a transform in registers.

    Blocks that 2D messages cannot address are not divided: see xegpu-lower-unaligned-blocks. `marked` is that of
    xegpu-legalize.

        %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<64x16xf32>
        %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<64x16xf32> -> vector<64x16xf32>

    becomes

        %d0 = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<32x16xf32>
        %d1 = xegpu.create_nd_tdesc %m[32, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<32x16xf32>
        %x0 = xegpu.load_nd %d0 {mode = vc} : !xegpu.tensor_desc<32x16xf32> -> vector<32x16xf32>
        %x1 = xegpu.load_nd %d1 {mode = vc} : !xegpu.tensor_desc<32x16xf32> -> vector<32x16xf32>

    It is the last pass of xegpu-legalize. Kernels with XeTile ops are not changed.
    """

    target: str = ""
    kernel: str = ""
    load_ahead: bool = False
    marked: bool = False

    def run(self, op: ir.Operation) -> None:
        for func, ops, gpu in subgroup_functions(op, self.target, self.kernel, self.marked):
            if True in [transform_in_registers(inner, gpu) for inner in ops if implements(inner, BlockLoad)]:
                ops = walk(func)
            conversion = Legalization(make_plan(func, ops, gpu, self.load_ahead))
            conversion.region(func.regions[0])
            conversion.finish()
