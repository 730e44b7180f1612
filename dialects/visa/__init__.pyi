# Made by `make docs` from the dialect's classes; changes belong there.
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from mlir import ir

from xegpu_py.ir.definition import Type as _Type
from xegpu_py.dialects.visa.ops import BuiltinOp as BuiltinOp
from xegpu_py.dialects.visa.ops import DeclAddressOp as DeclAddressOp
from xegpu_py.dialects.visa.ops import DeclOp as DeclOp
from xegpu_py.dialects.visa.ops import DeclPredOp as DeclPredOp
from xegpu_py.dialects.visa.ops import InputOp as InputOp
from xegpu_py.dialects.visa.ops import InstructionOp as InstructionOp
from xegpu_py.dialects.visa.ops import OPS as OPS
from xegpu_py.dialects.visa.ops import Pred as Pred
from xegpu_py.dialects.visa.ops import Var as Var
from xegpu_py.dialects.visa.ops import Visa as Visa
from xegpu_py.dialects.visa.programs import KernelBody as KernelBody
from xegpu_py.dialects.visa.programs import LIMITS as LIMITS
from xegpu_py.dialects.visa.programs import PRESSURE as PRESSURE
from xegpu_py.dialects.visa.programs import REGISTERS as REGISTERS
from xegpu_py.dialects.visa.programs import TARGET as TARGET
from xegpu_py.dialects.visa.programs import is_lowered as is_lowered
from xegpu_py.dialects.visa.programs import kernel_named as kernel_named
from xegpu_py.dialects.visa.programs import module_of as module_of
from xegpu_py.dialects.visa.programs import name_of as name_of
from xegpu_py.dialects.visa.programs import program_of as program_of
from xegpu_py.dialects.visa.programs import registers_of as registers_of
from xegpu_py.dialects.visa.programs import replace_body as replace_body
from xegpu_py.dialects.visa.programs import set_target as set_target
from xegpu_py.dialects.visa.programs import target_of as target_of
from xegpu_py.dialects.visa.programs import verify as verify
from xegpu_py.ir.module import kernels as kernels

_Value: TypeAlias = ir.Value | ir.OpView | ir.Operation
_ResultType: TypeAlias = ir.Type | _Type | str

DIALECT = Visa

def decl(
    var_name: str,
    element: Literal['ub', 'b', 'uw', 'w', 'ud', 'd', 'uq', 'q', 'hf', 'bf', 'f', 'df'],
    count: int,
    alias: _Value | None = None,
    *,
    align: Literal['byte', 'word', 'dword', 'qword', 'oword', 'hword', 'wordx32', 'wordx64', 'GRF', 'GRFx2'] | None = None,
    offset: int | None = None,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Declares a general variable: `count` elements of a type, side by side."""

def decl_pred(
    var_name: str,
    count: Any,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Declares a predicate variable of `count` bits, one for each SIMD lane."""

def decl_address(
    var_name: str,
    count: int,
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Declares an address variable of `count` elements, each the place of a byte in the register file."""

def builtin(
    which: Literal['r0', 'group_id_x', 'group_id_y', 'group_id_z', 'cr0', 'sr0', 'msg0', 'tsc', 'scratchloc', 'sp', 'fp', 'arg', 'retval'],
    *,
    result: _ResultType | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpResult:
    """Names a variable that each thread has from the start, and that can only be read."""

def input(
    var: _Value,
    offset: int,
    size: int,
    *,
    kind: Literal['LOCAL_SIZE', 'GROUP_COUNT', 'LOCAL_ID'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Says that a variable has its value from the start: an argument of the kernel, or something of the launch."""

def dpas(
    dst: _Value,
    src1: _Value,
    src2: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    src2_access: Any,
    W: Literal['u1', 's1', 'u2', 's2', 'u4', 's4', 'u8', 's8', 'bf', 'hf', 'tf32', 'bf8', 'hf8', 'e2m1', 'df'],
    A: Literal['u1', 's1', 'u2', 's2', 'u4', 's4', 'u8', 's8', 'bf', 'hf', 'tf32', 'bf8', 'hf8', 'e2m1', 'df'],
    SD: Any,
    RC: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Multiplies matrix A in `src2` by B in `src1` and adds the accumulator `src0`."""

def bdpas(
    dst: _Value,
    src1: _Value,
    src2: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    src2_access: Any,
    src3_access: Any,
    src4_access: Any,
    W: Literal['bf', 'hf', 'bf8', 'hf8', 'e2m1'],
    A: Literal['bf', 'hf', 'bf8', 'hf8', 'e2m1'],
    SD: Any,
    RC: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src3: _Value | None = None,
    src4: _Value | None = None,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Multiplies matrix A in `src2` with scales `src4` by B in `src1` with scales `src3`, and adds `src0`; 32 elements of K share a scale, and null scales are ones."""

def srnd(
    dst: _Value,
    src0: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src1: _Value | None = None,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Rounds `src0` stochastically, with the random bits `src1`."""

def fcvt(
    dst: _Value,
    src0: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Converts between hf and bf8 (held in ub), or f to tf32 (held in ud)."""

def mov(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Copies `src0`, converted to the type of `dst`; or a predicate's bits."""

def add(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0 + src1`."""

def add3(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    src2_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    src2: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0 + src1 + src2`."""

def mul(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0 * src1`."""

def mulh(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The upper 32 bits of the 64-bit product of `src0` and `src1`."""

def addc(
    dst: _Value,
    carry: _Value,
    dst_access: Any,
    carry_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0 + src1`; `carry` is 1 where the sum has more than 32 bits, else 0."""

def subb(
    dst: _Value,
    carry: _Value,
    dst_access: Any,
    carry_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0 - src1`; `carry` is 1 where `src1` is the greater, else 0."""

def mad(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    src2_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    src2: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0 * src1 + src2`, of floats rounded once."""

def madw(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    src2_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    src2: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0 * src1 + src2` of 64 bits: the lower halves, and in the registers behind them the upper halves."""

def avg(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The average of `src0` and `src1`, halves rounded up."""

def lrp(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    src2_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    src2: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0 * src1 + src2 * (1 - src0)`."""

def lfsr(
    dst: _Value,
    src0: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    fields: Literal['b32', 'b16v2', 'b8v4'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The next state of a Galois shift register with the polynomial `src1`, or of those in fields of 16 or 8 bits."""

def shfl_idx4(
    dst: _Value,
    src0: _Value,
    src1: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Each part of a dword from the table `src0`, by the 4 bits of `src1` for it: halves with ub, bytes with uw."""

def div(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0 / src1`."""

def divm(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0 / src1`, correctly rounded."""

def sqrtm(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The square root of `src0`, correctly rounded."""

def invm(
    dst: _Value,
    special: _Value,
    dst_access: Any,
    special_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0 / src1`, which a library function refines; `special` is set where that is a NaN, an infinity or a zero."""

def rsqtm(
    dst: _Value,
    special: _Value,
    dst_access: Any,
    special_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`1 / sqrt(src0)`, which a library function refines; `special` is set where that is a NaN, an infinity or a zero."""

def pow(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`abs(src0)` to the power of `src1`."""

def tanh(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The hyperbolic tangent of `src0`."""

def sigm(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`1 / (1 + exp(-src0))`, the logistic function."""

def inv(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`1 / src0`."""

def sqrt(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The square root of `src0`."""

def rsqrt(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`1 / sqrt(src0)`."""

def exp(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """2 to the power of `src0`."""

def log(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The logarithm of `src0` to the base 2."""

def sin(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The sine of `src0` in radians."""

def cos(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The cosine of `src0` in radians."""

def min(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The smaller of `src0` and `src1`; of a number and a NaN the number."""

def max(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The greater of `src0` and `src1`; of a number and a NaN the number."""

def frc(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0` less the greatest integral value below it."""

def rndd(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0` rounded down to an integral value."""

def rndu(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0` rounded up to an integral value."""

def rnde(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0` rounded to the nearest integral value, halves to the even one."""

def rndz(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0` rounded toward zero to an integral value."""

def xor(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Bitwise `src0 ^ src1`, of integers or predicates."""

def bfn(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    src2_access: Any,
    function: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    src2: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """For each bit the bit of `function` of number `src0 + 2 * src1 + 4 * src2`, by the bits of the sources."""

def bfe(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    src2_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    src2: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The `src0` bits of `src2` from bit `src1` on, both modulo 32, with the sign of the highest of them if signed."""

def bfi(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    src2_access: Any,
    src3_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    src2: _Value | None = None,
    src3: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src3`, in which the lowest `src0` bits of `src2` stand from bit `src1` on, both modulo 32."""

def dp4a(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    src2_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    src2: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0` plus the products of the four bytes of `src1` and those of `src2`, signed or not by their types."""

def bfrev(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The bits of `src0` in reverse order."""

def fbl(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The number of the lowest set bit of `src0`; of 0, all ones."""

def cbit(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """How many bits of `src0` are set."""

def lzd(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """How many zeros are above the highest bit of `src0` that is set."""

def rol(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The bits of `src0`, rotated left by `src1`."""

def ror(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The bits of `src0`, rotated right by `src1`."""

def shl(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0` shifted left by the lowest bits of `src1`: 6 where `dst` or `src0` has 64 bits, else 5."""

def shr(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0` shifted right by the lowest bits of `src1`, zeros shifted in."""

def asr(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0` shifted right by the lowest bits of `src1`, its sign shifted in."""

def cmp(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    condition: Literal['eq', 'ne', 'gt', 'ge', 'lt', 'le'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Compares `src0` with `src1`; `dst` gets a bit a lane, or all bits of an element."""

def sel(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    saturate: bool | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """`src0` in the lanes of the predicate that are set, else `src1`."""

def addr_add(
    dst: _Value,
    src0: _Value,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src1: _Value | None = None,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The place of a variable, or an address, `src0`, plus the bytes `src1`."""

def faddr(
    dst: _Value,
    dst_access: Any,
    symbol: Any,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The address of the function or constant `symbol`."""

def setp(
    dst: _Value,
    dst_access: Any,
    src0_access: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Sets the predicate `dst` to the lowest bits of the scalar `src0`."""

def lsc_load(
    address: _Value,
    dst_access: Any,
    address_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    address_base: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.ca', 'ca.uc', 'ca.ca', 'st.uc', 'st.ca', 'ri.ca'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Loads `data` from each lane's `address` into `dst`; a null `dst` prefetches."""

def lsc_store(
    address: _Value,
    src0: _Value,
    address_access: Any,
    src0_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    address_base: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb', 'wt.uc', 'wt.wb', 'st.uc', 'st.wb', 'wb.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Stores `data` from `src0` to each lane's `address`."""

def lsc_load_block2d(
    base: _Value,
    dst_access: Any,
    base_access: Any,
    width_access: Any,
    height_access: Any,
    pitch_access: Any,
    x_access: Any,
    y_access: Any,
    sfid: Literal['ugm'],
    block: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    width: _Value | None = None,
    height: _Value | None = None,
    pitch: _Value | None = None,
    x: _Value | None = None,
    y: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.ca', 'ca.uc', 'ca.ca', 'st.uc', 'st.ca', 'ri.ca'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Loads blocks of a 2D surface into `dst`, where out-of-bounds elements read as zero; a null `dst` prefetches."""

def lsc_store_block2d(
    base: _Value,
    src0: _Value,
    base_access: Any,
    width_access: Any,
    height_access: Any,
    pitch_access: Any,
    x_access: Any,
    y_access: Any,
    src0_access: Any,
    sfid: Literal['ugm'],
    block: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    width: _Value | None = None,
    height: _Value | None = None,
    pitch: _Value | None = None,
    x: _Value | None = None,
    y: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb', 'wt.uc', 'wt.wb', 'st.uc', 'st.wb', 'wb.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Stores a block to a 2D surface; out-of-bounds elements are not written."""

def lsc_atomic_iinc(
    address: _Value,
    dst_access: Any,
    address_access: Any,
    src0_access: Any,
    src1_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    address_base: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically adds 1 at each lane's `address`; `dst` receives the old values."""

def lsc_atomic_idec(
    address: _Value,
    dst_access: Any,
    address_access: Any,
    src0_access: Any,
    src1_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    address_base: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically subtracts 1 at each lane's `address`; `dst` receives the old values."""

def lsc_atomic_load(
    address: _Value,
    dst_access: Any,
    address_access: Any,
    src0_access: Any,
    src1_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    address_base: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically reads at each lane's `address`; `dst` receives the old values."""

def lsc_atomic_store(
    address: _Value,
    dst_access: Any,
    address_access: Any,
    src0_access: Any,
    src1_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    address_base: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically writes `src0` at each lane's `address`; `dst` receives the old values."""

def lsc_atomic_iadd(
    address: _Value,
    dst_access: Any,
    address_access: Any,
    src0_access: Any,
    src1_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    address_base: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically adds `src0` at each lane's `address`; `dst` receives the old values."""

def lsc_atomic_isub(
    address: _Value,
    dst_access: Any,
    address_access: Any,
    src0_access: Any,
    src1_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    address_base: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically subtracts `src0` at each lane's `address`; `dst` receives the old values."""

def lsc_atomic_smin(
    address: _Value,
    dst_access: Any,
    address_access: Any,
    src0_access: Any,
    src1_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    address_base: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically takes the signed minimum with `src0` at each lane's `address`; `dst` receives the old values."""

def lsc_atomic_smax(
    address: _Value,
    dst_access: Any,
    address_access: Any,
    src0_access: Any,
    src1_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    address_base: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically takes the signed maximum with `src0` at each lane's `address`; `dst` receives the old values."""

def lsc_atomic_umin(
    address: _Value,
    dst_access: Any,
    address_access: Any,
    src0_access: Any,
    src1_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    address_base: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically takes the unsigned minimum with `src0` at each lane's `address`; `dst` receives the old values."""

def lsc_atomic_umax(
    address: _Value,
    dst_access: Any,
    address_access: Any,
    src0_access: Any,
    src1_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    address_base: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically takes the unsigned maximum with `src0` at each lane's `address`; `dst` receives the old values."""

def lsc_atomic_and(
    address: _Value,
    dst_access: Any,
    address_access: Any,
    src0_access: Any,
    src1_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    address_base: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically takes the bitwise and with `src0` at each lane's `address`; `dst` receives the old values."""

def lsc_atomic_or(
    address: _Value,
    dst_access: Any,
    address_access: Any,
    src0_access: Any,
    src1_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    address_base: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically takes the bitwise or with `src0` at each lane's `address`; `dst` receives the old values."""

def lsc_atomic_xor(
    address: _Value,
    dst_access: Any,
    address_access: Any,
    src0_access: Any,
    src1_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    address_base: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically takes the bitwise exclusive or with `src0` at each lane's `address`; `dst` receives the old values."""

def lsc_atomic_icas(
    address: _Value,
    dst_access: Any,
    address_access: Any,
    src0_access: Any,
    src1_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    address_base: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically writes `src1` where it equals `src0` at each lane's `address`; `dst` receives the old values."""

def lsc_atomic_fadd(
    address: _Value,
    dst_access: Any,
    address_access: Any,
    src0_access: Any,
    src1_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    address_base: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically adds the float `src0` at each lane's `address`; `dst` receives the old values."""

def lsc_atomic_fsub(
    address: _Value,
    dst_access: Any,
    address_access: Any,
    src0_access: Any,
    src1_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    address_base: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically subtracts the float `src0` at each lane's `address`; `dst` receives the old values."""

def lsc_atomic_fmin(
    address: _Value,
    dst_access: Any,
    address_access: Any,
    src0_access: Any,
    src1_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    address_base: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically takes the float minimum with `src0` at each lane's `address`; `dst` receives the old values."""

def lsc_atomic_fmax(
    address: _Value,
    dst_access: Any,
    address_access: Any,
    src0_access: Any,
    src1_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    address_base: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically takes the float maximum with `src0` at each lane's `address`; `dst` receives the old values."""

def lsc_atomic_fcas(
    address: _Value,
    dst_access: Any,
    address_access: Any,
    src0_access: Any,
    src1_access: Any,
    sfid: Literal['ugm', 'slm'],
    data: Any,
    address_size: Literal['a32', 'a64', 'a32u', 'a32s'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    address_base: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    caches: Literal['df.df', 'uc.uc', 'uc.wb'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically writes `src1` where it equals the float `src0` at each lane's `address`; `dst` receives the old values."""

def lsc_fence(
    sfid: Literal['ugm', 'slm'],
    flush: Literal['none', 'evict', 'invalidate', 'discard', 'clean', 'flushl3', 'type6'],
    scope: Literal['group', 'local', 'tile', 'gpu', 'gpus', 'sysrel', 'sysacq'],
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Orders the thread's accesses to memory before it and after it."""

def fence_sw(*, loc: ir.Location | None = None, ip: ir.InsertionPoint | None = None) -> ir.OpView:
    """Keeps compilers from moving instructions across it."""

def svm_block_ld(
    dst: _Value,
    base_access: Any,
    dst_access: Any,
    owords: Any,
    base: _Value | None = None,
    *,
    alignment: Literal['aligned', 'unaligned'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Loads `owords` times 16 bytes at the address `base` into `dst`, whatever the execution mask."""

def svm_block_st(
    src: _Value,
    base_access: Any,
    src_access: Any,
    owords: Any,
    base: _Value | None = None,
    *,
    alignment: Literal['aligned', 'unaligned'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Stores `owords` times 16 bytes at the address `base` from `src`, whatever the execution mask."""

def svm_gather(
    addresses: _Value,
    dst: _Value,
    addresses_access: Any,
    dst_access: Any,
    size: Any,
    blocks: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Loads `blocks` times `size` bytes at each lane's address into `dst`."""

def svm_scatter(
    addresses: _Value,
    src: _Value,
    addresses_access: Any,
    src_access: Any,
    size: Any,
    blocks: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Stores `blocks` times `size` bytes at each lane's address from `src`."""

def svm_gather4scaled(
    offsets: _Value,
    dst: _Value,
    base_access: Any,
    offsets_access: Any,
    dst_access: Any,
    channels: Literal['RGBA', 'RGB', 'RGA', 'RG', 'RBA', 'RB', 'RA', 'R', 'GBA', 'GB', 'GA', 'G', 'BA', 'B', 'A'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    base: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Loads the chosen ones of four dwords at `base` and each lane's offset into `dst`."""

def svm_scatter4scaled(
    offsets: _Value,
    src: _Value,
    base_access: Any,
    offsets_access: Any,
    src_access: Any,
    channels: Literal['RGBA', 'RGB', 'RGA', 'RG', 'RBA', 'RB', 'RA', 'R', 'GBA', 'GB', 'GA', 'G', 'BA', 'B', 'A'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    base: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Stores the chosen ones of four dwords at `base` and each lane's offset from `src`."""

def svm_atomic(
    addresses: _Value,
    addresses_access: Any,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    change: Literal['add', 'sub', 'inc', 'dec', 'min', 'max', 'xchg', 'cmpxchg', 'and', 'or', 'xor', 'minsint', 'maxsint', 'fmax', 'fmin', 'fcmpwr', 'fadd', 'fsub'],
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    width: Literal['16', '32', '64'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically changes each lane's location, a number of `width` bits; `dst` receives the old values."""

def gather(
    offsets: _Value,
    dst: _Value,
    offset_access: Any,
    offsets_access: Any,
    dst_access: Any,
    size: Any,
    surface: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    offset: _Value | None = None,
    *,
    modified: Literal['mod'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Loads `size` bytes at each lane's offset and `offset`, counted in elements, into `dst`."""

def scatter(
    offsets: _Value,
    src: _Value,
    offset_access: Any,
    offsets_access: Any,
    src_access: Any,
    size: Any,
    surface: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    offset: _Value | None = None,
    *,
    modified: Literal['mod'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Stores `size` bytes at each lane's offset and `offset`, counted in elements, from `src`."""

def gather_scaled(
    offsets: _Value,
    dst: _Value,
    offset_access: Any,
    offsets_access: Any,
    dst_access: Any,
    bytes: Any,
    surface: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    offset: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Loads 1, 2 or 4 bytes at each lane's offset and `offset` into `dst`."""

def scatter_scaled(
    offsets: _Value,
    src: _Value,
    offset_access: Any,
    offsets_access: Any,
    src_access: Any,
    bytes: Any,
    surface: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    offset: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Stores 1, 2 or 4 bytes at each lane's offset and `offset` from `src`."""

def gather4_scaled(
    offsets: _Value,
    dst: _Value,
    offset_access: Any,
    offsets_access: Any,
    dst_access: Any,
    channels: Literal['RGBA', 'RGB', 'RGA', 'RG', 'RBA', 'RB', 'RA', 'R', 'GBA', 'GB', 'GA', 'G', 'BA', 'B', 'A'],
    surface: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    offset: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Loads the chosen ones of four dwords at each lane's offset and `offset` into `dst`."""

def scatter4_scaled(
    offsets: _Value,
    src: _Value,
    offset_access: Any,
    offsets_access: Any,
    src_access: Any,
    channels: Literal['RGBA', 'RGB', 'RGA', 'RG', 'RBA', 'RB', 'RA', 'R', 'GBA', 'GB', 'GA', 'G', 'BA', 'B', 'A'],
    surface: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    offset: _Value | None = None,
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Stores the chosen ones of four dwords at each lane's offset and `offset` from `src`."""

def qw_gather(
    offsets: _Value,
    dst: _Value,
    offsets_access: Any,
    dst_access: Any,
    blocks: Any,
    surface: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Loads 8 bytes at each lane's offset into `dst`."""

def qw_scatter(
    offsets: _Value,
    src: _Value,
    offsets_access: Any,
    src_access: Any,
    blocks: Any,
    surface: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Stores 8 bytes at each lane's offset from `src`."""

def dword_atomic(
    offsets: _Value,
    offsets_access: Any,
    dst_access: Any,
    src0_access: Any,
    src1_access: Any,
    change: Literal['add', 'sub', 'inc', 'dec', 'min', 'max', 'xchg', 'cmpxchg', 'and', 'or', 'xor', 'minsint', 'maxsint', 'fmax', 'fmin', 'fcmpwr', 'fadd', 'fsub'],
    surface: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    dst: _Value | None = None,
    src0: _Value | None = None,
    src1: _Value | None = None,
    guard: _Value | None = None,
    *,
    width: Literal['16'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Atomically changes each lane's location, a number of `width` bits; `dst` receives the old values."""

def oword_ld(
    dst: _Value,
    offset_access: Any,
    dst_access: Any,
    owords: Any,
    surface: Any,
    offset: _Value | None = None,
    *,
    modified: Literal['mod'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Loads `owords` times 16 bytes at `offset`, counted in 16 bytes, into `dst`, whatever the execution mask."""

def oword_st(
    src: _Value,
    offset_access: Any,
    src_access: Any,
    owords: Any,
    surface: Any,
    offset: _Value | None = None,
    *,
    modified: Literal['mod'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Stores `owords` times 16 bytes at `offset`, counted in 16 bytes, from `src`, whatever the execution mask."""

def oword_ld_unaligned(
    dst: _Value,
    offset_access: Any,
    dst_access: Any,
    owords: Any,
    surface: Any,
    offset: _Value | None = None,
    *,
    modified: Literal['mod'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Loads `owords` times 16 bytes at `offset`, a multiple of 4 bytes, into `dst`, whatever the execution mask."""

def fence_local(
    flushed: Literal['EISCRL1', 'EISCR', 'EISCL1', 'EISC', 'EISRL1', 'EISR', 'EISL1', 'EIS', 'EICRL1', 'EICR', 'EICL1', 'EIC', 'EIRL1', 'EIR', 'EIL1', 'EI', 'ESCRL1', 'ESCR', 'ESCL1', 'ESC', 'ESRL1', 'ESR', 'ESL1', 'ES', 'ECRL1', 'ECR', 'ECL1', 'EC', 'ERL1', 'ER', 'EL1', 'E', 'ISCRL1', 'ISCR', 'ISCL1', 'ISC', 'ISRL1', 'ISR', 'ISL1', 'IS', 'ICRL1', 'ICR', 'ICL1', 'IC', 'IRL1', 'IR', 'IL1', 'I', 'SCRL1', 'SCR', 'SCL1', 'SC', 'SRL1', 'SR', 'SL1', 'S', 'CRL1', 'CR', 'CL1', 'C', 'RL1', 'L1'] | None = None,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Orders the thread's accesses to shared local memory before it and after it."""

def fence_global(
    flushed: Literal['EISCRL1', 'EISCR', 'EISCL1', 'EISC', 'EISRL1', 'EISR', 'EISL1', 'EIS', 'EICRL1', 'EICR', 'EICL1', 'EIC', 'EIRL1', 'EIR', 'EIL1', 'EI', 'ESCRL1', 'ESCR', 'ESCL1', 'ESC', 'ESRL1', 'ESR', 'ESL1', 'ES', 'ECRL1', 'ECR', 'ECL1', 'EC', 'ERL1', 'ER', 'EL1', 'E', 'ISCRL1', 'ISCR', 'ISCL1', 'ISC', 'ISRL1', 'ISR', 'ISL1', 'IS', 'ICRL1', 'ICR', 'ICL1', 'IC', 'IRL1', 'IR', 'IL1', 'I', 'SCRL1', 'SCR', 'SCL1', 'SC', 'SRL1', 'SR', 'SL1', 'S', 'CRL1', 'CR', 'CL1', 'C', 'RL1', 'L1'] | None = None,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Orders the thread's accesses to global memory before it and after it."""

def switchjmp(
    src0_access: Any,
    labels: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Jumps with all enabled lanes to the label with the number `src0`, counted from 0."""

def barrier(*, loc: ir.Location | None = None, ip: ir.InsertionPoint | None = None) -> ir.OpView:
    """Waits until all threads of the workgroup have arrived."""

def sbarrier_signal(*, loc: ir.Location | None = None, ip: ir.InsertionPoint | None = None) -> ir.OpView:
    """Signals arrival at the workgroup's barrier without waiting."""

def sbarrier_wait(*, loc: ir.Location | None = None, ip: ir.InsertionPoint | None = None) -> ir.OpView:
    """Waits until all threads of the workgroup have signalled."""

def nbarrier_signal(
    id_access: Any,
    count_access: Any,
    id: _Value | None = None,
    count: _Value | None = None,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Signals the arrival of one of `count` threads at the named barrier `id`, without waiting."""

def nbarrier_wait(
    id_access: Any,
    id: _Value | None = None,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Waits until all threads of the named barrier `id` have arrived."""

def label(label: Any, *, loc: ir.Location | None = None, ip: ir.InsertionPoint | None = None) -> ir.OpView:
    """Defines a label, the target of jumps."""

def jmp(
    label: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Jumps to the label with all enabled lanes if the predicate's first bit, any bit, or all its bits are set."""

def goto(
    label: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Lanes whose predicate is set jump to the label, where they reconverge with the other lanes; with execution size 1, all enabled lanes or none, by the predicate's first bit."""

def ret(
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """Ends the enabled lanes; with its last lane the thread ends."""

def call(
    label: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The enabled lanes run the subroutine at the label until its `ret`."""

def fcall(
    callee: Any,
    sent: Any,
    received: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    guard: _Value | None = None,
    *,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The enabled lanes run the function `callee`, of `sent` registers of arguments and `received` of results."""

def ifcall(
    src0_access: Any,
    sent: Any,
    received: Any,
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    src0: _Value | None = None,
    guard: _Value | None = None,
    *,
    uniform: Literal['uniform'] | None = None,
    inverted: bool | None = None,
    control: Literal['any', 'all'] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The enabled lanes run the function whose address is `src0`, until its `fret`."""

def fret(
    exec_size: Any,
    mask: Literal['M1', 'M1_NM', 'M2', 'M2_NM', 'M3', 'M3_NM', 'M4', 'M4_NM', 'M5', 'M5_NM', 'M6', 'M6_NM', 'M7', 'M7_NM', 'M8', 'M8_NM'],
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> ir.OpView:
    """The enabled lanes return from a function to its caller."""
