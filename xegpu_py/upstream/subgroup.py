"""Kernels of subgroups, and of IMEX's vector compute: they become `xegpu` with `mode = vc`, op by op."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir
from mlir.dialects import arith, vector

from xegpu_py.dialects import xegpu as ours
from xegpu_py.dialects.xegpu.matrix_ops import SCALE_BLOCK, UpstreamDpasMxOp
from xegpu_py.dialects.xegpu.scattered_ops import chunk_of
from xegpu_py.dialects.xegpu.types import is_slm
from xegpu_py.dialects.xegpu.upstream_types import MemDesc, UpstreamNBarrier, UpstreamTensorDesc
from xegpu_py.ir.builtin import bit_width, by, strides_of
from xegpu_py.ir.definition import DYNAMIC
from xegpu_py.ir.diagnostics import remark
from xegpu_py.passes.analysis.integer_analysis import divisor
from xegpu_py.passes.analysis.ir_queries import shape_of
from xegpu_py.passes.rewriting.builders import (
    constant,
    extract,
    extract_slice,
    index,
    insert,
    insert_slice,
    pad_with_zeros,
    subview,
    transpose,
    zero,
)
from xegpu_py.passes.rewriting.rewriter import Rewriter, Rule, Rules
from xegpu_py.upstream import import_common
from xegpu_py.upstream.import_common import (
    PREFIX,
    PRODUCTS,
    block_attr,
    cast,
    element_of,
    extents_of,
    is_desc,
    long_address,
    mixed,
    parts,
    put_hints,
    refuse,
    scope_of,
    signless,
    values_of,
    vector_type,
    within,
)

VC = "vc"

_KEEP_TYPES = (PREFIX, "math.", "vector.", "index.", *(f"arith.{n}" for n in ("add", "mul", "sub", "constant")))
"""Ops whose results are no descriptors, or are replaced."""


class SubgroupImport(Rewriter):
    """Rebuilds one kernel, in place.

    The rules of ops of upstream's XeGPU build what takes the op's place, and call `replace` for its results; the op is
    erased at the end. All other ops are kept; values that carry descriptors get our types.
    """

    rules = rule = Rules[Rule[Any]]()
    mode = ours.Mode.VC

    def __init__(self, func: ir.Operation) -> None:
        self.func = func
        self.sources: dict[ir.Value, Any] = {}
        """The ops that made descriptors, by the descriptors' replacements."""
        self.made: dict[ir.Value, ir.Value] = {}
        """The values that replace results."""
        self.buffers: dict[ir.Value, tuple[MemDesc, ir.Value]] = {}
        """The buffers in which matrices lie, by their descriptors."""
        self._desc_types: dict[UpstreamTensorDesc, ir.Type] = {}

    def run(self) -> None:
        """Rebuild the kernel.

        Raises:
            DiagnosticError: at an op that cannot be imported.
        """
        ops = self.ops()
        for op in ops:
            if op.name == "builtin.unrealized_conversion_cast" and PREFIX in "".join(str(v.type) for v in op.operands):
                refuse(op, "a pass left it, and it does not say how its descriptors become one another")
        self.prepare(ops)
        for op in (self.func, *(op for op in ops if not op.name.startswith(_KEEP_TYPES))):
            for value in values_of(op):
                self.retype(value)
        for op in ops:
            self.op(op)
        for op in reversed(ops):
            if self.is_replaced(op):
                for use in itertools.chain.from_iterable(value.uses for value in op.results):
                    refuse(use.owner, f"it uses a value of '{op.name}', which only accesses of memory can use")
                op.erase()
        self._retype_function()
        self.finish()

    def ops(self) -> list[ir.Operation]:
        """The ops of the kernel that are rebuilt."""
        return parts(self.func)

    def prepare(self, ops: Sequence[ir.Operation]) -> None:
        """Actions to run before the first op is rebuilt."""
        if "VectorComputeFunctionINTEL" not in self.func.attributes:
            import_common.count_lanes(ops)

    def finish(self) -> None:
        """Actions to run after the last op is rebuilt."""
        if "VectorComputeFunctionINTEL" not in self.func.attributes:
            import_common.mark_lanes(self.func)

    def is_replaced(self, op: ir.Operation) -> bool:
        """Whether the op has been replaced."""
        return bool(op.name.startswith(PREFIX))

    def op(self, op: ir.Operation) -> None:
        if op.name.startswith(PREFIX) and op.name not in self.rules:
            refuse(op, "it is not supported at subgroup level")
        super().op(op.opview)

    def replace(self, op: ir.Operation, *results: ir.Value) -> None:
        for result, value in zip(op.results, results):
            if value != result:
                result.replace_all_uses_with(value)
                self.made[result] = value

    def retype(self, value: ir.Value) -> None:
        """Change the type of a value that is kept from upstream's to ours."""
        text = str(value.type)
        if PREFIX not in text:
            return
        if is_desc(value.type):
            value.set_type(self.desc_type(UpstreamTensorDesc.of(value)))
        elif UpstreamNBarrier.accepts(text):
            value.set_type(ours.NBarrier().to_ir())

    def _retype_function(self) -> None:
        """Give the function the types that its arguments and the descriptors that it returns have."""
        kind = ir.FunctionType(ir.TypeAttr(self.func.attributes["function_type"]).value)
        arguments = [a.type for a in self.func.regions[0].blocks[0].arguments]
        returned = within(self.func)[-1].operands
        results = [v.type if PREFIX in str(old) else old for old, v in zip(kind.results, returned)]
        kind = ir.FunctionType.get(arguments[: len(kind.inputs)], results)
        self.func.attributes["function_type"] = ir.TypeAttr.get(kind)

    def desc_type(self, desc: UpstreamTensorDesc) -> ir.Type:
        """Our type of a descriptor."""
        if desc not in self._desc_types:
            self._desc_types[desc] = self.our_desc(desc).to_ir()
        return self._desc_types[desc]

    def our_desc(self, desc: UpstreamTensorDesc) -> ours.TensorDesc:
        """Our descriptor for one of upstream's."""
        scope = ours.MemoryScope(scope_of(desc))
        if desc.scatter:
            # Ours have one dimension of lanes.
            shape = (math.prod(desc.lanes), *desc.shape[len(desc.lanes) :])
            return ours.TensorDesc(shape, desc.element, ours.TdescAttr(memory_scope=scope, scattered=True))
        attr = block_attr(desc)
        return ours.TensorDesc(
            desc.shape,
            desc.element,
            ours.TdescAttr(scope, attr.array_length, attr.boundary_check and len(desc.shape) > 1),
        )

    # Blocks.

    @rule(PREFIX + "create_nd_tdesc")
    def create_nd_tdesc(self, op: Any) -> None:
        desc = UpstreamTensorDesc.of(op.tdesc)
        source, offsets, shape, strides = op.source, list(op.offsets), op.shape, op.strides
        made = self.descriptor(op, desc, source, offsets, shape, strides)
        self.sources[made] = op
        self.replace(op, made)

    def descriptor(
        self,
        view: Any,
        desc: UpstreamTensorDesc,
        source: ir.Value,
        offsets: list[Any],
        shape: list[Any],
        strides: list[Any],
    ) -> ir.Value:
        """Build a descriptor of a block of a tensor's innermost dimensions."""
        kind = self.desc_type(desc)
        rank = len(ours.TensorDesc.of(kind).shape)
        offsets, shape, strides = ([self.shared(v) for v in group] for group in (offsets, shape, strides))
        is_memref = isinstance(source.type, ir.MemRefType)
        outer = (ir.MemRefType(source.type).rank if is_memref else len(shape)) - rank
        offsets = offsets or [0] * (outer + rank)
        if outer:
            source, offsets, shape, strides = _inner(view, source, offsets, shape, strides, rank, desc)
        else:
            source = long_address(source)
        if isinstance(source.type, ir.MemRefType) and is_static(source):
            # Given as well, they would have to be compared when the kernel runs.
            shape, strides = _unless_known(view, source, shape, strides)
        made = ours.CreateNdTdescOp(source, offsets, shape or None, strides or None, mode=self.mode, tdesc=kind)
        return made.tdesc

    def shared(self, value: Any) -> Any:
        """A number that block messages take."""
        return value

    def of_use(self, view: Any) -> ir.Value:
        """The descriptor of an op."""
        return view.tdesc

    def moved(self, view: Any) -> ir.Value:
        """The descriptor of an op, moved by the op's offsets if it has some."""
        offsets = view.offsets
        tdesc = view.tdesc
        rank = len(ours.TensorDesc.of(tdesc).shape)
        if len(offsets) > rank:
            made = self.sources.get(tdesc)
            if made is None:
                refuse(view, f"it has {len(offsets)} offsets for a descriptor that is not made where it can be seen")
            assert made is not None
            if any(o != 0 for o in made.offsets):
                refuse(view, "it has offsets for outer dimensions, and so has the descriptor")
            desc = UpstreamTensorDesc.of(made.tdesc)
            return self.descriptor(made, desc, made.source, list(offsets), made.shape, made.strides)
        tdesc = self.of_use(view)
        if not offsets or all(isinstance(o, int) and o == 0 for o in offsets):
            return tdesc
        offsets = [self.shared(o) for o in offsets]
        return ours.UpdateNdOffsetOp(tdesc, offsets, mode=self.mode, result=tdesc.type).result

    @rule(PREFIX + "update_nd_offset")
    def update_nd_offset(self, op: Any) -> None:
        by = [self.shared(o) for o in op.offsets]
        self.replace(op, ours.UpdateNdOffsetOp(op.tdesc, by, mode=self.mode, result=op.tdesc.type).result)

    @rule(PREFIX + "load_nd")
    def load_nd(self, op: Any) -> None:
        tdesc = self.moved(op)
        desc = ours.TensorDesc.of(tdesc)
        options: dict[str, Any] = {}
        order = op.order(len(desc.shape))
        if list(order) != sorted(order):
            options["transpose"] = order
            if op.transpose_bit_width is not None and op.transpose_bit_width > desc.bits:
                options["transpose_bit_width"] = op.transpose_bit_width
        if op.packed and len(desc.shape) == 1:
            remark(op.operation, "is imported without packed, which is for blocks of two dimensions")
        elif op.packed and desc.bits < 32:
            options["vnni_axis"] = 0
        wanted = shape_of(op.value)
        made = ours.LoadNdOp(tdesc, mode=self.mode, **options)
        put_hints(made, op)
        found = shape_of(made.value)
        if math.prod(found) != math.prod(wanted):
            refuse(op, f"a block of {by(found)} is loaded as {by(wanted)}", "is this a kernel of lanes?")
        self.replace(op, cast(made.value, wanted))

    @rule(PREFIX + "store_nd")
    def store_nd(self, op: Any) -> None:
        tdesc = self.moved(op)
        desc = ours.TensorDesc.of(tdesc)
        held = desc.shape if self.mode == VC else desc.fragment()
        if math.prod(shape_of(op.value)) != math.prod(held):
            here, other = ("subgroup", "lanes") if self.mode == VC else ("lane", "subgroups")
            refuse(
                op,
                f"a {here} has {math.prod(held)} elements of a block of {by(desc.shape)}, not {op.value.type}",
                f"is this a kernel of {other}?",
            )
        made = ours.StoreNdOp(cast(op.value, held), tdesc, mode=self.mode)
        put_hints(made, op)

    @rule(PREFIX + "prefetch_nd")
    def prefetch_nd(self, op: Any) -> None:
        tdesc = self.moved(op)
        made = ours.PrefetchNdOp(tdesc, mode=self.mode)
        put_hints(made, op)

    # Matrices.

    @rule(*PRODUCTS)
    def dpas(self, op: Any) -> None:
        a, b = op.lhs, op.rhs
        if len(shape_of(a)) < 2:
            refuse(op, f"it multiplies {by(shape_of(a))} and {by(shape_of(b))}", "is this a kernel of lanes?")
        given = (op.scale_a, op.scale_b) if isinstance(op, UpstreamDpasMxOp) else ()
        scales = [None if v is None else self.scale(op, v) for v in given]

        def product(a: ir.Value, b: ir.Value, acc: ir.Value | None, *more: Any) -> ir.Value:
            *scales, kind = more
            build: Any = ours.DpasMxOp if scales else ours.DpasOp
            if shared := _shared_by_fewer(a, scales):
                remark(op.operation, f"{shared} elements of K share a scale: zeros fill blocks of {SCALE_BLOCK}")
                a, b = _filled(a, 1, shared), _filled(b, 0, shared)
            return build(a, packed(b), acc, *scales, mode=self.mode, result=kind).result

        self.replace(op, _of_matrices(product, [a, b, op.acc, *scales], op.result.type))

    def scale(self, view: Any, value: ir.Value) -> ir.Value:
        """The scales of a factor, which must be a matrix."""
        if not shape_of(value):
            refuse(view, f"its scale must be a matrix, but got {value.type}", "is this a kernel of lanes?")
        return value

    # Elements.

    @rule(PREFIX + "truncf")
    def truncf(self, op: Any) -> None:
        source, result = op.source, op.result
        if isinstance(source.type, ir.VectorType):
            self.replace(op, ours.TruncfOp(source, result=result.type).result)
            return
        # Two of the narrowest elements are a byte.
        pair = vector.broadcast(vector_type((2,), source.type), source)
        rounded = ours.TruncfOp(pair, result=vector_type((2,), result.type)).result
        self.replace(op, vector.extract(rounded, [], [0]))

    @rule(PREFIX + "lane_shuffle")
    def lane_shuffle(self, op: Any) -> None:
        refuse(op, "it is for kernels of lanes", "give --level=lane if this is one")

    # Scattered accesses.

    @rule(PREFIX + "create_tdesc")
    def create_tdesc(self, op: Any) -> None:
        desc = self.our_desc(UpstreamTensorDesc.of(op.tdesc))
        self.replace(
            op,
            ours.CreateTdescOp(
                long_address(op.source),
                line(op.offsets),
                mode=VC,
                chunk_size_per_lane=desc.chunk,
                tdesc=desc.to_ir(),
            ).tdesc,
        )

    @rule(PREFIX + "update_offset")
    def update_offset(self, op: Any) -> None:
        self.replace(op, ours.UpdateOffsetOp(op.tdesc, line(op.offsets), mode=VC, result=op.tdesc.type).result)

    def scattered(self, view: Any, source: ir.Value) -> list[tuple[ir.Value, ir.Value, tuple[int, int]]]:
        """The descriptors by which a gather or scatter is done, with their masks, and the lanes that each has."""
        if not isinstance(source.type, ir.MemRefType) and str(source.type).startswith("!"):
            desc = ours.TensorDesc.of(source)
            return [(source, line(view.mask), (0, desc.lanes))]
        return self.lanes(source, line(view.offsets), element_of(view.value), line(view.mask), chunk_of(view))

    def lanes(
        self, source: ir.Value, offsets: ir.Value, element: str, mask: ir.Value | None = None, chunk: int = 1
    ) -> list[tuple[ir.Value, ir.Value, tuple[int, int]]]:
        """Descriptors of up to 32 lanes at these offsets, with their masks, and the lanes that each has."""
        count = shape_of(offsets)[0]
        mask = constant(vector_type((count,), "i1"), True) if mask is None else mask
        slm = isinstance(source.type, ir.MemRefType) and is_slm(ir.MemRefType(source.type).memory_space)
        scope = ours.MemoryScope.SLM if slm else ours.MemoryScope.GLOBAL
        source = long_address(source)
        found, at = [], 0
        while at < count:
            lanes = next(n for n in (32, 16, 8, 4, 2, 1) if n <= count - at)
            shape = (lanes, chunk) if chunk > 1 else (lanes,)
            kind = ours.TensorDesc(shape, element, ours.TdescAttr(memory_scope=scope, scattered=True))
            made = ours.CreateTdescOp(
                source, _slice(offsets, at, lanes), mode=VC, chunk_size_per_lane=chunk, tdesc=kind.to_ir()
            )
            found.append((made.tdesc, _slice(mask, at, lanes), (at, lanes)))
            at += lanes
        return found

    @rule(PREFIX + "load")
    def load(self, op: Any) -> None:
        wanted, pieces = shape_of(op.value), []
        for tdesc, mask, _ in self.scattered(op, op.source):
            desc = ours.TensorDesc.of(tdesc)
            made = ours.LoadGatherOp(tdesc, mask, mode=VC)
            put_hints(made, op)
            value = made.value
            pieces.append(transpose(value, [1, 0]) if desc.chunk > 1 else value)
        self.replace(op, cast(_joined(pieces), wanted) if wanted else _only(pieces))

    @rule(PREFIX + "store")
    def store(self, op: Any) -> None:
        value, source = line(op.value), op.source
        for tdesc, mask, (at, lanes) in self.scattered(op, source):
            desc = ours.TensorDesc.of(tdesc)
            whole = cast(value, (math.prod(shape_of(value)) // desc.chunk, desc.chunk)) if desc.chunk > 1 else value
            piece = _slice(whole if desc.chunk > 1 else cast(value, (math.prod(shape_of(value)),)), at, lanes)
            made = ours.StoreScatterOp(transpose(piece, [1, 0]) if desc.chunk > 1 else piece, tdesc, mask, mode=VC)
            put_hints(made, op)

    @rule(PREFIX + "prefetch")
    def prefetch(self, op: Any) -> None:
        if str(op.source.type).startswith("!"):
            made = ours.PrefetchOp(op.source, mode=VC)
            put_hints(made, op)
        # A prefetch by offsets changes no value.

    @rule(PREFIX + "atomic_rmw")
    def atomic_rmw(self, op: Any) -> None:
        value, pieces = line(op.value), []
        source = op.tdesc
        wanted = shape_of(op.result)
        for tdesc, mask, (at, lanes) in self.scattered(op, source):
            desc = ours.TensorDesc.of(tdesc)
            if desc.chunk > 1:
                refuse(op, f"it works on {desc.chunk} elements a lane")
            made = ours.AtomicRmwOp(op.kind, _slice(value, at, lanes), tdesc, mask, mode=VC)
            pieces.append(made.result)
        self.replace(op, cast(_joined(pieces), wanted) if wanted else _only(pieces))

    # Matrices in shared local memory.

    @rule(PREFIX + "create_mem_desc")
    def create_mem_desc(self, op: Any) -> None:
        desc = MemDesc.of(op.mem_desc)
        self.buffers[op.mem_desc] = (desc, import_common.buffer_of(op, desc.element))

    def buffer(self, view: Any) -> tuple[MemDesc, ir.Value]:
        """The matrix that an op accesses, and the buffer in which it lies."""
        found = self.buffers.get(view.mem_desc)
        if found is None:
            refuse(view, "its mem_desc is not made where it can be seen")
        return found

    @rule(PREFIX + "load_matrix")
    def load_matrix(self, op: Any) -> None:
        desc, buffer = self.buffer(op)
        shape = shape_of(op.value)
        where = import_common.places(desc, op.offsets, shape)
        self.replace(op, cast(self.gather(buffer, where, desc.element), shape))

    @rule(PREFIX + "store_matrix")
    def store_matrix(self, op: Any) -> None:
        desc, buffer = self.buffer(op)
        where = import_common.places(desc, op.offsets, shape_of(op.value))
        for tdesc, mask, (at, lanes) in self.lanes(buffer, where, desc.element):
            ours.StoreScatterOp(_slice(line(op.value), at, lanes), tdesc, mask, mode=VC)

    def gather(self, buffer: ir.Value, where: ir.Value, element: str) -> ir.Value:
        """The elements of a buffer at these places."""
        return _joined([ours.LoadGatherOp(t, mask, mode=VC).value for t, mask, _ in self.lanes(buffer, where, element)])

    # The rest.

    @rule(PREFIX + "convert_layout")
    def convert_layout(self, op: Any) -> None:
        # A layout never changes a value, and a subgroup has all of its own.
        self.replace(op, op.source)

    @rule(PREFIX + "alloc_nbarrier")
    def alloc_nbarrier(self, op: Any) -> None:
        ours.AllocNbarrierOp(nbarrier_num=op.nbarrier_num)

    @rule(PREFIX + "init_nbarrier")
    def init_nbarrier(self, op: Any) -> None:
        self.replace(op, ours.InitNbarrierOp(op.nbarrier_id, op.participant_thread_num).result)

    @rule(PREFIX + "nbarrier_arrive")
    def nbarrier_arrive(self, op: Any) -> None:
        ours.NbarrierArriveOp(op.nbarrier)

    @rule(PREFIX + "nbarrier_wait")
    def nbarrier_wait(self, op: Any) -> None:
        ours.NbarrierWaitOp(op.nbarrier)

    @rule(PREFIX + "fence")
    def fence(self, op: Any) -> None:
        kind = "shared" if op.memory_kind == ours.MemoryScope.SLM else "global"
        ours.FenceOp(scope=op.fence_scope.value, memory_kind=kind)

    @rule(PREFIX + "compile_hint")
    def compile_hint(self, op: Any) -> None:
        ours.CompileHintOp()


Operands = Sequence[ir.Value | None]


def _of_matrices(product: Callable[..., ir.Value], operands: Operands, kind: ir.VectorType) -> ir.Value:
    """A product of two matrices, or of each pair in two batches of them.

    Args:
        product: makes a product of its operands, and of the type of its result.
        kind: the type of the whole result, whose first dimensions are those of the batch.
    """
    outer = kind.shape[:-2]
    if not outer:
        return product(*operands, kind)
    whole = zero(kind)
    one = vector_type(kind.shape[-2:], kind.element_type)
    for at in itertools.product(*map(range, outer)):
        made = product(*(v if v is None else extract(v, at) for v in operands), one)
        whole = insert(made, whole, at)
    return whole


def _shared_by_fewer(a: ir.Value, scales: Sequence[ir.Value | None]) -> int:
    """The elements of K that share a scale, if they are fewer than instructions multiply by one; otherwise 0."""
    depth = shape_of(a)[1]
    counts = {shape_of(v)[axis] for v, axis in zip(scales, (1, 0)) if v is not None}
    shared, rest = divmod(depth, counts.pop()) if len(counts) == 1 else (0, 0)
    fits = shared and not rest and SCALE_BLOCK % shared == 0 and shared * bit_width(element_of(a)) % 32 == 0
    return shared if fits and shared < min(depth, SCALE_BLOCK) else 0


def _filled(value: ir.Value, axis: int, shared: int) -> ir.Value:
    """A factor with zeros behind each of the blocks along K that share a scale, so that instructions multiply one."""
    shape = shape_of(value)
    # The second factor may be in VNNI layout.
    own, whole = ((n // shape[2] if len(shape) == 3 else n) for n in (shared, SCALE_BLOCK))
    blocks = shape[axis] // own
    split, padded = ((*shape[:axis], blocks, n, *shape[axis + 1 :]) for n in (own, whole))
    joined = (*shape[:axis], blocks * whole, *shape[axis + 1 :])
    return cast(pad_with_zeros(cast(value, split), padded), joined)


def packed(b: ir.Value) -> ir.Value:
    """The second factor of a product in VNNI layout."""
    shape = shape_of(b)
    factor = max(32 // bit_width(element_of(b)), 1)
    if factor == 1 or len(shape) != 2:
        return b
    k, n = shape
    return transpose(cast(b, (k // factor, factor, n)), [0, 2, 1])


def is_static(source: ir.Value) -> bool:
    """Whether the shape and the strides of a memref are known."""
    kind = ir.MemRefType(source.type)
    strides = strides_of(kind)
    return kind.has_static_shape and strides is not None and DYNAMIC not in strides


def _unless_known(view: Any, source: ir.Value, shape: Sequence[Any], strides: Sequence[Any]) -> tuple[Any, Any]:
    """Shape and strides that an op gives for a memref with a static shape and static strides, which must be equal."""
    kind = ir.MemRefType(source.type)
    for what, given, known in (("shape", shape, kind.shape), ("strides", strides, strides_of(kind) or [])):
        for a, b in zip(given, known):
            if isinstance(a, int) and a != b:
                refuse(view, f"its {what} {list(given)} differs from that of {kind}")
    return ([], []) if all(isinstance(n, int) for n in (*shape, *strides)) else (shape, strides)


def _inner(
    view: Any,
    source: ir.Value,
    offsets: list[Any],
    shape: list[Any],
    strides: list[Any],
    rank: int,
    desc: UpstreamTensorDesc,
) -> tuple[ir.Value, list[Any], list[Any], list[Any]]:
    """The innermost dimensions of a tensor, as a tensor of `rank` dimensions, and the offsets in it.

    A block of one dimension lies at its address: rows have no bounds there.
    """
    outer = len(offsets) - rank
    fixed = len(offsets) if rank == 1 else outer
    if not isinstance(source.type, ir.MemRefType):
        return as_address(view, source, offsets, shape, strides, rank, desc.element, fixed)
    starts = mixed(offsets[:fixed]) + mixed([0] * (len(offsets) - fixed))
    inner_sizes: list[Any] = list(desc.shape) if rank == 1 else extents_of(source, shape)[outer:]
    inner = subview(source, starts, [1] * outer + inner_sizes, rank)
    return inner, [0] * rank if rank == 1 else offsets[outer:], [], []


def as_address(
    view: Any,
    source: ir.Value,
    offsets: list[Any],
    shape: list[Any],
    strides: list[Any],
    rank: int,
    element: str,
    fixed: int | None = None,
) -> tuple[ir.Value, list[Any], list[Any], list[Any]]:
    """The address of a tensor's innermost dimensions, with the offsets, shape and strides in these.

    A tensor of fewer dimensions gets outer ones of size 1.

    Args:
        view: the op that accesses the tensor.
        fixed: how many offsets are added to the address; by default those of the dimensions that are left out.
    """
    i64 = ir.IntegerType.get_signless(64)
    address = signless(long_address(source))
    outer = max(len(offsets) - rank, 0)
    fixed = outer if fixed is None else fixed
    each = max(8 // bit_width(element), 1)
    for offset, stride in zip(offsets[:fixed], strides):
        if offset == 0:
            continue
        moved = arith.muli(*mixed([offset, stride]))
        if divisor(moved) % each:
            refuse(view, "it is not known to begin at a byte", f"offsets must be multiples of {each} elements")
        size = bit_width(element) // 8
        moved = arith.muli(moved, index(size)) if size else arith.divsi(moved, index(each))
        address = arith.addi(address, arith.index_cast(i64, moved))
    left = [0] * fixed + offsets[fixed:]
    more = [1] * (rank - len(shape))
    pitch = [shape[-1]] * (rank - len(strides)) if shape else []
    return address, [0] * len(more) + left[outer:], [*more, *shape[outer:]], [*pitch, *strides[outer:]]


def line(value: ir.Value) -> ir.Value:
    """A value as a vector of one dimension."""
    shape = shape_of(value)
    if not shape and not str(value.type).startswith("vector<"):
        return vector.broadcast(vector_type((1,), value.type), value)
    return cast(value, (math.prod(shape),))


def _slice(value: ir.Value, at: int, count: int) -> ir.Value:
    """Part of a vector along its first dimension."""
    rest = shape_of(value)[1:]
    return extract_slice(value, [at, *[0] * len(rest)], [count, *rest])


def _joined(pieces: Sequence[ir.Value]) -> ir.Value:
    """Vectors side by side along their first dimension."""
    if len(pieces) == 1:
        return pieces[0]
    rest = shape_of(pieces[0])[1:]
    kind = vector_type((sum(shape_of(p)[0] for p in pieces), *rest), element_of(pieces[0]))
    whole, at = zero(kind), 0
    for piece in pieces:
        whole = insert_slice(piece, whole, [at, *[0] * len(rest)])
        at += shape_of(piece)[0]
    return whole


def _only(pieces: Sequence[ir.Value]) -> ir.Value:
    """The single element of a vector of one element."""
    return vector.extract(pieces[0], [], [0])
