"""`xegpu-legalize`: splits ops into ops for which the target has one message or instruction."""

from dataclasses import dataclass

from mlir import ir

from xegpu_py.ir.passes import Pass, register_pass


@register_pass("xegpu-legalize", "xetile-blocking")
@dataclass
class XeGPULegalize(Pass):
    """Divide blocks and products to fit the target.

    Tiles, vectors and products are divided into parts for which the target has one message or instruction. Blocks are
    split into blocks that one message moves; neighbouring blocks share a message by array_length. Their descriptors are
    split where they are created, moved and carried by loops. Products are split into those of one dpas, padded with
    zeros at the edges. They are computed in slabs of K, each as deep as a message of A is wide, and operands are loaded
    directly before their slab. With `load-ahead` a slab is as deep as one dpas, so that the next operands can be loaded
    while the rest of a product is computed; see `xegpu-load-ahead`. With `marked` only kernels that have a loop with
    the attribute `xetile.load_ahead` are changed. Gathers are split into gathers of fewer lanes, and transpositions of
    narrow elements become transpositions of 32-bit units. Chains of elementwise ops are computed piece by piece, so
    that few registers are live at a time. Arithmetic on bf16 and f8E5M2 that no instruction implements is computed in
    f32 and f16, with the bits of one rounding, and 64-bit division in several steps.

    Blocks of tensors that 2D block messages cannot address, and all blocks if the target has no such messages, become
    1D messages if rows are known to be in bounds and aligned, and gathers and scatters otherwise. A remark
    (`--remarks`) reports the number of messages. The same holds for blocks of tensors whose innermost stride is not
    known to be 1. Other unknown extents, strides and offsets are assumed to satisfy the rules of messages, except for
    the arguments in the kernel's attribute `xegpu.unaligned = array<i64: 0, 2>`; with `unaligned`, for no argument.
    An array spans at most `max-bytes` bytes, which limits the rows of a matrix of known pitch; 0 means no limit.

        %d = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<64x16xf32>
        %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<64x16xf32> -> vector<64x16xf32>

    becomes

        %d0 = xegpu.create_nd_tdesc %m[0, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<32x16xf32>
        %d1 = xegpu.create_nd_tdesc %m[32, 0] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<32x16xf32>
        %x0 = xegpu.load_nd %d0 {mode = vc} : !xegpu.tensor_desc<32x16xf32> -> vector<32x16xf32>
        %x1 = xegpu.load_nd %d1 {mode = vc} : !xegpu.tensor_desc<32x16xf32> -> vector<32x16xf32>

    The pass is also registered as `xetile-blocking`. Kernels with XeTile ops are not changed.
    """

    target: str = ""
    kernel: str = ""
    unaligned: bool = False
    load_ahead: bool = False
    marked: bool = False
    max_bytes: int = 0

    def run(self, op: ir.Operation) -> None:
        # Imported here to keep the start of the tools fast.
        from xegpu_py.ir.verifier import walk
        from xegpu_py.passes.common.gpu_functions import functions
        from xegpu_py.passes.common.kernels import is_marked
        from xegpu_py.passes.xegpu_legalize.planning import split_function

        for func, gpu in functions(op, self.target, self.kernel):
            ops = walk(func)
            if any(inner.name.startswith("xetile.") for inner in ops):
                continue
            if self.marked and not is_marked(func):
                continue
            split_function(func, ops, gpu, None if self.unaligned else (), self.load_ahead, self.max_bytes)
