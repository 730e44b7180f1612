"""Register layouts: inverses, places by the specification, and the operands that DPAS multiplies."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xegpu_py.numerics import dpas, pack_a, pack_b, pack_c, unpack_a, unpack_b, unpack_c

DTYPES = {
    "bf": ml_dtypes.bfloat16,
    "hf": np.float16,
    "tf32": np.float32,
    "bf8": ml_dtypes.float8_e5m2,
    "hf8": ml_dtypes.float8_e4m3fn,
    "df": np.float64,
}
INTEGERS = [f"{s}{n}" for n in (1, 2, 4, 8) for s in "us"]


def matrix(rng: np.random.Generator, shape: tuple[int, ...], precision: str) -> np.ndarray:
    """Small integers, which every format represents."""
    if precision in DTYPES:
        return rng.integers(-4, 5, shape).astype(DTYPES[precision])
    bits = int(precision[1:])
    low = -(1 << (bits - 1)) if precision[0] == "s" else 0
    return rng.integers(low, low + (1 << bits), shape).astype(np.int8 if precision[0] == "s" else np.uint8)


@given(
    pair=st.one_of(
        st.tuples(st.sampled_from(INTEGERS), st.sampled_from(INTEGERS)), st.sampled_from([(n, n) for n in DTYPES])
    ),
    SD=st.sampled_from([1, 2, 4, 8]),
    M=st.integers(1, 8),
    N=st.sampled_from([8, 16]),
    threads=st.sampled_from([(), (3,)]),
    seed=st.integers(0, 1 << 32),
)
def test_what_is_packed_is_multiplied(pair, SD, M, N, threads, seed) -> None:
    W, A = pair
    per_depth = {"tf32": 1, "df": 1, "bf": 2, "hf": 2}.get(W, 4)
    if W in INTEGERS:
        per_depth = 4 if "8" in W + A else 8
    K = SD * per_depth
    if (M * K * (int(A[1:]) if A in INTEGERS else 8)) % 8:
        M = 8
    rng = np.random.default_rng(seed)
    a, b = matrix(rng, (*threads, M, K), A), matrix(rng, (*threads, K, N), W)
    kind = "df" if W == "df" else "f" if W in DTYPES else "d"
    c = rng.integers(-100, 100, (*threads, M, N)).astype({"df": np.float64, "f": np.float32, "d": np.int32}[kind])
    packed_a, packed_b, packed_c = pack_a(a, A), pack_b(b, W), pack_c(c, kind)
    np.testing.assert_array_equal(unpack_a(packed_a, M, K, A), a)
    np.testing.assert_array_equal(unpack_b(packed_b, K, N, W), b)
    np.testing.assert_array_equal(unpack_c(packed_c, M, N, kind), c)
    out = dpas(packed_c, packed_b, packed_a, W=W, A=A, SD=SD, RC=M, exec_size=N, dst_type=kind, src0_type=kind)
    want = a.astype(np.float64) @ b.astype(np.float64) + c
    np.testing.assert_array_equal(unpack_c(out, M, N, kind).astype(np.float64), want)


def test_b_of_bf_is_in_pairs_of_rows() -> None:
    b = np.arange(32 * 16).reshape(32, 16).astype(ml_dtypes.bfloat16)[:16]
    words = pack_b(b, "bf").view(ml_dtypes.bfloat16).reshape(8, 16, 2)
    for k in range(16):
        np.testing.assert_array_equal(words[k // 2, :, k % 2], b[k])


def test_b_of_nibbles_shares_a_dword() -> None:
    b = (np.arange(32)[:, None] + np.arange(16)).astype(np.uint8) % 16
    dwords = pack_b(b, "u4").view(np.uint32).reshape(4, 16)
    for k in range(32):
        np.testing.assert_array_equal(dwords[k // 8] >> (k % 8 * 4) & 15, b[k])


def test_refuses() -> None:
    with pytest.raises(ValueError, match="'precision' must be one of u1, s1"):
        pack_a(np.zeros((8, 8), np.float32), "f")
    with pytest.raises(TypeError, match="'matrix' must have the dtype float16 for hf, but got float32"):
        pack_a(np.zeros((8, 8), np.float32), "hf")
    with pytest.raises(TypeError, match="'matrix' must have the dtype int8 or uint8 for s4, but got int32"):
        pack_b(np.zeros((8, 8), np.int32), "s4")
    with pytest.raises(ValueError, match="'matrix' must be in -8 to 7 for s4"):
        pack_b(np.full((8, 8), 8, np.int8), "s4")
    with pytest.raises(ValueError, match="3 elements of u4 do not fill bytes"):
        pack_a(np.zeros((1, 3), np.uint8), "u4")
    with pytest.raises(ValueError, match="'matrix' must have at least two dimensions, not 1"):
        pack_a(np.zeros(8, np.uint8), "u8")
    with pytest.raises(TypeError, match="'matrix' must have the dtype float32 for f, but got int32"):
        pack_c(np.zeros((8, 8), np.int32), "f")
    with pytest.raises(ValueError, match="'dtype' must be one of ub, b"):
        unpack_c(np.zeros(64, np.uint8), 1, 1, "f32")
