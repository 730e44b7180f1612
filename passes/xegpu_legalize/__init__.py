"""`xegpu-legalize`: what one message or instruction cannot do becomes several that can."""

from dataclasses import dataclass

from mlir import ir

from xegpu_py.ir.passes import Pass, register_pass


@register_pass("xegpu-legalize", "xetile-blocking")
@dataclass
class XeGPULegalize(Pass):
    """Divide tiles, vectors and products into what one message or instruction of the target has.

    Blocks become blocks that a message moves, several side by side in one by array_length; their descriptors are split
    where they are made, moved and carried through loops. Products become those of a dpas, filled up with zeros at the
    edges: slab by slab of K, where a slab is what one message of A brings, and loads come right before the slab that
    needs them. With `load-ahead` a slab is as deep as a dpas, so that what a product no longer needs can be loaded anew
    while the rest of it is computed; see `xegpu-load-ahead`. With `marked` only kernels are changed that have a loop
    with the attribute `xetile.load_ahead`. Gathers become ones of fewer lanes, transpositions of
    narrow elements ones of units of 32 bits. Vectors that are made and used element by element are worked on piece by
    piece, so that few registers live at a time. Arithmetic that bf16 and f8E5M2 do not have is done in f32 and f16,
    with the bits of one rounding, and division of 64-bit integers step by step.

    Blocks of tensors that 2D block messages cannot address, and all blocks where the target has none, become 1D
    messages where rows are known to be in bounds and aligned, else gathers and scatters. A remark (`--remarks`) says
    what that costs. So do blocks of tensors whose innermost stride is not known to be 1. Other extents, strides and
    offsets that are not known are taken to be as messages need them, but not of the arguments that the kernel's
    attribute `xegpu.unaligned = array<i64: 0, 2>` counts; with `unaligned` of none.

        %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<64x16xf32>
        %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<64x16xf32> -> vector<64x16xf32>

    becomes

        %d0 = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<32x16xf32>
        %d1 = xegpu.create_nd_tdesc %m[32, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<32x16xf32>
        %x0 = xegpu.load_nd %d0 {mode = vc} : !xegpu.tensor_desc<32x16xf32> -> vector<32x16xf32>
        %x1 = xegpu.load_nd %d1 {mode = vc} : !xegpu.tensor_desc<32x16xf32> -> vector<32x16xf32>

    Its other name is `xetile-blocking`. Kernels that hold XeTile are left as they are.
    """

    target: str = ""
    kernel: str = ""
    unaligned: bool = False
    load_ahead: bool = False
    marked: bool = False

    def run(self, op: ir.Operation) -> None:
        # Loaded when it is needed, since tools start without it.
        from xegpu_py.passes.common.gpu_functions import functions
        from xegpu_py.passes.common.kernels import is_marked
        from xegpu_py.passes.xegpu_legalize.planning import split_function

        from xegpu_py.ir.verifier import walk

        for func, gpu in functions(op, self.target, self.kernel):
            if any(inner.name.startswith("xetile.") for inner in walk(func)):
                continue
            if self.marked and not is_marked(func):
                continue
            split_function(func, gpu, None if self.unaligned else (), self.load_ahead)
