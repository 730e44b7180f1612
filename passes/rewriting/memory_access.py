"""`vector.transfer_read` and `vector.transfer_write`."""

from __future__ import annotations

from mlir import ir

from xegpu_py.passes.facts.value_facts import segments


class Transfer:
    """The operands and attributes of a transfer.

    Attributes:
        vector: the vector that is read or written.
        memref, indices: the location of the vector's first element.
        padding: the value of out-of-bounds elements of a read; None for a write.
        mask: the elements that are accessed; None for all. It has the dimensions of memory, in their order.
        dimensions: for each dimension of the vector its dimension of memory; None if elements are broadcast along it.
        in_bounds: for each dimension of the vector whether it stays in bounds.
    """

    def __init__(self, op: ir.Operation) -> None:
        groups = segments(op)
        reads = op.name == "vector.transfer_read"
        self.vector: ir.Value = op.results[0] if reads else groups.pop(0)[0]
        self.memref, self.indices = groups[0][0], groups[1]
        self.padding: ir.Value | None = groups[2][0] if reads else None
        self.mask: ir.Value | None = groups[-1][0] if groups[-1] else None
        permutation = ir.AffineMapAttr(op.attributes["permutation_map"]).value
        self.dimensions = [e.position if isinstance(e, ir.AffineDimExpr) else None for e in permutation.results]
        self.in_bounds = [ir.BoolAttr(b).value for b in ir.ArrayAttr(op.attributes["in_bounds"])]

    @property
    def mask_dims(self) -> list[int]:
        """The dimensions of the vector that the mask has, in the mask's order."""
        return [i for _, i in sorted((d, i) for i, d in enumerate(self.dimensions) if d is not None)]

    def is_rows(self) -> bool:
        """Whether the transfer moves whole rows of consecutive elements."""
        rank = len(self.indices)
        minor = list(range(rank - len(self.dimensions), rank))
        strides, _ = ir.MemRefType(self.memref.type).get_strides_and_offset()
        contiguous = bool(self.dimensions) and self.dimensions == minor and strides[-1] == 1
        return contiguous and all(self.in_bounds) and self.mask is None
