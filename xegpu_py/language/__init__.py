"""The tile language: kernels of XeTile as Python functions.

For example:

    import xegpu_py
    import xegpu_py.language as xl

    @xegpu_py.jit
    def softmax(X, Y):
        row = xl.program_id(0) * 8
        x = X.tile((8, 128), at=(row, 0)).load()
        e = xl.exp(x - x.max(axis=1))
        Y.tile((8, 128), at=(row, 0)).store(e / e.sum(axis=1))

    softmax[x.shape[0] // 8](x, y)
"""

import builtins
from types import ModuleType as _ModuleType

from xegpu_py.dialects.xetile import WgMap as WgMap
from xegpu_py.language import math as _math
from xegpu_py.language import methods as _methods
from xegpu_py.language.arguments import Constexpr as Constexpr
from xegpu_py.language.arrays import Array as Array
from xegpu_py.language.arrays import Pointers as Pointers
from xegpu_py.language.arrays import shared as shared
from xegpu_py.language.atomics import atomic_add as atomic_add
from xegpu_py.language.atomics import atomic_and as atomic_and
from xegpu_py.language.atomics import atomic_cas as atomic_cas
from xegpu_py.language.atomics import atomic_load as atomic_load
from xegpu_py.language.atomics import atomic_max as atomic_max
from xegpu_py.language.atomics import atomic_min as atomic_min
from xegpu_py.language.atomics import atomic_or as atomic_or
from xegpu_py.language.atomics import atomic_store as atomic_store
from xegpu_py.language.atomics import atomic_xchg as atomic_xchg
from xegpu_py.language.atomics import atomic_xor as atomic_xor
from xegpu_py.language.blocks import TensorDescriptor as TensorDescriptor
from xegpu_py.language.blocks import advance as advance
from xegpu_py.language.blocks import load_tensor_descriptor as load_tensor_descriptor
from xegpu_py.language.blocks import make_block_ptr as make_block_ptr
from xegpu_py.language.blocks import make_tensor_descriptor as make_tensor_descriptor
from xegpu_py.language.blocks import store_tensor_descriptor as store_tensor_descriptor
from xegpu_py.language.debug import assume as assume
from xegpu_py.language.debug import device_assert as device_assert
from xegpu_py.language.debug import device_print as device_print
from xegpu_py.language.debug import expect_zero as expect_zero
from xegpu_py.language.debug import max_constancy as max_constancy
from xegpu_py.language.debug import max_contiguous as max_contiguous
from xegpu_py.language.debug import multiple_of as multiple_of
from xegpu_py.language.debug import static_assert as static_assert
from xegpu_py.language.debug import static_print as static_print
from xegpu_py.language.functions import arange as arange
from xegpu_py.language.functions import block_id as block_id
from xegpu_py.language.functions import condition as condition
from xegpu_py.language.functions import full as full
from xegpu_py.language.functions import grid_size as grid_size
from xegpu_py.language.functions import num_programs as num_programs
from xegpu_py.language.functions import ones as ones
from xegpu_py.language.functions import program_id as program_id
from xegpu_py.language.functions import subgroup_id as subgroup_id
from xegpu_py.language.functions import swizzle2d as swizzle2d
from xegpu_py.language.functions import to_tensor as to_tensor
from xegpu_py.language.functions import where as where
from xegpu_py.language.functions import zeros as zeros
from xegpu_py.language.functions import zeros_like as zeros_like
from xegpu_py.language.inline import inline_mlir as inline_mlir
from xegpu_py.language.inline import inline_visa as inline_visa
from xegpu_py.language.kernel import Kernel as Kernel
from xegpu_py.language.kernel import TileKernel as TileKernel
from xegpu_py.language.kernel import function as function
from xegpu_py.language.kernel import jit as jit
from xegpu_py.language.kernel import tile_kernel as tile_kernel
from xegpu_py.language.loops import range_ as range_
from xegpu_py.language.loops import static_range as static_range
from xegpu_py.language.math import PropagateNan as PropagateNan
from xegpu_py.language.math import add as add
from xegpu_py.language.math import cdiv as cdiv
from xegpu_py.language.math import ceil as ceil
from xegpu_py.language.math import clamp as clamp
from xegpu_py.language.math import cos as cos
from xegpu_py.language.math import div_rn as div_rn
from xegpu_py.language.math import erf as erf
from xegpu_py.language.math import exp as exp
from xegpu_py.language.math import exp2 as exp2
from xegpu_py.language.math import fdiv as fdiv
from xegpu_py.language.math import floor as floor
from xegpu_py.language.math import fma as fma
from xegpu_py.language.math import libdevice as libdevice
from xegpu_py.language.math import log as log
from xegpu_py.language.math import log2 as log2
from xegpu_py.language.math import maximum as maximum
from xegpu_py.language.math import minimum as minimum
from xegpu_py.language.math import mul as mul
from xegpu_py.language.math import next_power_of_2 as next_power_of_2
from xegpu_py.language.math import rsqrt as rsqrt
from xegpu_py.language.math import sigmoid as sigmoid
from xegpu_py.language.math import sin as sin
from xegpu_py.language.math import softmax as softmax
from xegpu_py.language.math import sqrt as sqrt
from xegpu_py.language.math import sqrt_rn as sqrt_rn
from xegpu_py.language.math import sub as sub
from xegpu_py.language.math import tan as tan
from xegpu_py.language.math import tanh as tanh
from xegpu_py.language.math import umulhi as umulhi
from xegpu_py.language.memory import load as load
from xegpu_py.language.memory import store as store
from xegpu_py.language.methods import argmax as argmax
from xegpu_py.language.methods import argmin as argmin
from xegpu_py.language.methods import broadcast_to as broadcast_to
from xegpu_py.language.methods import expand_dims as expand_dims
from xegpu_py.language.methods import mean as mean
from xegpu_py.language.methods import permute as permute
from xegpu_py.language.methods import prod as prod
from xegpu_py.language.methods import ravel as ravel
from xegpu_py.language.methods import reduce_or as reduce_or
from xegpu_py.language.methods import reshape as reshape
from xegpu_py.language.methods import unsqueeze as unsqueeze
from xegpu_py.language.methods import view as view
from xegpu_py.language.methods import xor_sum as xor_sum
from xegpu_py.language.moves import broadcast as broadcast
from xegpu_py.language.moves import cast as cast
from xegpu_py.language.moves import cat as cat
from xegpu_py.language.moves import flip as flip
from xegpu_py.language.moves import gather as gather
from xegpu_py.language.moves import interleave as interleave
from xegpu_py.language.moves import join as join
from xegpu_py.language.moves import pack_int4 as pack_int4
from xegpu_py.language.moves import split as split
from xegpu_py.language.moves import squeeze as squeeze
from xegpu_py.language.moves import trans as trans
from xegpu_py.language.moves import unpack_int4 as unpack_int4
from xegpu_py.language.products import dot as dot
from xegpu_py.language.products import dot_scaled as dot_scaled
from xegpu_py.language.random import pair_uniform_to_normal as pair_uniform_to_normal
from xegpu_py.language.random import philox as philox
from xegpu_py.language.random import philox_impl as philox_impl
from xegpu_py.language.random import rand as rand
from xegpu_py.language.random import rand4x as rand4x
from xegpu_py.language.random import randint as randint
from xegpu_py.language.random import randint4x as randint4x
from xegpu_py.language.random import randn as randn
from xegpu_py.language.random import randn4x as randn4x
from xegpu_py.language.random import uint_to_uniform_float as uint_to_uniform_float
from xegpu_py.language.scans import associative_scan as associative_scan
from xegpu_py.language.scans import bitonic_merge as bitonic_merge
from xegpu_py.language.scans import cumprod as cumprod
from xegpu_py.language.scans import cumsum as cumsum
from xegpu_py.language.scans import histogram as histogram
from xegpu_py.language.scans import map_elementwise as map_elementwise
from xegpu_py.language.scans import reduce as reduce
from xegpu_py.language.scans import sort as sort
from xegpu_py.language.scans import topk as topk
from xegpu_py.language.scattered import Scattered as Scattered
from xegpu_py.language.synchronization import NamedBarrier as NamedBarrier
from xegpu_py.language.synchronization import barrier as barrier
from xegpu_py.language.synchronization import debug_barrier as debug_barrier
from xegpu_py.language.synchronization import fence as fence
from xegpu_py.language.synchronization import named_barrier as named_barrier
from xegpu_py.language.tiles import Tile as Tile
from xegpu_py.language.tuning import Autotuner as Autotuner
from xegpu_py.language.tuning import Config as Config
from xegpu_py.language.tuning import Heuristics as Heuristics
from xegpu_py.language.tuning import Trial as Trial
from xegpu_py.language.tuning import autotune as autotune
from xegpu_py.language.tuning import heuristics as heuristics
from xegpu_py.language.tuning import testing as testing
from xegpu_py.language.types import DType as DType
from xegpu_py.language.types import bfloat16 as bfloat16
from xegpu_py.language.types import bool_ as bool_
from xegpu_py.language.types import float8_e4m3fn as float8_e4m3fn
from xegpu_py.language.types import float8_e5m2 as float8_e5m2
from xegpu_py.language.types import float16 as float16
from xegpu_py.language.types import float32 as float32
from xegpu_py.language.types import float64 as float64
from xegpu_py.language.types import index as index
from xegpu_py.language.types import int8 as int8
from xegpu_py.language.types import int16 as int16
from xegpu_py.language.types import int32 as int32
from xegpu_py.language.types import int64 as int64
from xegpu_py.language.types import tfloat32 as tfloat32
from xegpu_py.language.types import uint8 as uint8
from xegpu_py.language.types import uint16 as uint16
from xegpu_py.language.types import uint32 as uint32
from xegpu_py.language.types import uint64 as uint64
from xegpu_py.language.values import Value as Value

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
tensor, tensor_descriptor, constexpr = Value, TensorDescriptor, Constexpr

# What is imported `as` itself, and the names above; but not Python's own names, nor the older name of `range`.
__all__ = [
    name
    for name, found in globals().items()
    if name[0] != "_" and not isinstance(found, _ModuleType) and found is not vars(builtins).get(name)
]
__all__.remove("range_")
