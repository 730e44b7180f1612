"""Triton's ops on memory: loads, stores and atomic updates by pointers and by descriptors."""

from collections.abc import Sequence
from typing import Annotated, Any

from xegpu_py.dialects.tt.types import (
    I32,
    I64,
    BoolLike,
    CachePolicy,
    DescriptorReduceKind,
    Int32EnumCodec,
    IntLike,
    MemSemantic,
    MemSyncScope,
    Number,
    PaddingOption,
    Ptr,
    PtrLike,
    RMWOp,
    RowTensor,
    Tensor,
    TensorDesc,
    Tt,
    pointee_type,
    shape_and_element,
    shaped_like,
)
from xegpu_py.ir.codecs import Unit, register_codec
from xegpu_py.ir.definition import Attribute, Operand, Result, default
from xegpu_py.ir.operation import Operation, ParsedOp

for _cases in (MemSemantic, MemSyncScope, RMWOp, DescriptorReduceKind):
    register_codec(_cases, Int32EnumCodec(_cases))


def check_access(op: Any, ptr: Any, **values: Any) -> None:
    """Check that values have the type that pointers point to, and a mask their shape; None is left out.

    Args:
        op: the op.
        ptr: its pointers.
        values: the values by the names of their fields; `mask` among them is the mask.
    """
    text = str(ptr.type)
    for name, value in values.items():
        expected = shaped_like(text, "i1") if name == "mask" else pointee_type(text)
        if value is not None and str(value.type) != expected:
            op.fail(f"'{name}' must be of type {expected} for pointers {ptr.type}, but got {value.type}")


def _accessed(parsed: ParsedOp, *values: str) -> dict[str, str]:
    text = parsed.type_of("ptr")
    elements = {name: pointee_type(text) for name in values if parsed.operands.get(name, True)}
    return {**elements, **({"mask": shaped_like(text, "i1")} if parsed.operands.get("mask") else {})}


class LoadOp(Operation, dialect=Tt, name="load"):
    """Loads from pointers. Where the mask is false memory is not read, and the element is that of `other`, or any."""

    ptr: Operand[PtrLike]
    mask: Operand[BoolLike] | None = None
    other: Operand[Number] | None = None
    cachePolicy: Attribute[CachePolicy] | None = None
    isVolatile: Attribute[bool] = default(False)
    result: Result[Number]

    effects = frozenset(["read"])
    assembly_format = "$ptr (`,` $mask^)? (`,` $other^)? attr-dict `:` type($ptr)"

    @classmethod
    def infer(cls, parsed: ParsedOp) -> dict[str, str]:
        names = ["result", *(["other"] if parsed.operands.get("other") else [])]
        return _accessed(parsed, *names)

    def verify_op(self) -> None:
        check_access(self, self.ptr, result=self.result, mask=self.mask, other=self.other)
        if self.other is not None and self.mask is None:
            self.fail("accepts 'other' only with a mask")


class StoreOp(Operation, dialect=Tt, name="store"):
    """Stores to pointers, where the mask is true."""

    ptr: Operand[PtrLike]
    value: Operand[Number]
    mask: Operand[BoolLike] | None = None
    cachePolicy: Attribute[CachePolicy] | None = None
    ignore_cta: Attribute[Unit] | None = None

    effects = frozenset(["write"])
    assembly_format = "$ptr `,` $value (`,` $mask^)? attr-dict `:` type($ptr)"

    @classmethod
    def infer(cls, parsed: ParsedOp) -> dict[str, str]:
        return _accessed(parsed, "value")

    def verify_op(self) -> None:
        check_access(self, self.ptr, value=self.value, mask=self.mask)


class GridDependencyWaitOp(Operation, dialect=Tt, name="grid_dependency_wait"):
    """Waits for the launches that this one depends on."""

    effects = frozenset(["read", "write"])
    assembly_format = "attr-dict"


class GridDependencyLaunchDependentsOp(Operation, dialect=Tt, name="grid_dependency_launch_dependents"):
    """Lets launches that depend on this one begin."""

    effects = frozenset(["write"])
    assembly_format = "attr-dict"


# Atomic accesses.


class AtomicLoadOp(Operation, dialect=Tt, name="atomic_load"):
    """Loads from pointers atomically, where the mask is true."""

    sem: Attribute[MemSemantic]
    scope: Attribute[MemSyncScope]
    ptr: Operand[PtrLike]
    mask: Operand[BoolLike] | None = None
    result: Result[Number]

    effects = frozenset(["read", "write"])
    assembly_format = "$sem `,` $scope `,` $ptr (`,` $mask^)? attr-dict `:` functional-type($ptr, $mask, $result)"

    def verify_op(self) -> None:
        check_access(self, self.ptr, result=self.result, mask=self.mask)
        check_order(self, MemSemantic.relaxed, MemSemantic.acquire)


class AtomicStoreOp(Operation, dialect=Tt, name="atomic_store"):
    """Stores to pointers atomically, where the mask is true."""

    sem: Attribute[MemSemantic]
    scope: Attribute[MemSyncScope]
    ptr: Operand[PtrLike]
    value: Operand[Number]
    mask: Operand[BoolLike] | None = None

    effects = frozenset(["write"])
    assembly_format = "$sem `,` $scope `,` $ptr `,` $value (`,` $mask^)? attr-dict `:` type($ptr)"
    infer = StoreOp.infer

    def verify_op(self) -> None:
        check_access(self, self.ptr, value=self.value, mask=self.mask)
        check_order(self, MemSemantic.relaxed, MemSemantic.release)


def check_order(op: Any, *orders: MemSemantic) -> None:
    """Check that the memory order of an access is one of these."""
    if op.sem not in orders:
        op.fail(f"'sem' must be {' or '.join(o.name for o in orders)}, but got {op.sem.name}")


class AtomicPollOp(Operation, dialect=Tt, name="atomic_poll"):
    """Loads each element again and again until it is the expected one, or the time is over; says which it was.

    The timeout, in nanoseconds, is one for all elements; each is loaded at least once.
    """

    sem: Attribute[MemSemantic]
    scope: Attribute[MemSyncScope]
    ptr: Operand[PtrLike]
    expected: Operand[IntLike]
    timeout: Operand[I64] | None = None
    result: Result[BoolLike]

    effects = frozenset(["read", "write"])
    assembly_format = (
        "$sem `,` $scope `,` $ptr `,` $expected (`timeout` $timeout^)? attr-dict `:` "
        "type($ptr) `,` type($expected) `->` type($result)"
    )

    @classmethod
    def infer(cls, parsed: ParsedOp) -> dict[str, str]:
        return {"timeout": "i64"} if parsed.operands.get("timeout") else {}

    def verify_op(self) -> None:
        check_access(self, self.ptr, expected=self.expected)
        expected = shaped_like(str(self.expected.type), "i1")
        if str(self.result.type) != expected:
            self.fail(f"requires a result of type {expected}, but got {self.result.type}")
        check_order(self, MemSemantic.relaxed, MemSemantic.acquire)


class AtomicRMWOp(Operation, dialect=Tt, name="atomic_rmw"):
    """Reads, updates and writes each element atomically, where the mask is true; gives what was read."""

    atomic_rmw_op: Attribute[RMWOp]
    sem: Attribute[MemSemantic]
    scope: Attribute[MemSyncScope]
    ptr: Operand[PtrLike]
    val: Operand[Number]
    mask: Operand[BoolLike] | None = None
    result: Result[Number]

    effects = frozenset(["read", "write"])
    assembly_format = (
        "$atomic_rmw_op `,` $sem `,` $scope `,` $ptr `,` $val (`,` $mask^)? attr-dict `:` "
        "functional-type($ptr, $val, $mask, $result)"
    )

    def verify_op(self) -> None:
        check_access(self, self.ptr, val=self.val, mask=self.mask, result=self.result)


class AtomicCASOp(Operation, dialect=Tt, name="atomic_cas"):
    """Writes each element atomically where memory holds the bits of `cmp`; gives what was read."""

    sem: Attribute[MemSemantic]
    scope: Attribute[MemSyncScope]
    ptr: Operand[PtrLike]
    cmp: Operand[Number]
    val: Operand[Number]
    result: Result[Number]

    effects = frozenset(["read", "write"])
    assembly_format = (
        "$sem `,` $scope `,` $ptr `,` $cmp `,` $val attr-dict `:` functional-type($ptr, $cmp, $val, $result)"
    )

    def verify_op(self) -> None:
        check_access(self, self.ptr, cmp=self.cmp, val=self.val, result=self.result)


# Descriptors of tensors.

Padding = Annotated[PaddingOption, Int32EnumCodec(PaddingOption, number=True)]


class MakeTensorDescOp(Operation, dialect=Tt, name="make_tensor_descriptor"):
    """Makes a descriptor of a tensor in memory, by its first element, its shape and its strides in elements.

    Reads outside of the shape give zero, or NaN with `padding = 2 : i32`; writes outside are dropped.
    """

    base: Operand[Ptr]
    shape: Sequence[Operand[I32]]
    strides: Sequence[Operand[I64]]
    padding: Attribute[Padding] = default(PaddingOption.zero)
    result: Result[TensorDesc]

    effects = frozenset()
    assembly_format = "$base `,` `[` $shape `]` `,` `[` $strides `]` attr-dict `:` bare($base) `,` bare($result)"

    def verify_op(self) -> None:
        kind = TensorDesc.of(self.result)
        rank = len(kind.shape)
        for name in ("shape", "strides"):
            if len(getattr(self, name)) != rank:
                self.fail(f"requires {rank} entries in '{name}' for {kind}, but got {len(getattr(self, name))}")
        base, element = Ptr.of(self.base).pointee, kind.element
        if base != element.removeprefix("s").removeprefix("u"):
            self.fail(f"the elements of the descriptor must be of the pointee's type {base}, but got {element}")


class _DescriptorAccess(Operation):
    """Ops on a block of a descriptor: `desc[indices]`."""

    def check_block(self, desc: Any, indices: Sequence[Any], value: Any) -> None:
        """Check that a value has the block's elements, and there is an index for each dimension."""
        kind = TensorDesc.of(desc)
        if len(indices) != len(kind.shape):
            self.fail(f"requires {len(kind.shape)} indices for {kind}, but got {len(indices)}")
        (block_shape, element), (shape, value_element) = shape_and_element_of(kind), shape_and_element(value)
        if value_element != element:
            self.fail(f"requires elements of type {element} for {kind}, but got {value.type}")
        if _without_ones(shape or ()) != _without_ones(block_shape):
            self.fail(f"requires a tensor of type {kind.block} for {kind}, but got {value.type}")


def shape_and_element_of(kind: TensorDesc) -> tuple[tuple[int, ...], str]:
    """The shape and element of a block as a tensor."""
    return kind.shape, kind.block.rpartition("x")[2][:-1]


def _without_ones(shape: Sequence[int]) -> list[int]:
    return [n for n in shape if n != 1]


class DescriptorLoadOp(_DescriptorAccess, dialect=Tt, name="descriptor_load"):
    """Loads a block of a tensor, whose first element the indices name. Dimensions of size 1 may be left out."""

    desc: Operand[TensorDesc]
    indices: Sequence[Operand[I32]]
    cachePolicy: Attribute[CachePolicy] | None = None
    result: Result[Tensor]

    effects = frozenset(["read"])
    assembly_format = "$desc `` `[` $indices `]` attr-dict `:` type($desc) `->` type($result)"

    def verify_op(self) -> None:
        self.check_block(self.desc, self.indices, self.result)


class DescriptorStoreOp(_DescriptorAccess, dialect=Tt, name="descriptor_store"):
    """Stores a block of a tensor, whose first element the indices name."""

    desc: Operand[TensorDesc]
    src: Operand[Tensor]
    indices: Sequence[Operand[I32]]

    effects = frozenset(["write"])
    assembly_format = "$desc `` `[` $indices `]` `,` $src attr-dict `:` type($desc) `,` type($src)"

    def verify_op(self) -> None:
        self.check_block(self.desc, self.indices, self.src)


class DescriptorReduceOp(_DescriptorAccess, dialect=Tt, name="descriptor_reduce"):
    """Updates each element of a block of a tensor atomically."""

    kind: Attribute[DescriptorReduceKind]
    desc: Operand[TensorDesc]
    src: Operand[Tensor]
    indices: Sequence[Operand[I32]]

    effects = frozenset(["read", "write"])
    assembly_format = "$kind `,` $desc `` `[` $indices `]` `,` $src attr-dict `:` type($desc) `,` type($src)"

    def verify_op(self) -> None:
        self.check_block(self.desc, self.indices, self.src)


class _Rows(Operation):
    """Ops on single rows of a tensor: `desc[rows, column]`."""

    def check_rows(self, desc: Any, rows: Any, value: Any) -> None:
        """Check that a value has the rows, of the columns of the block."""
        kind = TensorDesc.of(desc)
        if len(kind.shape) != 2 or kind.shape[0] != 1:
            self.fail(f"requires a descriptor with a block of one row, but got {kind}")
        (shape, element), (n, _) = shape_and_element(value), shape_and_element(rows)
        if n is None or len(n) != 1:
            self.fail(f"requires rows of one dimension, but got {rows.type}")
        if (shape, element) != ((*n, kind.shape[1]), shape_and_element_of(kind)[1]):
            self.fail(f"requires a tensor of {n[0]} rows of {kind}, but got {value.type}")


class DescriptorGatherOp(_Rows, dialect=Tt, name="descriptor_gather"):
    """Loads rows of a matrix, from a column on."""

    desc: Operand[TensorDesc]
    x_offsets: Operand[RowTensor]
    y_offset: Operand[I32]
    result: Result[Tensor]

    effects = frozenset(["read"])
    assembly_format = (
        "$desc `` `[` $x_offsets `,` $y_offset `]` attr-dict `:` functional-type($desc, $x_offsets, $y_offset, $result)"
    )

    def verify_op(self) -> None:
        self.check_rows(self.desc, self.x_offsets, self.result)


class DescriptorScatterOp(_Rows, dialect=Tt, name="descriptor_scatter"):
    """Stores rows of a matrix, from a column on."""

    desc: Operand[TensorDesc]
    x_offsets: Operand[RowTensor]
    y_offset: Operand[I32]
    src: Operand[Tensor]

    effects = frozenset(["write"])
    assembly_format = (
        "$desc `` `[` $x_offsets `,` $y_offset `]` `,` $src attr-dict `:` "
        "type($desc) `,` type($x_offsets) `,` type($y_offset) `,` type($src)"
    )

    def verify_op(self) -> None:
        self.check_rows(self.desc, self.x_offsets, self.src)
