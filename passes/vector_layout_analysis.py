"""`vector-layout-analysis`: infers the layout of every vector from those that are stated."""

from __future__ import annotations

from mlir import ir

from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.passes.analysis.vector_layouts import functions, infer_layouts, write_layouts


@register_pass("vector-layout-analysis")
class VectorLayoutAnalysis(Pass):
    """Infer the layouts of vectors.

    The analysis starts from the layouts of `iree_vector_ext.to_layout`. Layouts are propagated forwards, from operands
    to results, and to values without a layout then backwards from their uses: through elementwise ops, broadcast,
    transpose, reductions, contractions, shape casts, accesses of memory, masks, and loops and branches of scf. If a use
    requires another layout than its operand has, a `to_layout` is inserted; constants are cloned instead.
    `vector-distribute` begins with this analysis. This pass adds the layouts to the ops as an attribute.

        %0 = vector.transfer_read %m[%i, %j], %zero : memref<64x64xf16>, vector<64x64xf16>
        %1 = iree_vector_ext.to_layout %0 to layout(#layout) : vector<64x64xf16>
        %2 = arith.addf %1, %1 : vector<64x64xf16>

    becomes

        %0 = vector.transfer_read %m[%i, %j], %zero {iree_vector_ext.layouts = [#layout]} : ...
        %1 = iree_vector_ext.to_layout %0 to layout(#layout) {iree_vector_ext.layouts = [#layout]} : ...
        %2 = arith.addf %1, %1 {iree_vector_ext.layouts = [#layout]} : vector<64x64xf16>
    """

    def run(self, op: ir.Operation) -> None:
        for func in functions(op):
            write_layouts(func, infer_layouts(func))
