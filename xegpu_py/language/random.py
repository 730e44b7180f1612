"""Random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11), as Triton's.

The numbers depend on the seed and the offsets only, not on shapes and maps.
"""

from __future__ import annotations

from typing import Any

from xegpu_py.language import types
from xegpu_py.language.functions import where
from xegpu_py.language.math import cos, log, maximum, sin, sqrt, umulhi
from xegpu_py.language.types import DType
from xegpu_py.language.values import Value, constant, value_of

ROUNDS = 10

_KEYS = {32: (0x9E3779B9, 0xBB67AE85), 64: (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)}
"""The increments of the two words of the key after each round."""

_FACTORS = {32: (0xD2511F53, 0xCD9E8D57), 64: (0xD2E7470EE14C6C93, 0xCA5A826395121157)}
"""The multipliers of the first and the third word of the counter."""

Four = tuple[Value, Value, Value, Value]


def philox_impl(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any, n_rounds: int = ROUNDS) -> Four:
    """Rounds of Philox.

    Args:
        c0, c1, c2, c3: the counter, uint32, or uint64 for Philox 4x64.
        k0, k1: the key, of the same type.
        n_rounds: how many rounds.

    Raises:
        TypeError: for other types.
    """
    dtype = value_of(c0).dtype
    if dtype not in (types.uint32, types.uint64):
        raise TypeError(f"Philox works on uint32 and uint64, not {dtype}")
    (step0, step1), (a, b) = _KEYS[dtype.bits], _FACTORS[dtype.bits]
    x0, x1, x2, x3 = (value_of(v).to(dtype) for v in (c0, c1, c2, c3))
    key0, key1 = value_of(k0).to(dtype), value_of(k1).to(dtype)
    for _ in range(n_rounds):
        x0, x1, x2, x3 = umulhi(x2, b) ^ x1 ^ key0, x2 * b, umulhi(x0, a) ^ x3 ^ key1, x0 * a
        key0, key1 = key0 + step0, key1 + step1
    return x0, x1, x2, x3


def philox(seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: int = ROUNDS) -> Four:
    """Philox of a counter, with a seed as key: four values of uint32, or of uint64 if `c0` is int64 or uint64.

    Args:
        seed: an integer of up to 64 bits.
        c0, c1, c2, c3: the counter, integers; of type index the lower 32 bits, since Triton's `arange` gives int32.
        n_rounds: how many rounds.

    Raises:
        TypeError: if the seed is not an integer.
    """
    first = value_of(c0, types.uint32)
    is_wide = first.dtype.bits == 64 and first.dtype != types.index
    dtype = types.integer_of(64 if is_wide else 32, signed=False)
    low, high = _key(seed, dtype)
    x0, x1, x2, x3 = (value_of(c, dtype).to(dtype) for c in (first, c1, c2, c3))
    return philox_impl(x0, x1, x2, x3, low, high, n_rounds)


def _key(seed: Any, dtype: DType) -> tuple[Value, Value]:
    """The two words of the key."""
    if isinstance(seed, int):
        whole = seed % (1 << 64)
        if dtype.bits == 64:
            return constant(dtype, whole), constant(dtype, 0)
        return constant(dtype, whole & 0xFFFFFFFF), constant(dtype, whole >> 32)
    given = value_of(seed)
    if not given.dtype.is_integer:
        raise TypeError(f"a seed is an integer, not {given.dtype}")
    wide = given.to(types.uint64)
    if dtype.bits == 64:
        return wide, constant(dtype, 0)
    return wide.to(types.uint32), (wide >> 32).to(types.uint32)


def randint4x(seed: Any, offset: Any, n_rounds: int = ROUNDS) -> Four:
    """Four values of random int32 of the offsets' shape: the words of Philox, whose counter is the offset.

    Args:
        seed: an integer.
        offset: integers; different offsets give different numbers.
        n_rounds: how many rounds.
    """
    given = value_of(offset)
    low = given.to(types.uint32)
    high = (given >> 32).to(types.uint32) if given.dtype.bits > 32 else low._number(0)
    zero = low._number(0)
    a, b, c, d = philox(seed, low, high, zero, zero, n_rounds)
    return a.to(types.int32), b.to(types.int32), c.to(types.int32), d.to(types.int32)


def randint(seed: Any, offset: Any, n_rounds: int = ROUNDS) -> Value:
    """Uniformly distributed random int32: the first value of `randint4x`."""
    return randint4x(seed, offset, n_rounds)[0]


def uint_to_uniform_float(value: Any) -> Value:
    """Integers of 32 or 64 bits as float32 in [0, 1).

    Raises:
        TypeError: for other types.
    """
    given = value_of(value)
    if given.dtype.kind not in ("int", "uint") or given.dtype.bits not in (32, 64):
        raise TypeError(f"uint_to_uniform_float needs integers of 32 or 64 bits, not {given.dtype}")
    # The largest float32 that keeps the greatest integer's product below 1.
    scale = 4.6566127342e-10 if given.dtype.bits == 32 else 1.0842020432385337e-19
    bits = given.to(types.integer_of(given.dtype.bits, signed=True))
    return where(bits < 0, -bits - 1, bits).to(types.float32) * scale


def rand(seed: Any, offset: Any, n_rounds: int = ROUNDS) -> Value:
    """Uniformly distributed random float32 in [0, 1)."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


def rand4x(seed: Any, offset: Any, n_rounds: int = ROUNDS) -> Four:
    """Four values of uniformly distributed random float32 in [0, 1)."""
    a, b, c, d = (uint_to_uniform_float(v) for v in randint4x(seed, offset, n_rounds))
    return a, b, c, d


def pair_uniform_to_normal(u1: Any, u2: Any) -> tuple[Value, Value]:
    """Two uniformly distributed values as two normally distributed ones (Box and Muller)."""
    first = maximum(value_of(u1), 1.0e-7)
    angle = 6.283185307179586 * value_of(u2)
    radius = sqrt(-2.0 * log(first))
    return radius * cos(angle), radius * sin(angle)


def randn(seed: Any, offset: Any, n_rounds: int = ROUNDS) -> Value:
    """Random float32 of the normal distribution of mean 0 and variance 1."""
    a, b, _, _ = randint4x(seed, offset, n_rounds)
    return pair_uniform_to_normal(uint_to_uniform_float(a), uint_to_uniform_float(b))[0]


def randn4x(seed: Any, offset: Any, n_rounds: int = ROUNDS) -> Four:
    """Four values of random float32 of the normal distribution."""
    a, b, c, d = rand4x(seed, offset, n_rounds)
    return (*pair_uniform_to_normal(a, b), *pair_uniform_to_normal(c, d))
