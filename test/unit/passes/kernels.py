"""Small kernels around one op, lowered and run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

import xegpu_py
from xegpu_py.dialects import visa
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.runtime.host_arrays import DTYPES
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.visa.program import Program


def lower(text: str, gpu: str = "pvcxt") -> Program:
    """The first kernel of an MLIR text as a program, which must be valid."""
    module = xegpu_py.parse(text)
    try:
        xegpu_py.run_pipeline(module, f"builtin.module(xegpu-to-visa{{target={gpu}}})")
    except DiagnosticError:
        # Ops that exceed one message or instruction are split.
        module = xegpu_py.parse(text)
        xegpu_py.run_pipeline(module, f"builtin.module(xegpu-legalize{{target={gpu}}},xegpu-to-visa{{target={gpu}}})")
    return visa.program_of(visa.kernels(module.operation)[0])


def dtype_of(vector: str) -> Any:
    """numpy's type of a vector type's elements."""
    return DTYPES[re.split("x", vector[7:-1])[-1]]


def count_of(vector: str) -> int:
    """Elements of a vector type."""
    return int(np.prod([int(n) for n in re.split("x", vector[7:-1])[:-1]]))


def line(count: int, element: str) -> str:
    """The type of a one-dimensional descriptor."""
    return f"!xegpu.tensor_desc<{count}x{element}, #xegpu.tdesc_attr<boundary_check = false>>"


def held(kind: str) -> int:
    """The elements of the line of memory that one message moves for a vector type; those of longer vectors."""
    size, count = dtype_of(kind).itemsize, count_of(kind)
    return next(
        (4 * n // size for n in (1, 2, 3, 4, 8, 16, 32, 64) if 4 * n % size == 0 and 4 * n >= count * size), count
    )


@cache
def _checked_kernel(text: str, gpu: str) -> Kernel:
    return Kernel(lower(text, gpu), target=gpu, check=["uninit"])


def apply(
    body: str,
    result: str,
    arguments: Sequence[tuple[str, np.ndarray[Any, Any]]],
    gpu: str = "pvcxt",
    declared: str = "",
) -> Any:
    """Run ops on vectors that lie in memory.

    Args:
        body: MLIR that makes `%r` of `%a0`, `%a1` and so on.
        result: the vector type of `%r`.
        arguments: the vector type of each argument, and its elements.
        declared: functions beside the kernel.
    """
    lines = []
    types = [*(t for t, _ in arguments), result]
    memrefs = [f"memref<{held(t)}x{t[7:-1].split('x')[-1]}>" for t in types]
    names = ", ".join(f"%m{i}: {m}" for i, m in enumerate(memrefs))
    zeros = "{offsets = [0], strides = [1]}"
    for i, t in enumerate(types):
        n, e = count_of(t), t[7:-1].split("x")[-1]
        whole, flat = f"vector<{held(t)}x{e}>", f"vector<{n}x{e}>"
        lines.append(f"%d{i} = xegpu.create_nd_tdesc %m{i}[0] {{mode = vc}} : {memrefs[i]} -> {line(held(t), e)}")
        if i < len(arguments):
            lines.append(f"%h{i} = xegpu.load_nd %d{i} {{mode = vc}} : {line(held(t), e)} -> {whole}")
            part = f"{{offsets = [0], sizes = [{n}], strides = [1]}}"
            lines.append(f"%l{i} = vector.extract_strided_slice %h{i} {part} : {whole} to {flat}")
            lines.append(f"%a{i} = vector.shape_cast %l{i} : {flat} to {t}")
    lines.append(body)
    lines.append(f"%flat = vector.shape_cast %r : {result} to {flat}")
    store = "%flat"
    if whole != flat:
        zero = "0.0" if e.startswith(("f", "b", "t")) else "0"
        lines.append(f"%none = arith.constant dense<{zero}> : {whole}")
        lines.append(f"%whole = vector.insert_strided_slice %flat, %none {zeros} : {flat} into {whole}")
        store = "%whole"
    last = len(types) - 1
    lines.append(f"xegpu.store_nd {store}, %d{last} {{mode = vc}} : {whole}, {line(held(result), e)}")
    text = f"gpu.module @m {{ {declared}\ngpu.func @k({names}) kernel {{\n" + "\n".join(lines) + "\ngpu.return\n} }"
    out = np.zeros(held(result), dtype_of(result))
    padded = [np.concatenate([np.ravel(a), np.zeros(held(t) - count_of(t), a.dtype)]) for t, a in arguments]
    _checked_kernel(text, gpu)(*padded, out)
    return out[: count_of(result)]
