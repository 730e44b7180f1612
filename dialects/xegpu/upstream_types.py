"""Upstream's types and layouts, and their spellings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Annotated, Any

from mlir import ir

from xegpu_py.dialects.xegpu.types import CacheHint, FenceScope, LaneShuffleMode, MemoryScope, UpstreamXeGPU, is_slm
from xegpu_py.ir.bindings import AtomicRMWKind
from xegpu_py.ir.builtin import bit_width, by, is_float, is_integer, shape_and_element
from xegpu_py.ir.codecs import Cursor, IntArrayCodec, ParserScope, TypeText, register_int_enum
from xegpu_py.ir.definition import Attr, EnumCodec, Type

# The dialect's enums, attributes and types.

DIALECT = UpstreamXeGPU

register_int_enum(AtomicRMWKind)


class _Enumerators(EnumCodec):
    """Enumerators of ours, as attributes of upstream's."""

    def __init__(self, name: str, cases: Any) -> None:
        super().__init__(UpstreamXeGPU, name, cases)
        UpstreamXeGPU.enums[name] = self


class _Hints(_Enumerators):
    """Cache hints, which upstream prints with their type."""

    def write(self, value: Any) -> str:
        return f"#xegpu.{self.name}<{value.value}>"


_Hints("cache_hint", CacheHint)
_Enumerators("fence_scope", FenceScope)
_Enumerators("lane_shuffle_mode", LaneShuffleMode)

Space = Annotated[MemoryScope, _Enumerators("memory_space", MemoryScope)]
"""The memory of a tensor, or that a fence orders. The RFC names it `memory_scope`."""


class _DenseKind(IntArrayCodec):
    """A list of integers as MLIR's own array attribute."""

    def write(self, value: tuple[int, ...]) -> str:
        return self.encode(value)


Dense = Annotated[tuple[int, ...], _DenseKind()]
"""A list of integers of an op."""


class BlockTdescAttr(Attr, dialect=UpstreamXeGPU, name="block_tdesc_attr"):
    """The properties of a block's descriptor besides shape and element type."""

    memory_space: Space = MemoryScope.GLOBAL
    array_length: int = 1
    boundary_check: bool = True


_DEFAULT = BlockTdescAttr()


class ScatterTdescAttr(Attr, dialect=UpstreamXeGPU, name="scatter_tdesc_attr"):
    """The properties of a scattered descriptor besides shape and element type."""

    memory_space: Space = MemoryScope.GLOBAL
    chunk_size: int = 1


class Layout(Attr, dialect=UpstreamXeGPU, name="layout"):
    """Distribution of elements among subgroups, instructions and lanes. An absent parameter is an empty list."""

    sg_layout: tuple[int, ...] = ()
    sg_data: tuple[int, ...] = ()
    inst_data: tuple[int, ...] = ()
    lane_layout: tuple[int, ...] = ()
    lane_data: tuple[int, ...] = ()
    order: tuple[int, ...] = ()

    def problem(self) -> str | None:
        """The rule that the layout itself breaks (LayoutAttr::verify); None if it is valid."""
        if not (self.sg_layout or self.inst_data or self.lane_layout):
            return "a layout needs sg_layout, inst_data or lane_layout"
        for layout, data in (("sg_layout", "sg_data"), ("lane_layout", "lane_data")):
            if bool(getattr(self, layout)) != bool(getattr(self, data)):
                return f"{layout} and {data} need each other"
        if self.order and not (self.sg_layout or self.lane_layout):
            return "order needs sg_layout or lane_layout"
        if len({len(v) for v in (getattr(self, k) for k in self.parameters()) if v}) > 1:
            return f"the parts of a layout have one rank, but {self.write_body()} has several"
        if self.order and sorted(self.order) != list(range(len(self.order))):
            return f"order must be a permutation of the dimensions, but got {list(self.order)}"
        return None

    def rank(self) -> int:
        """The dimensions of what it distributes."""
        return max(len(v) for v in (self.sg_layout, self.inst_data, self.lane_layout))

    @property
    def base(self) -> Layout:
        """Itself: see `Slice`."""
        return self

    @property
    def kept(self) -> tuple[int, ...]:
        """All its dimensions: see `Slice`."""
        return tuple(range(self.rank()))

    def distributes(self, shape: Sequence[int], of_type: bool = True, kept: Collection[int] | None = None) -> bool:
        """Whether a shape can be divided equally (DistributeLayoutAttr::isDistributable).

        Args:
            of_type: whether it is a type's. The parts of an op's subgroups and instructions may be larger than what is
                left, as passes of LLVM 22.1.8 have them, and simple_3d_mxfp_gemm.mlir of its main branch.
            kept: the dimensions of the layout that the shape has; without it, all.
        """
        of = self.kept if kept is None else kept
        parts = {k: [n for i, n in enumerate(getattr(self, k)) if i in of] for k in self.parameters()}
        left = list(shape)
        for layout, data in (("sg_layout", "sg_data"), ("", "inst_data"), ("lane_layout", "lane_data")):
            units = parts.get(data)
            if not units:
                continue
            if len(units) != len(left):
                return False
            counts = parts.get(layout) or [1] * len(units)
            for n, unit, count in zip(left, units, counts):
                # Along a short dimension subgroups have the same data, and so have lanes if one holds all of it.
                shares = n % unit == 0 and unit * count % n == 0 and (layout == "sg_layout" or n in (1, unit))
                if n % (unit * count) and not shares and (of_type or layout == "lane_layout" or unit % n):
                    return False
            left = [n if n % (u * c) else n // c for n, u, c in zip(left, units, counts)] if layout else units
        return True


class Slice(Attr, dialect=UpstreamXeGPU, name="slice"):
    """The layout of a value without some dimensions: `parent` is a layout or a slice."""

    parent: Any
    dims: tuple[int, ...]

    @classmethod
    def read_body(cls, cursor: Cursor, scope: ParserScope) -> Slice:
        cursor.expect("<")
        parent = scope.resolve(scope.read_attribute(cursor))
        cursor.expect(",")
        if cursor.accept("dims"):
            cursor.expect("=")
        dims = cls.parameters()["dims"].read(cursor, scope)
        cursor.expect(">")
        return cls(parent, dims)

    def problem(self) -> str | None:
        """The rule that the slice itself breaks (SliceAttr::verify); None if it is valid."""
        rank = layout_of(self.parent).rank()
        if len(set(self.dims)) < len(self.dims):
            return f"the dimensions of a slice must differ, but got {list(self.dims)}"
        if any(not 0 <= d < rank for d in self.dims):
            return f"a slice of {rank} dimensions cannot drop {list(self.dims)}"
        return None

    @property
    def base(self) -> Layout:
        """The layout that it is a part of."""
        return layout_of(self.parent).base

    @property
    def kept(self) -> tuple[int, ...]:
        """The dimensions of `base` that are not dropped."""
        return tuple(d for i, d in enumerate(layout_of(self.parent).kept) if i not in self.dims)

    def rank(self) -> int:
        """The dimensions of what it distributes."""
        return len(self.kept)

    def distributes(self, shape: Sequence[int], of_type: bool = True) -> bool:
        """Whether a shape can be divided equally; see `Layout.distributes`."""
        return self.base.distributes(shape, of_type, self.kept)

    @property
    def sg_layout(self) -> tuple[int, ...]:
        """The subgroups of `base`; empty if it does not divide among subgroups."""
        return self.base.sg_layout

    def write_body(self, print_defaults: bool = False) -> str:
        return f"<{layout_of(self.parent)}, dims = [{', '.join(map(str, self.dims))}]>"


class Range(Attr, dialect=UpstreamXeGPU, name="range"):
    """The subgroups, from the first to before the last, that run a part of a program."""

    bounds: tuple[int, ...]

    @classmethod
    def read_body(cls, cursor: Cursor, scope: ParserScope) -> Range:
        cursor.expect("<")
        bounds = cls.parameters()["bounds"].read(cursor, scope)
        cursor.expect(">")
        if len(bounds) != 2:
            raise cursor.fault(f"a range has a start and an end, but this is {list(bounds)}")
        return cls(bounds)

    def write_body(self, print_defaults: bool = False) -> str:
        return f"<[{', '.join(map(str, self.bounds))}]>"


class MemLayout(Attr, dialect=UpstreamXeGPU, name="mem_layout"):
    """The layout of a matrix in shared local memory: strides in elements, and contiguous blocks."""

    stride: tuple[int, ...] = ()
    block: tuple[int, ...] = ()


@lru_cache(maxsize=1024)
def layout_of(text: str) -> Layout | Slice:
    """The layout of an attribute in MLIR's own spelling.

    Raises:
        ValueError: if it is none.
    """
    return Slice.decode(text) if text.startswith(Slice.mnemonic() + "<") else Layout.decode(text)


def _element_problem(element: str) -> str | None:
    if is_integer(element) or is_float(element):
        return None
    return f"the elements of a descriptor must be integers or floating-point numbers, but got {element}"


class UpstreamTensorDesc(Type, dialect=UpstreamXeGPU, name="tensor_desc"):
    """The descriptor of a block, or of scattered elements. `encoding` and `layout` are attributes' texts, or `unit`."""

    shape: tuple[int, ...]
    element: TypeText
    encoding: Any = "unit"
    layout: Any = "unit"

    @classmethod
    def read_body(cls, cursor: Cursor, scope: ParserScope) -> UpstreamTensorDesc:
        cursor.expect("<")
        if cursor.at("array"):
            return cls._read_raw(cursor, scope)
        shape = cursor.dimensions("a tensor descriptor")
        element = scope.resolve(scope.read_type(cursor))
        found = {"encoding": "unit", "layout": "unit"}
        while cursor.accept(","):
            start = cursor.skip()
            text = scope.resolve(scope.read_attribute(cursor))
            is_layout = text.startswith((Layout.mnemonic(), Slice.mnemonic()))
            if not is_layout and not text.startswith((BlockTdescAttr.mnemonic(), ScatterTdescAttr.mnemonic())):
                raise cursor.fault(f"expected a layout or the attribute of a descriptor, but got '{text}'", start)
            found["layout" if is_layout else "encoding"] = text
        cursor.expect(">")
        if (
            found["encoding"].startswith(BlockTdescAttr.mnemonic())
            and BlockTdescAttr.decode(found["encoding"]) == _DEFAULT
        ):
            found["encoding"] = "unit"
        return cls(shape, element, **found)

    def write_body(self, print_defaults: bool = False) -> str:
        parts = [by((*self.shape, self.element))]
        if self.encoding != "unit":
            parts.append(str(self.block or self.scatter))
        if self.layout != "unit":
            parts.append(str(layout_of(self.layout)))
        return f"<{', '.join(parts)}>"

    @property
    def scatter(self) -> ScatterTdescAttr | None:
        """The attribute of a scattered descriptor; None for others."""
        is_one = self.encoding.startswith(ScatterTdescAttr.mnemonic())
        return ScatterTdescAttr.decode(self.encoding) if is_one else None

    @property
    def lanes(self) -> tuple[int, ...]:
        """The lanes of a scattered descriptor: its dimensions without that of chunks."""
        return self.shape[:-1] if self.scatter and self.scatter.chunk_size > 1 else self.shape

    @property
    def block(self) -> BlockTdescAttr | None:
        """The attribute of a block's descriptor; the default if it has none, and None if it is scattered."""
        if self.encoding == "unit":
            return _DEFAULT
        return None if self.scatter else BlockTdescAttr.decode(self.encoding)

    def problem(self) -> str | None:
        """The rule that the descriptor itself breaks (TensorDescType::verify); None if it is valid."""
        if not self.shape or min(self.shape) < 1:
            return f"a tensor descriptor needs positive dimensions, but has {by(self.shape) or 'none'}"
        if found := _element_problem(self.element):
            return found
        block, scatter = self.block, self.scatter
        if block and block.memory_space == MemoryScope.SLM and len(self.shape) > 1:
            return "a block in shared local memory must have one dimension"
        if block and block.array_length > 1 and len(self.shape) != 2:
            return "array_length is for 2D descriptors only"
        chunk = scatter.chunk_size if scatter else 1
        packed = max(32 // bit_width(self.element), 1)
        if chunk < 1:
            return f"chunk_size must be positive, but got {chunk}"
        if chunk > 1 and len(self.shape) == 1:
            return "a descriptor of one dimension must have chunk_size 1"
        if chunk > 1 and self.shape[-1] != chunk:
            return f"the last dimension must be the chunk_size {chunk}, but is {self.shape[-1]}"
        if chunk % packed and chunk > 1:
            return f"chunks of {self.element} must be multiples of {packed} elements, but have {chunk}"
        if self.layout == "unit":
            return None
        layout = layout_of(self.layout)
        if layout.rank() != len(self.shape):
            return f"a layout of {layout.rank()} dimensions does not fit a descriptor of {by(self.shape)}"
        lane_data = layout.lane_data if isinstance(layout, Layout) else ()
        if chunk > 1 and lane_data and lane_data[-1] % packed:
            return f"lane_data must divide chunks into multiples of {packed} elements, but is {list(lane_data)}"
        if not layout.distributes(self.shape):
            return f"{layout} cannot divide {by(self.shape)} equally"
        return None


class MemDesc(Type, dialect=UpstreamXeGPU, name="mem_desc"):
    """A matrix in shared local memory. `mem_layout` is the attribute's text, or `unit`."""

    shape: tuple[int, ...]
    element: TypeText
    mem_layout: Any = "unit"

    @classmethod
    def read_body(cls, cursor: Cursor, scope: ParserScope) -> MemDesc:
        cursor.expect("<")
        if cursor.at("array"):
            return cls._read_raw(cursor, scope)
        shape = cursor.dimensions("a matrix")
        element = scope.resolve(scope.read_type(cursor))
        layout = scope.resolve(scope.read_attribute(cursor)) if cursor.accept(",") else "unit"
        cursor.expect(">")
        return cls(shape, element, layout)

    def write_body(self, print_defaults: bool = False) -> str:
        parts = [by((*self.shape, self.element))]
        if self.mem_layout != "unit":
            parts.append(str(self.placed))
        return f"<{', '.join(parts)}>"

    def problem(self) -> str | None:
        """The rule that the descriptor itself breaks (MemDescType's element type); None if it is valid."""
        return _element_problem(self.element)

    @property
    def placed(self) -> MemLayout:
        """Its layout in memory."""
        return MemLayout() if self.mem_layout == "unit" else MemLayout.decode(self.mem_layout)


class UpstreamNBarrier(Type, dialect=UpstreamXeGPU, name="nbarrier"):
    """A named barrier."""


# Rules that several ops of upstream's share.


def element_of(value: ir.Value) -> str:
    """The type of a vector's elements, or of a number."""
    return shape_and_element(value)[1]


def check_space(op: Any, source: ir.Value, space: MemoryScope) -> None:
    """A memref is in the descriptor's memory; an address is one of global memory."""
    is_shared = isinstance(source.type, ir.MemRefType) and is_slm(ir.MemRefType(source.type).memory_space)
    if is_shared != (space == MemoryScope.SLM):
        op.fail(f"the descriptor's memory is {space.value}, but that of {source.type} is not")


def check_distribution(op: Any, layout: Layout | Slice | None, shape: Sequence[int], of_type: bool = False) -> None:
    """A shape can be divided equally by a layout, if there is one."""
    if layout is not None and not layout.distributes(shape, of_type):
        op.fail(f"{layout} cannot divide {by(shape)} equally")


def check_element(op: Any, value: ir.Value, desc: UpstreamTensorDesc | MemDesc) -> None:
    """A value has the elements of what it is loaded from or stored to."""
    if element_of(value) != desc.element:
        op.fail(f"the elements of {value.type} differ from the descriptor's, {desc.element}")
