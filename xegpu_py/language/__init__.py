"""The tile language: kernels of XeTile as Python functions.

For example:

    import xegpu_py
    import xegpu_py.language as xl

    @xegpu_py.jit
    def softmax(X, Y):
        row = xl.program_id(0) * 8
        x = X.tile((8, 128), at=(row, 0)).load()
        e = xl.exp(x - x.max(axis=1, keep_dims=True))
        Y.tile((8, 128), at=(row, 0)).store(e / e.sum(axis=1, keep_dims=True))

    softmax[x.shape[0] // 8](x, y)
"""

import builtins
from types import ModuleType as _ModuleType

from xegpu_py.dialects.xetile import (
    WgMap as WgMap,
)
from xegpu_py.language.jit_function import (
    Kernel as Kernel,
    TileKernel as TileKernel,
    function as function,
    jit as jit,
    tile_kernel as tile_kernel,
)
from xegpu_py.language.scopes import (
    range_ as range_,
    static_range as static_range,
)
from xegpu_py.language.tunable import (
    Heuristics as Heuristics,
    heuristics as heuristics,
)
from xegpu_py.tiles import (
    functions as _math,
    tile_values as _methods,
)
from xegpu_py.tiles.arrays import (
    Array as Array,
    Pointers as Pointers,
    Scattered as Scattered,
    Tile as Tile,
    pointer_type as pointer_type,
    shared as shared,
)
from xegpu_py.tiles.effects import (
    NamedBarrier as NamedBarrier,
    TensorDescriptor as TensorDescriptor,
    advance as advance,
    assume as assume,
    atomic_add as atomic_add,
    atomic_and as atomic_and,
    atomic_cas as atomic_cas,
    atomic_load as atomic_load,
    atomic_max as atomic_max,
    atomic_min as atomic_min,
    atomic_or as atomic_or,
    atomic_store as atomic_store,
    atomic_xchg as atomic_xchg,
    atomic_xor as atomic_xor,
    barrier as barrier,
    debug_barrier as debug_barrier,
    device_assert as device_assert,
    device_print as device_print,
    expect_zero as expect_zero,
    fence as fence,
    inline_asm_elementwise as inline_asm_elementwise,
    inline_mlir as inline_mlir,
    inline_visa as inline_visa,
    load as load,
    load_tensor_descriptor as load_tensor_descriptor,
    make_block_ptr as make_block_ptr,
    make_tensor_descriptor as make_tensor_descriptor,
    max_constancy as max_constancy,
    max_contiguous as max_contiguous,
    multiple_of as multiple_of,
    named_barrier as named_barrier,
    static_assert as static_assert,
    static_print as static_print,
    store as store,
    store_tensor_descriptor as store_tensor_descriptor,
)
from xegpu_py.tiles.element_types import (
    Constexpr as Constexpr,
    DType as DType,
    bfloat16 as bfloat16,
    bool_ as bool_,
    float8_e4m3fn as float8_e4m3fn,
    float8_e5m2 as float8_e5m2,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    index as index,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    tfloat32 as tfloat32,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)
from xegpu_py.tiles.functions import (
    PropagateNan as PropagateNan,
    add as add,
    arange as arange,
    block_id as block_id,
    broadcast as broadcast,
    cast as cast,
    cat as cat,
    cdiv as cdiv,
    ceil as ceil,
    clamp as clamp,
    condition as condition,
    cos as cos,
    div_rn as div_rn,
    erf as erf,
    exp as exp,
    exp2 as exp2,
    fdiv as fdiv,
    flip as flip,
    floor as floor,
    fma as fma,
    full as full,
    gather as gather,
    grid_size as grid_size,
    interleave as interleave,
    join as join,
    libdevice as libdevice,
    log as log,
    log2 as log2,
    maximum as maximum,
    minimum as minimum,
    mul as mul,
    next_power_of_2 as next_power_of_2,
    num_programs as num_programs,
    ones as ones,
    pack_int4 as pack_int4,
    program_id as program_id,
    rsqrt as rsqrt,
    sigmoid as sigmoid,
    sin as sin,
    softmax as softmax,
    split as split,
    sqrt as sqrt,
    sqrt_rn as sqrt_rn,
    squeeze as squeeze,
    sub as sub,
    subgroup_id as subgroup_id,
    swizzle2d as swizzle2d,
    tan as tan,
    tanh as tanh,
    to_tensor as to_tensor,
    trans as trans,
    umulhi as umulhi,
    unpack_int4 as unpack_int4,
    where as where,
    zeros as zeros,
    zeros_like as zeros_like,
)
from xegpu_py.tiles.products import (
    dot as dot,
    dot_scaled as dot_scaled,
)
from xegpu_py.tiles.scans import (
    associative_scan as associative_scan,
    bitonic_merge as bitonic_merge,
    cumprod as cumprod,
    cumsum as cumsum,
    histogram as histogram,
    map_elementwise as map_elementwise,
    pair_uniform_to_normal as pair_uniform_to_normal,
    philox as philox,
    philox_impl as philox_impl,
    rand as rand,
    rand4x as rand4x,
    randint as randint,
    randint4x as randint4x,
    randn as randn,
    randn4x as randn4x,
    reduce as reduce,
    sort as sort,
    topk as topk,
    uint_to_uniform_float as uint_to_uniform_float,
)
from xegpu_py.tiles.tile_values import (
    Value as Value,
    argmax as argmax,
    argmin as argmin,
    broadcast_to as broadcast_to,
    expand_dims as expand_dims,
    mean as mean,
    permute as permute,
    prod as prod,
    ravel as ravel,
    reduce_or as reduce_or,
    reshape as reshape,
    unsqueeze as unsqueeze,
    view as view,
    xor_sum as xor_sum,
)

for _function in (
    *(associative_scan, cumprod, cumsum, histogram, sort, topk),
    *(broadcast, cast, flip, gather, interleave, join, split, trans),
    *(_math.abs_, cdiv, ceil, clamp, cos, erf, exp, exp2, fdiv, floor, fma, log, log2, maximum, minimum),
    *(_math.round_, rsqrt, sigmoid, sin, softmax, sqrt, sqrt_rn, tan, tanh, umulhi),
):
    # `x.exp()` is `exp(x)`, as in Triton. Methods that `Value` defines itself stay.
    if not hasattr(Value, _function.__name__.rstrip("_")):
        setattr(Value, _function.__name__.rstrip("_"), _function)

# Python's own names, for `xl.sum(x)`; they are defined under other names so that the modules can use Python's.
abs, round, range = _math.abs_, _math.round_, range_

all, any, max, min, sum = _methods.all_, _methods.any_, _methods.max_, _methods.min_, _methods.sum_

F64, F32, F16, BF16, TF32, BF8, HF8 = float64, float32, float16, bfloat16, tfloat32, float8_e5m2, float8_e4m3fn

I64, I32, I16, I8, U64, U32, U16, U8 = int64, int32, int16, int8, uint64, uint32, uint16, uint8

# Triton's names where they differ from those above.
slice, tuple = builtins.slice, builtins.tuple

int1, float8e5, float8e4nv, dtype = bool_, float8_e5m2, float8_e4m3fn, DType

math = _math
"""Triton's name of the module of mathematical functions."""

tensor, tensor_descriptor, constexpr = Value, TensorDescriptor, Constexpr

# Names imported `as` themselves, and the names above; but not Python's own names, nor the older name of `range`.
__all__ = [
    name
    for name, found in globals().items()
    if name[0] != "_" and not isinstance(found, _ModuleType) and found is not vars(builtins).get(name)
]

__all__.remove("range_")
