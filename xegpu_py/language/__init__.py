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

from xegpu_py.dialects.xetile import WgMap
from xegpu_py.language.jit_function import Kernel, TileKernel, function, jit, tile_kernel
from xegpu_py.language.scopes import range_, static_range
from xegpu_py.language.tunable import Heuristics, heuristics
from xegpu_py.tiles import functions as _math
from xegpu_py.tiles import tile_values as _methods
from xegpu_py.tiles.arrays import Array, Pointers, Scattered, Tile, pointer_type, shared
from xegpu_py.tiles.effects import (
    NamedBarrier,
    TensorDescriptor,
    advance,
    assume,
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_load,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_store,
    atomic_xchg,
    atomic_xor,
    barrier,
    debug_barrier,
    device_assert,
    device_print,
    expect_zero,
    fence,
    inline_asm_elementwise,
    inline_mlir,
    inline_visa,
    load,
    load_tensor_descriptor,
    make_block_ptr,
    make_tensor_descriptor,
    max_constancy,
    max_contiguous,
    multiple_of,
    named_barrier,
    static_assert,
    static_print,
    store,
    store_tensor_descriptor,
)
from xegpu_py.tiles.element_types import (
    Constexpr,
    DType,
    bfloat16,
    bool_,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    index,
    int8,
    int16,
    int32,
    int64,
    tfloat32,
    uint8,
    uint16,
    uint32,
    uint64,
)
from xegpu_py.tiles.functions import (
    PropagateNan,
    add,
    arange,
    block_id,
    broadcast,
    cast,
    cat,
    cdiv,
    ceil,
    clamp,
    condition,
    cos,
    div_rn,
    erf,
    exp,
    exp2,
    fdiv,
    flip,
    floor,
    fma,
    full,
    gather,
    grid_size,
    interleave,
    join,
    libdevice,
    log,
    log2,
    maximum,
    minimum,
    mul,
    next_power_of_2,
    num_programs,
    ones,
    pack_int4,
    program_id,
    rsqrt,
    sigmoid,
    sin,
    softmax,
    split,
    sqrt,
    sqrt_rn,
    squeeze,
    sub,
    subgroup_id,
    swizzle2d,
    tan,
    tanh,
    to_tensor,
    trans,
    umulhi,
    unpack_int4,
    where,
    zeros,
    zeros_like,
)
from xegpu_py.tiles.products import dot, dot_scaled
from xegpu_py.tiles.scans import (
    associative_scan,
    bitonic_merge,
    cumprod,
    cumsum,
    histogram,
    map_elementwise,
    pair_uniform_to_normal,
    philox,
    philox_impl,
    rand,
    rand4x,
    randint,
    randint4x,
    randn,
    randn4x,
    reduce,
    sort,
    topk,
    uint_to_uniform_float,
)
from xegpu_py.tiles.tile_values import (
    Value,
    argmax,
    argmin,
    broadcast_to,
    expand_dims,
    mean,
    permute,
    prod,
    ravel,
    reduce_or,
    reshape,
    unsqueeze,
    view,
    xor_sum,
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
