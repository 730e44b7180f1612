"""The functions of CUDA's libdevice that are single ops of MLIR, by their names in Triton's `libdevice`."""

from __future__ import annotations

LIBDEVICE_OPS: dict[str, str] = {
    **{name: f"math.{name}" for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "erf",
        "erfc", "exp", "exp2", "expm1", "floor", "fma", "log", "log10", "log1p", "log2", "round", "rsqrt", "sin",
        "sinh", "sqrt", "tan", "tanh", "trunc",
    )},
    "fabs": "math.absf",
    "rint": "math.roundeven",
    "nearbyint": "math.roundeven",
    "pow": "math.powf",
    "fmod": "arith.remf",
    "fmin": "arith.minnumf",
    "fmax": "arith.maxnumf",
}  # fmt: skip
"""The symbols are those names for f64, and with the suffix f for f32."""

ROUNDINGS = {"rn": "nearest", "rz": "zero", "ru": "up", "rd": "down"}
"""The roundings of suffixes such as that of `float2int_rz`."""
