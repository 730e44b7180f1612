"""`xegpu-legalize`: splits ops into ops for which the target has one message or instruction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from xegpu_py.ir.module import walk
from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.passes.facts.surfaces import find_surfaces
from xegpu_py.passes.facts.target_rules import require_registers
from xegpu_py.passes.facts.value_facts import check_elements, gpu_functions, is_marked
from xegpu_py.passes.xegpu_cut import cut_rules  # noqa: F401  (defines the rules)
from xegpu_py.passes.xegpu_cut.cutting import Legalization
from xegpu_py.passes.xegpu_cut.split_plan import make_plan
from xegpu_py.passes.xegpu_expand_arith import Forms, branch_among_descriptors, combine_subgroups_through_memory
from xegpu_py.passes.xegpu_join_blocks import join_pairs
from xegpu_py.target import Target


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

        for func, gpu in gpu_functions(op, self.target, self.kernel):
            ops = walk(func)
            if any(inner.name.startswith("xetile.") for inner in ops):
                continue
            if self.marked and not is_marked(func):
                continue
            split_function(func, ops, gpu, None if self.unaligned else (), self.load_ahead, self.max_bytes)


def split_function(
    func: ir.Operation,
    ops: Sequence[ir.Operation],
    target: Target,
    unaligned: Sequence[int] | None = (),
    ahead: bool = False,
    most_bytes: int = 0,
) -> None:
    """Split the ops of a function into those that one message or instruction of the target can do.

    Args:
        ops: the function's ops.
        unaligned: numbers of the arguments whose unknown alignment is not assumed; None for all memory.
        ahead: whether loads are issued one iteration ahead.
        most_bytes: the greatest span of an array that is an argument; 0 for no limit.
    """
    if len(func.regions[0].blocks) != 1:
        return
    check_elements(ops)
    require_registers(ops, target)
    if branch_among_descriptors(ops):
        ops = walk(func)
    if combine_subgroups_through_memory(ops):
        ops = walk(func)
    surfaces = find_surfaces(func, ops, target, unaligned, most_bytes)
    forms = Forms(target, surfaces)
    forms.run(ops)
    ops = walk(func)
    joined = join_pairs(func, ops, target)
    if joined:
        ops = walk(func)
    if joined or forms.replaced_loads:
        surfaces = find_surfaces(func, ops, target, unaligned, most_bytes)
    conversion = Legalization(make_plan(func, ops, target, surfaces, ahead))
    conversion.region(func.regions[0])
    conversion.finish()
