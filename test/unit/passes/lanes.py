"""An evaluator of vector code in numpy, for all lanes of a workgroup at once.

It knows nothing of layouts. Distributed code runs with as many lanes as there are; undistributed code is run with one
lane, for which `to_layout` does nothing. All values have the lanes as first axis. Ops run in lockstep, so that
barriers do nothing.
"""

import re

import numpy as np
from mlir import ir

DTYPES = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "index": np.int64,
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
}  # fmt: skip
BINARY = {
    "arith.addi": np.add, "arith.addf": np.add, "arith.subi": np.subtract, "arith.subf": np.subtract,
    "arith.muli": np.multiply, "arith.mulf": np.multiply, "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor, "arith.maxsi": np.maximum, "arith.minsi": np.minimum,
    "arith.maximumf": np.maximum, "arith.minimumf": np.minimum, "arith.maxnumf": np.fmax, "arith.minnumf": np.fmin,
    "arith.divui": np.floor_divide, "arith.remui": np.remainder, "arith.divf": np.divide,
}  # fmt: skip
REDUCTIONS = {
    "add": np.add, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "maxsi": np.maximum, "minsi": np.minimum, "maximumf": np.maximum, "minimumf": np.minimum,
    "maxnumf": np.fmax, "minnumf": np.fmin,
}  # fmt: skip
COMPARISONS = {0: np.equal, 1: np.not_equal, 2: np.less, 3: np.less_equal, 4: np.greater, 5: np.greater_equal}
DYNAMIC = -(2**63)


def dtype_of(kind):
    return np.dtype(DTYPES[str(kind)])


def shape_of(kind):
    return tuple(ir.VectorType(kind).shape) if isinstance(kind, ir.VectorType) else ()


def element_of(kind):
    return ir.VectorType(kind).element_type if isinstance(kind, ir.VectorType) else kind


def numbers(attribute):
    """The numbers of `array<i64: ..>` or `[1, 2]`."""
    text = str(attribute)
    body = text[text.index(":") + 1 : -1] if text.startswith("array") and ":" in text else text
    if text == "array<i64>":
        return []
    return [int(n) for n in re.findall(r"-?\d+", re.sub(r":\s*i\d+", "", body))]


def map_of(attribute):
    """The dimensions that a map gives; -1 for a constant."""
    return [int(str(e)[1:]) if str(e)[0] == "d" else -1 for e in ir.AffineMapAttr(attribute).value.results]


def splat_or_list(attribute, kind):
    if not isinstance(kind, ir.VectorType):
        value = attribute.value
        return np.asarray(value, dtype_of(kind))
    dense = ir.DenseElementsAttr(attribute)
    if dense.is_splat:
        return np.full(shape_of(kind), dense.get_splat_value().value, dtype_of(element_of(kind)))
    return np.asarray(list(ir.DenseIntElementsAttr(attribute)), dtype_of(element_of(kind))).reshape(shape_of(kind))


class Workgroup:
    """The lanes of a workgroup.

    Attributes:
        subgroups: how many there are.
        lanes: of a subgroup.
        active: which lanes are where ops run.
        written: by the id of a memory, which lane has written which of its places.
        simd: what has gone into `to_simd` ops, in order: arrays of (lanes, *part).
        shuffles: how many have run.
        barriers: how many have run.
    """

    def __init__(self, subgroups=1, lanes=1):
        self.subgroups, self.lanes, self.count = subgroups, lanes, subgroups * lanes
        self.simd = []
        self.shuffles = self.barriers = 0
        self.written = {}
        self.active = np.ones(self.count, bool)
        self.values = {}

    def run(self, func, arguments):
        """Run a function on arrays (its memrefs, written in place) and numbers."""
        block = func.regions[0].blocks[0]
        for argument, value in zip(block.arguments, arguments):
            if isinstance(argument.type, ir.MemRefType):
                self.values[argument] = value
            else:
                self.values[argument] = np.full(self.count, value)
        return self.block(block)

    def block(self, block):
        for view in block.operations:
            op = view.operation
            if op.name in ("scf.yield", "func.return", "gpu.return", "vector.yield"):
                return [self.values[v] for v in op.operands]
            self.op(op)
        return []

    def op(self, op):
        given = [self.values[v] for v in op.operands]
        name = op.name.replace(".", "_")
        if op.name in BINARY:
            found = BINARY[op.name](*given)
        elif not hasattr(self, name):
            raise NotImplementedError(op.name)
        else:
            found = getattr(self, name)(op, *given)
        results = found if isinstance(found, list) else [found]
        for result, value in zip(op.results, results):
            if not isinstance(result.type, ir.MemRefType):
                wanted = (self.count, *shape_of(result.type))
                assert value.shape == wanted, f"{op} gives {value.shape}"
                value = value.astype(dtype_of(element_of(result.type)), copy=False)
            self.values[result] = value

    def every(self, value):
        return np.broadcast_to(value, (self.count, *np.shape(value)))

    # arith, math

    def arith_constant(self, op):
        return self.every(splat_or_list(op.attributes["value"], op.results[0].type))

    def arith_select(self, op, condition, a, b):
        return np.where(condition.reshape(condition.shape + (1,) * (a.ndim - condition.ndim)), a, b)

    def arith_cmpi(self, op, a, b):
        predicate = ir.IntegerAttr(op.attributes["predicate"]).value
        if predicate > 5:
            a, b, predicate = a.view(f"u{a.itemsize}"), b.view(f"u{b.itemsize}"), predicate - 4
        return COMPARISONS[predicate](a, b)

    def arith_extui(self, op, a):
        return a.astype(f"u{a.itemsize}")

    def arith_trunci(self, op, a):
        return a & 1 if str(element_of(op.results[0].type)) == "i1" else a

    def arith_index_cast(self, op, a):
        return a

    # gpu, affine, memref

    def gpu_lane_id(self, op):
        return np.arange(self.count) % self.lanes

    def gpu_subgroup_id(self, op):
        return np.arange(self.count) // self.lanes

    def gpu_thread_id(self, op):
        assert "dim x" in str(op.attributes["dimension"])
        return np.arange(self.count)

    def gpu_barrier(self, op):
        self.barriers += 1
        return []

    def gpu_shuffle(self, op, value, offset, width):
        mode = str(op.attributes["mode"])
        assert "xor" in mode or "idx" in mode
        lane = np.arange(self.count)
        inside = lane % self.lanes ^ offset if "xor" in mode else offset
        assert (inside >= 0).all() and (inside < width).all()
        self.shuffles += 1
        return [value[lane - lane % self.lanes + inside], np.ones(self.count, bool)]

    def gpu_subgroup_reduce(self, op, value):
        size = numbers(op.attributes["cluster_size"])[0] if "cluster_size" in op.attributes else self.lanes
        stride = numbers(op.attributes["cluster_stride"])[0] if "cluster_stride" in op.attributes else 1
        kind = re.search(r"all_reduce_op (\w+)", str(op.attributes["op"]))[1]
        lane = np.arange(self.count)
        first = lane // (size * stride) * (size * stride) + lane % stride
        return REDUCTIONS[kind].reduce([value[first + k * stride] for k in range(size)], axis=0)

    def affine_delinearize_index(self, op, value, *dynamic):
        found = []
        for n in reversed(numbers(op.attributes["static_basis"])):
            found.append(value % n)
            value = value // n
        extra = [value] if len(found) < len(op.results) else []
        return [*extra, *reversed(found)]

    def affine_linearize_index(self, op, *given):
        basis = numbers(op.attributes["static_basis"])
        sizes = numbers(op.attributes["operandSegmentSizes"]) if "operandSegmentSizes" in op.attributes else None
        indices = given[: sizes[0]] if sizes else given
        assert DYNAMIC not in basis
        basis = basis[len(basis) - len(indices) + 1 :]
        total = indices[0]
        for x, n in zip(indices[1:], basis):
            total = total * n + x
        return total

    def memref_alloc(self, op):
        kind = ir.MemRefType(op.results[0].type)
        # What is read before it is written should show.
        return np.full(kind.shape, 99, dtype_of(kind.element_type))

    def memref_reinterpret_cast(self, op, memory):
        found = memory.reshape(ir.MemRefType(op.results[0].type).shape)
        assert np.shares_memory(found, memory)
        return found

    def memref_load(self, op, memory, *indices):
        return memory[tuple(indices)]

    def memref_store(self, op, value, memory, *indices):
        memory[tuple(x[self.active] for x in indices)] = value[self.active]
        return []

    # iree_vector_ext

    def iree_vector_ext_to_layout(self, op, value):
        return value

    def iree_vector_ext_to_simd(self, op, value):
        self.simd.append(value)
        return np.zeros((self.count, *shape_of(op.results[0].type)), value.dtype)

    # vector: registers

    def vector_broadcast(self, op, value):
        shape = shape_of(op.results[0].type)
        inner = value.shape[1:]
        return np.broadcast_to(
            value.reshape(self.count, *(1,) * (len(shape) - len(inner)), *inner), (self.count, *shape)
        )

    def vector_transpose(self, op, value):
        return value.transpose(0, *(1 + i for i in numbers(op.attributes["permutation"])))

    def vector_shape_cast(self, op, value):
        return value.reshape(self.count, *shape_of(op.results[0].type))

    def vector_step(self, op):
        return self.every(np.arange(shape_of(op.results[0].type)[0]))

    def vector_create_mask(self, op, *bounds):
        shape = shape_of(op.results[0].type)
        total = np.ones((self.count, *shape), bool)
        for i, bound in enumerate(bounds):
            along = np.arange(shape[i]).reshape((-1,) + (1,) * (len(shape) - i - 1))
            total &= along < bound.reshape(-1, *(1,) * len(shape))
        return total

    def vector_constant_mask(self, op):
        return self.vector_create_mask(op, *(self.every(np.int64(n)) for n in numbers(op.attributes["mask_dim_sizes"])))

    def _position(self, op, dynamic):
        moving = iter(dynamic)
        static = numbers(op.attributes["static_position"])
        return tuple(next(moving) if n == DYNAMIC else np.full(self.count, n) for n in static)

    def vector_extract(self, op, value, *dynamic):
        return value[(np.arange(self.count), *self._position(op, dynamic))]

    def vector_insert(self, op, value, whole, *dynamic):
        made = whole.copy()
        made[(np.arange(self.count), *self._position(op, dynamic))] = value
        return made

    def vector_insert_strided_slice(self, op, value, whole):
        made = whole.copy()
        offsets = numbers(op.attributes["offsets"])
        inner = value.shape[1:]
        window = [slice(o, o + 1) for o in offsets[: len(offsets) - len(inner)]]
        window += [slice(o, o + n) for o, n in zip(offsets[len(offsets) - len(inner) :], inner)]
        made[(slice(None), *window)] = value.reshape(made[(slice(None), *window)].shape)
        return made

    def vector_extract_strided_slice(self, op, value):
        window = [slice(o, o + n) for o, n in zip(numbers(op.attributes["offsets"]), numbers(op.attributes["sizes"]))]
        return value[(slice(None), *window)]

    def vector_from_elements(self, op, *values):
        return np.stack(values, axis=1).reshape(self.count, *shape_of(op.results[0].type))

    def vector_to_elements(self, op, value):
        return list(value.reshape(self.count, -1).T)

    def vector_shuffle(self, op, a, b):
        return np.concatenate([a, b], axis=1)[:, numbers(op.attributes["mask"])]

    def _kind(self, op):
        return REDUCTIONS[re.search(r"<(\w+)>", str(op.attributes["kind"]))[1]]

    def vector_multi_reduction(self, op, value, acc):
        kind = self._kind(op)
        axes = tuple(1 + i for i in numbers(op.attributes["reduction_dims"]))
        return kind(kind.reduce(value, axis=axes, dtype=value.dtype), acc) if axes else kind(value, acc)

    def vector_reduction(self, op, value, acc=None):
        kind = self._kind(op)
        found = kind.reduce(value, axis=1, dtype=value.dtype)
        return found if acc is None else kind(found, acc)

    def vector_contract(self, op, lhs, rhs, acc, mask=None):
        assert self._kind(op) is np.add
        letters = "bcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        terms = ["a" + "".join(letters[i] for i in map_of(m)) for m in op.attributes["indexing_maps"]]
        wide = np.int64 if lhs.dtype.kind == "i" else np.float64
        factors = [lhs.astype(wide), rhs.astype(wide)]
        if mask is not None:
            terms.insert(2, "a" + letters[: mask.ndim - 1])
            factors.append(mask.astype(wide))
        found = np.einsum(f"{','.join(terms[:-1])}->{terms[-1]}", *factors)
        return (found + acc).astype(acc.dtype)

    def vector_mask(self, op, mask, *passed):
        if passed:
            found = self._under_mask(op, mask)
            masked = next(iter(op.regions[0].blocks[0])).operation
            return np.where(self._masked(masked, mask, found.shape[1:]), found, passed[0])
        return self._under_mask(op, mask)

    def _under_mask(self, op, mask):
        inner = [o.operation for o in op.regions[0].blocks[0]]
        masked, given = inner[0], [self.values[v] for v in inner[0].operands]
        if masked.name == "vector.transfer_read":
            return self.vector_transfer_read(masked, *given, mask, masked=True)
        if masked.name == "vector.transfer_write":
            return self.vector_transfer_write(masked, *given, mask, masked=True)
        if masked.name == "vector.contract":
            return self.vector_contract(masked, *given, mask)
        if masked.name == "vector.gather":
            given[-2] = given[-2] & mask
            return self.vector_gather(masked, *given)
        assert masked.name in ("vector.multi_reduction", "vector.reduction") and self._kind(masked) is np.add
        given[0] = np.where(mask, given[0], np.zeros((), given[0].dtype))
        return getattr(self, masked.name.replace(".", "_"))(masked, *given)

    # vector: memory

    def _places(self, op, shape, indices, sizes):
        """The index in each dimension of memory, and whether it is inside."""
        dims = map_of(op.attributes["permutation_map"])
        places, inside = [], np.ones((self.count, *shape), bool)
        whole = [str(x) == "true" for x in op.attributes["in_bounds"]] if "in_bounds" in op.attributes else []
        for m, (start, size) in enumerate(zip(indices, sizes)):
            place = np.broadcast_to(start.reshape(-1, *(1,) * len(shape)), (self.count, *shape))
            here = np.ones_like(inside)
            for i, d in enumerate(dims):
                if d == m:
                    place = place + np.arange(shape[i]).reshape((-1,) + (1,) * (len(shape) - i - 1))
                    here = (place >= 0) & (place < size)
                    assert here.all() or not whole[i], f"{op} is out of bounds"
            inside &= here
            places.append(np.clip(place, 0, size - 1))
        return places, inside

    def _masked(self, op, mask, shape):
        dims = map_of(op.attributes["permutation_map"])
        order = sorted((i for i, d in enumerate(dims) if d >= 0), key=lambda i: dims[i])
        back = np.argsort(order)
        turned = mask.transpose(0, *(1 + i for i in back))
        return np.broadcast_to(
            turned.reshape(self.count, *(n if i in order else 1 for i, n in enumerate(shape))), (self.count, *shape)
        )

    def vector_transfer_read(self, op, memory, *rest, masked=False):
        n = memory.ndim
        indices, padding, mask = rest[:n], rest[n], rest[n + 1] if len(rest) > n + 1 else None
        shape = shape_of(op.results[0].type)
        places, inside = self._places(op, shape, indices, memory.shape)
        if mask is not None:
            inside = inside & self._masked(op, mask, shape)
        return np.where(inside, memory[tuple(places)], padding.reshape(-1, *(1,) * len(shape)))

    def vector_transfer_write(self, op, value, memory, *rest, masked=False):
        n = memory.ndim
        shape = value.shape[1:]
        places, inside = self._places(op, shape, rest[:n], memory.shape)
        inside = inside & self.active.reshape(-1, *(1,) * len(shape))
        if len(rest) > n:
            inside = inside & self._masked(op, rest[n], shape)
        at = tuple(p[inside] for p in places)
        lane = np.broadcast_to(np.arange(self.count).reshape(-1, *(1,) * len(shape)), inside.shape)[inside]
        self.written.setdefault(id(memory), np.zeros((self.count, *memory.shape), bool))[(lane, *at)] = True
        memory[at] = value[inside]
        assert np.array_equal(memory[at], value[inside]), "lanes write different values to one place"
        return []

    def vector_gather(self, op, memory, *rest):
        n = memory.ndim
        *offsets, indices, mask, other = rest
        assert len(offsets) == n
        shape = (-1, *(1,) * (indices.ndim - 1))
        start = np.ravel_multi_index(tuple(offsets), memory.shape).reshape(shape)
        found = memory.reshape(-1)[np.where(mask, start + indices, 0)]
        return np.where(mask, found, other)

    # scf

    def scf_for(self, op, low, high, step, *carried):
        block = op.regions[0].blocks[0]
        bounds = [int(np.unique(x).item()) for x in (low, high, step)]
        values = list(carried)
        for i in range(*bounds):
            for argument, value in zip(block.arguments, [np.full(self.count, i), *values]):
                self.values[argument] = value
            values = self.block(block)
        return values

    def scf_if(self, op, condition):
        ways = [region.blocks[0] if len(region.blocks) else None for region in op.regions]
        taken = np.unique(condition)
        if taken.size == 1:
            return self.block(ways[not taken.item()]) if ways[not taken.item()] else []
        # Lanes diverge. Inactive lanes do not write, and the branches have no other effects.
        assert not len(op.results)
        before = self.active
        for way, here in zip(ways, (condition, ~condition)):
            if way:
                self.active = before & here
                self.block(way)
        self.active = before
        return []

    def scf_while(self, op, *carried):
        before, after = (region.blocks[0] for region in op.regions)
        values = list(carried)
        while True:
            for argument, value in zip(before.arguments, values):
                self.values[argument] = value
            *body, end = [view.operation for view in before.operations]
            for inner in body:
                self.op(inner)
            condition, *handed = (self.values[v] for v in end.operands)
            if not np.unique(condition).item():
                return handed
            for argument, value in zip(after.arguments, handed):
                self.values[argument] = value
            values = self.block(after)
