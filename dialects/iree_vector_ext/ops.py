"""The part of IREE's dialect `iree_vector_ext` that speaks of layouts."""

from dataclasses import astuple

from xegpu_py.ir.builtin import Vector, shape_and_element, shape_of
from xegpu_py.ir.codecs import Cursor, ParserScope
from xegpu_py.ir.definition import Attr, Attribute, Dialect, Operand, Result
from xegpu_py.ir.operation import Operation, ParsedOp
from xegpu_py.layout import LayoutError, NestedLayout


class IreeVectorExt(Dialect, name="iree_vector_ext"):
    """Vectors with layouts: which lane of which subgroup holds which element.

    The attribute and the ops are those of IREE, and what is printed here is read by `iree-opt`, and the reverse.
    Layouts are computed with in `xegpu_py.layout`, and docs/layouts.md explains them in pictures.
    """


class NestedLayoutAttr(Attr, dialect=IreeVectorExt, name="nested_layout"):
    """Maps the elements of a vector to subgroups, lanes and registers, by five levels of tiles.

    Each list has a number for each dimension of the vector, whose size is the product of the five tiles. A level counts
    the tiles of the next: subgroups of a workgroup, batches (unrolled instructions), outers (repetitions of the grid of
    lanes), threads (lanes), and consecutive elements. A subgroup has the tile whose place in dimension i is
    `(subgroup_id / subgroup_strides[i]) mod subgroup_tile[i]`, and so has a lane. With a stride of 0 a dimension is not
    distributed.

        #iree_vector_ext.nested_layout<subgroup_tile = [2, 1], batch_tile = [2, 4], outer_tile = [1, 1], \
thread_tile = [16, 4], element_tile = [1, 4], subgroup_strides = [1, 0], thread_strides = [1, 16]>
    """

    subgroup_tile: tuple[int, ...]
    batch_tile: tuple[int, ...]
    outer_tile: tuple[int, ...]
    thread_tile: tuple[int, ...]
    element_tile: tuple[int, ...]
    subgroup_strides: tuple[int, ...]
    thread_strides: tuple[int, ...]

    @classmethod
    def of(cls, layout: NestedLayout) -> "NestedLayoutAttr":
        """The attribute of a layout."""
        return cls(*astuple(layout))

    @property
    def layout(self) -> NestedLayout:
        """The layout as an object of `xegpu_py.layout`.

        Raises:
            LayoutError: if the attribute is not valid.
        """
        return NestedLayout(*astuple(self))

    @classmethod
    def read_body(cls, cursor: Cursor, scope: ParserScope) -> "NestedLayoutAttr":
        start = cursor.skip()
        attribute = super().read_body(cursor, scope)
        problem = attribute.problem()
        if problem:
            raise cursor.fault(problem, start)
        return attribute

    def problem(self) -> str | None:
        """The rule of layouts that is broken."""
        try:
            NestedLayout(*astuple(self))
        except LayoutError as e:
            return str(e)
        return None


class ToLayoutOp(Operation, dialect=IreeVectorExt, name="to_layout"):
    """Gives a vector a layout: the result is the input, held by subgroups and lanes as the layout says.

    On a value that has another layout this moves elements between lanes. On one that has none yet it is where
    `vector-layout-analysis` starts from.

        %1 = iree_vector_ext.to_layout %0 to layout(#layout) : vector<64x64xf16>
    """

    input: Operand[Vector]
    layout: Attribute[NestedLayoutAttr]
    output: Result[Vector]

    effects = frozenset()
    assembly_format = "$input `to` `layout` `` `(` $layout `)` attr-dict `:` type($output)"

    @classmethod
    def infer(cls, parsed: ParsedOp) -> dict[str, str]:
        value_type = parsed.types.get("output") or parsed.types.get("input")
        return {"input": value_type[0], "output": value_type[0]} if value_type else {}

    def verify_op(self) -> None:
        problem = self.layout.problem()
        if problem:
            self.fail(problem)
        input_type, output_type = self.input.type, self.output.type
        if input_type != output_type:
            self.fail(
                f"has input type {input_type}, but output type {output_type}",
                "a layout does not change the type of a vector",
            )
        shape = shape_of(output_type)
        layout_shape = self.layout.layout.shape
        if len(shape) != len(layout_shape):
            self.fail(f"the vector has {len(shape)} dimensions, but the layout has {len(layout_shape)}")
        for i, (size, n) in enumerate(zip(shape, layout_shape)):
            if size != n:
                self.fail(
                    f"dimension {i} of the vector has size {size}, but that of the layout has size {n}",
                    "the size of a layout's dimension is the product of the five tile sizes",
                )


class _Boundary(Operation):
    """The common parts of `to_simd` and `to_simt`."""

    def verify_op(self) -> None:
        (_, input_type), (_, output_type) = (
            shape_and_element(self.operation.operands[0]),
            shape_and_element(self.operation.results[0]),
        )
        if input_type != output_type:
            self.fail(f"has input element type {input_type}, but output element type {output_type}")


class ToSimdOp(_Boundary, dialect=IreeVectorExt, name="to_simd"):
    """Takes a lane's part of a vector to the whole, undistributed vector.

    It stands where distributed code meets code that is not distributed yet, and is gone when all is.

        %1 = iree_vector_ext.to_simd %0 : vector<2x4x1x1x1x4xf16> -> vector<64x64xf16>
    """

    input: Operand[Vector]
    output: Result[Vector]

    effects = frozenset()
    assembly_format = "$input attr-dict `:` type($input) `->` type($output)"


class ToSimtOp(_Boundary, dialect=IreeVectorExt, name="to_simt"):
    """Takes a whole, undistributed vector to a lane's part of it; the reverse of `to_simd`.

    %1 = iree_vector_ext.to_simt %0 : vector<64x64xf16> -> vector<2x4x1x1x1x4xf16>
    """

    input: Operand[Vector]
    output: Result[Vector]

    effects = frozenset()
    assembly_format = "$input attr-dict `:` type($input) `->` type($output)"
