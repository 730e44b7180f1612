# Made by `make docs` from the dialect's classes; changes belong there.
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from mlir import ir

from xegpu_py.ir.definition import Type as _Type
from xegpu_py.dialects.tt.elementwise import AddPtrOp as AddPtrOp
from xegpu_py.dialects.tt.elementwise import ApproxDivFOp as ApproxDivFOp
from xegpu_py.dialects.tt.elementwise import AssertOp as AssertOp
from xegpu_py.dialects.tt.elementwise import BitcastOp as BitcastOp
from xegpu_py.dialects.tt.elementwise import ClampFOp as ClampFOp
from xegpu_py.dialects.tt.elementwise import ElementwiseInlineAsmOp as ElementwiseInlineAsmOp
from xegpu_py.dialects.tt.elementwise import ExternElementwiseOp as ExternElementwiseOp
from xegpu_py.dialects.tt.elementwise import FpToFpOp as FpToFpOp
from xegpu_py.dialects.tt.elementwise import GetNumProgramsOp as GetNumProgramsOp
from xegpu_py.dialects.tt.elementwise import GetProgramIdOp as GetProgramIdOp
from xegpu_py.dialects.tt.elementwise import IntToPtrOp as IntToPtrOp
from xegpu_py.dialects.tt.elementwise import MakeRangeOp as MakeRangeOp
from xegpu_py.dialects.tt.elementwise import MapElementwiseOp as MapElementwiseOp
from xegpu_py.dialects.tt.elementwise import MulhiUIOp as MulhiUIOp
from xegpu_py.dialects.tt.elementwise import PreciseDivFOp as PreciseDivFOp
from xegpu_py.dialects.tt.elementwise import PreciseSqrtOp as PreciseSqrtOp
from xegpu_py.dialects.tt.elementwise import PrintOp as PrintOp
from xegpu_py.dialects.tt.elementwise import PtrToIntOp as PtrToIntOp
from xegpu_py.dialects.tt.memory import AtomicCASOp as AtomicCASOp
from xegpu_py.dialects.tt.memory import AtomicLoadOp as AtomicLoadOp
from xegpu_py.dialects.tt.memory import AtomicPollOp as AtomicPollOp
from xegpu_py.dialects.tt.memory import AtomicRMWOp as AtomicRMWOp
from xegpu_py.dialects.tt.memory import AtomicStoreOp as AtomicStoreOp
from xegpu_py.dialects.tt.memory import DescriptorGatherOp as DescriptorGatherOp
from xegpu_py.dialects.tt.memory import DescriptorLoadOp as DescriptorLoadOp
from xegpu_py.dialects.tt.memory import DescriptorReduceOp as DescriptorReduceOp
from xegpu_py.dialects.tt.memory import DescriptorScatterOp as DescriptorScatterOp
from xegpu_py.dialects.tt.memory import DescriptorStoreOp as DescriptorStoreOp
from xegpu_py.dialects.tt.memory import GridDependencyLaunchDependentsOp as GridDependencyLaunchDependentsOp
from xegpu_py.dialects.tt.memory import GridDependencyWaitOp as GridDependencyWaitOp
from xegpu_py.dialects.tt.memory import LoadOp as LoadOp
from xegpu_py.dialects.tt.memory import MakeTensorDescOp as MakeTensorDescOp
from xegpu_py.dialects.tt.memory import StoreOp as StoreOp
from xegpu_py.dialects.tt.tensors import BroadcastOp as BroadcastOp
from xegpu_py.dialects.tt.tensors import CatOp as CatOp
from xegpu_py.dialects.tt.tensors import DotOp as DotOp
from xegpu_py.dialects.tt.tensors import DotScaledOp as DotScaledOp
from xegpu_py.dialects.tt.tensors import ExpandDimsOp as ExpandDimsOp
from xegpu_py.dialects.tt.tensors import FuncOp as FuncOp
from xegpu_py.dialects.tt.tensors import GatherOp as GatherOp
from xegpu_py.dialects.tt.tensors import HistogramOp as HistogramOp
from xegpu_py.dialects.tt.tensors import JoinOp as JoinOp
from xegpu_py.dialects.tt.tensors import PACKED as PACKED
from xegpu_py.dialects.tt.tensors import ReduceOp as ReduceOp
from xegpu_py.dialects.tt.tensors import ReshapeOp as ReshapeOp
from xegpu_py.dialects.tt.tensors import ScanOp as ScanOp
from xegpu_py.dialects.tt.tensors import SplatOp as SplatOp
from xegpu_py.dialects.tt.tensors import SplitOp as SplitOp
from xegpu_py.dialects.tt.tensors import TransOp as TransOp
from xegpu_py.dialects.tt.tensors import UnsplatOp as UnsplatOp
from xegpu_py.dialects.tt.types import CachePolicy as CachePolicy
from xegpu_py.dialects.tt.types import DescriptorReduceKind as DescriptorReduceKind
from xegpu_py.dialects.tt.types import InputPrecision as InputPrecision
from xegpu_py.dialects.tt.types import MemSemantic as MemSemantic
from xegpu_py.dialects.tt.types import MemSyncScope as MemSyncScope
from xegpu_py.dialects.tt.types import PaddingOption as PaddingOption
from xegpu_py.dialects.tt.types import ProgramDim as ProgramDim
from xegpu_py.dialects.tt.types import PropagateNan as PropagateNan
from xegpu_py.dialects.tt.types import Ptr as Ptr
from xegpu_py.dialects.tt.types import RMWOp as RMWOp
from xegpu_py.dialects.tt.types import RoundingMode as RoundingMode
from xegpu_py.dialects.tt.types import ScaleDotElemType as ScaleDotElemType
from xegpu_py.dialects.tt.types import TensorDesc as TensorDesc
from xegpu_py.dialects.tt.types import Tt as Tt
from xegpu_py.dialects.tt.types import element_bits as element_bits
from xegpu_py.dialects.tt.types import parts as parts
from xegpu_py.dialects.tt.types import shape_and_element as shape_and_element
from xegpu_py.dialects.tt.types import tensor_text as tensor_text

_Value: TypeAlias = ir.Value | ir.OpView | ir.Operation
_ResultType: TypeAlias = ir.Type | _Type | str

DIALECT = Tt

def int_to_ptr(
    src: _Value,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Takes integers for addresses."""

def ptr_to_int(
    src: _Value,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Gives addresses as integers."""

def bitcast(
    src: _Value,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Takes the bits of numbers for numbers of another type; of pointers, for pointers to another type."""

def fp_to_fp(
    src: _Value,
    *,
    rounding: Any = None,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Converts floating-point numbers to another type."""

def clampf(
    x: _Value,
    min: _Value,
    max: _Value,
    propagateNan: Any,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Brings numbers into a range."""

def precise_sqrt(
    x: _Value,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """The square root, correctly rounded."""

def precise_divf(
    x: _Value,
    y: _Value,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """The quotient, correctly rounded."""

def approx_divf(
    x: _Value,
    y: _Value,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """The quotient with an error of a few units in the last place; here it is correctly rounded."""

def mulhiui(
    x: _Value,
    y: _Value,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """The upper half of the product of unsigned integers."""

def addptr(
    ptr: _Value,
    offset: _Value,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Moves pointers by offsets in elements of the pointee."""

def extern_elementwise(
    srcs: Sequence[_Value],
    libname: str,
    libpath: str,
    pure: bool,
    symbol: str,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Calls a function of a library for each element, by its symbol."""

def elementwise_inline_asm(
    asm_string: str,
    constraints: str,
    packed_element: Any,
    pure: bool,
    args: Sequence[_Value],
    *,
    result: Sequence[_ResultType] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> Any:
    """Runs assembly of another machine for each element, or for several that are packed in a register."""

def map_elementwise(
    srcs: Sequence[_Value],
    pack: Any,
    *,
    result: Sequence[_ResultType] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> Any:
    """Runs a region of numbers for each element, or for `pack` neighbours at a time."""

def make_range(
    end: Any,
    start: Any,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """The integers from `start` to `end`, which is left out."""

def get_program_id(
    axis: Any,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """The place of this program in the grid, along an axis."""

def get_num_programs(
    axis: Any,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """The number of programs in the grid, along an axis."""

def print(
    prefix: str,
    hex: bool,
    isSigned: Sequence[int],
    args: Sequence[_Value],
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Prints a text and values: all elements of tensors."""

def load(
    ptr: _Value,
    mask: _Value | None = None,
    other: _Value | None = None,
    *,
    cachePolicy: CachePolicy | None = None,
    isVolatile: bool | None = None,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Loads from pointers."""

def store(
    ptr: _Value,
    value: _Value,
    mask: _Value | None = None,
    *,
    cachePolicy: CachePolicy | None = None,
    ignore_cta: Any = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Stores to pointers, where the mask is true."""

def grid_dependency_wait(*, loc: ir.Location | None = None, ip: ir.InsertionPoint | None = None) -> ir.OpView:
    """Waits for the launches that this one depends on."""

def grid_dependency_launch_dependents(
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Lets launches that depend on this one begin."""

def atomic_load(
    sem: Any,
    scope: Any,
    ptr: _Value,
    mask: _Value | None = None,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Loads from pointers atomically, where the mask is true."""

def atomic_store(
    sem: Any,
    scope: Any,
    ptr: _Value,
    value: _Value,
    mask: _Value | None = None,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Stores to pointers atomically, where the mask is true."""

def atomic_poll(
    sem: Any,
    scope: Any,
    ptr: _Value,
    expected: _Value,
    timeout: _Value | None = None,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Loads each element again and again until it is the expected one, or the time is over; says which it was."""

def atomic_rmw(
    atomic_rmw_op: Any,
    sem: Any,
    scope: Any,
    ptr: _Value,
    val: _Value,
    mask: _Value | None = None,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Reads, updates and writes each element atomically, where the mask is true; gives what was read."""

def atomic_cas(
    sem: Any,
    scope: Any,
    ptr: _Value,
    cmp: _Value,
    val: _Value,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Writes each element atomically where memory holds the bits of `cmp`; gives what was read."""

def make_tensor_descriptor(
    base: _Value,
    shape: Sequence[_Value],
    strides: Sequence[_Value],
    *,
    padding: Any = None,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Makes a descriptor of a tensor in memory, by its first element, its shape and its strides in elements."""

def descriptor_load(
    desc: _Value,
    indices: Sequence[_Value],
    *,
    cachePolicy: CachePolicy | None = None,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Loads a block of a tensor, whose first element the indices name."""

def descriptor_store(
    desc: _Value,
    src: _Value,
    indices: Sequence[_Value],
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Stores a block of a tensor, whose first element the indices name."""

def descriptor_reduce(
    kind: Any,
    desc: _Value,
    src: _Value,
    indices: Sequence[_Value],
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Updates each element of a block of a tensor atomically."""

def descriptor_gather(
    desc: _Value,
    x_offsets: _Value,
    y_offset: _Value,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Loads rows of a matrix, from a column on."""

def descriptor_scatter(
    desc: _Value,
    x_offsets: _Value,
    y_offset: _Value,
    src: _Value,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Stores rows of a matrix, from a column on."""

def splat(
    src: _Value,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Repeats a number or pointer in all elements of a tensor."""

def unsplat(
    src: _Value,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Gives the element of a tensor that has just one."""

def expand_dims(
    src: _Value,
    axis: Any,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Inserts a dimension of size 1 at an axis."""

def reshape(
    src: _Value,
    *,
    allow_reorder: Any = None,
    efficient_layout: Any = None,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Gives a tensor another shape."""

def broadcast(
    src: _Value,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Repeats a tensor along dimensions of size 1."""

def cat(
    lhs: _Value,
    rhs: _Value,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Joins two tensors along the first dimension."""

def join(
    lhs: _Value,
    rhs: _Value,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Joins two tensors along a new last dimension."""

def split(
    src: _Value,
    *,
    out_lhs: _ResultType | None = None,
    out_rhs: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> tuple[ir.OpResult, ir.OpResult]:
    """Splits a tensor in two along the last dimension, which has size 2."""

def trans(
    src: _Value,
    order: Sequence[int],
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Permutes the dimensions: dimension i of the result is dimension `order[i]` of the operand."""

def histogram(
    src: _Value,
    mask: _Value | None = None,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Counts how often each integer from 0 on occurs, among the elements whose mask bit is set."""

def gather(
    src: _Value,
    indices: _Value,
    axis: Any,
    *,
    efficient_layout: Any = None,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Takes along an axis the elements that indices name; the other dimensions are the index's own."""

def reduce(
    srcs: Sequence[_Value],
    axis: Any,
    *,
    result: Sequence[_ResultType] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> Any:
    """Combines the elements along an axis, in any order, by a region that combines two."""

def scan(
    srcs: Sequence[_Value],
    axis: Any,
    reverse: bool,
    *,
    result: Sequence[_ResultType] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> Any:
    """Combines each element with all before it along an axis, or with all after it, by a region that combines two."""

def dot(
    a: _Value,
    b: _Value,
    c: _Value,
    *,
    inputPrecision: Any = None,
    maxNumImpreciseAcc: Any = None,
    d: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Multiplies matrices and adds: `d = a x b + c`."""

def dot_scaled(
    a: _Value,
    b: _Value,
    c: _Value,
    a_elem_type: Any,
    b_elem_type: Any,
    fastMath: bool,
    a_scale: _Value | None = None,
    b_scale: _Value | None = None,
    *,
    lhs_k_pack: bool | None = None,
    rhs_k_pack: bool | None = None,
    d: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Multiplies block-scaled matrices and adds."""
