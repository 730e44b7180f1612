"""Small kernels around one op, lowered and run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from xegpu_py.dialects import visa

import xegpu_py
from xegpu_py.kernel import Kernel
from xegpu_py.runtime.arguments import DTYPES
from xegpu_py.visa.program import Program


def lower(text: str, gpu: str = "pvcxt") -> Program:
    """The first kernel of an MLIR text as a program, which must be valid."""
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
    memrefs = [f"memref<{count_of(t)}x{t[7:-1].split('x')[-1]}>" for t in types]
    names = ", ".join(f"%m{i}: {m}" for i, m in enumerate(memrefs))
    for i, t in enumerate(types):
        n, e = count_of(t), t[7:-1].split("x")[-1]
        lines.append(f"%d{i} = xegpu.create_nd_tdesc %m{i}[0] {{mode = vc}} : {memrefs[i]} -> {line(n, e)}")
        if i < len(arguments):
            flat = f"vector<{n}x{e}>"
            lines.append(f"%l{i} = xegpu.load_nd %d{i} {{mode = vc}} : {line(n, e)} -> {flat}")
            lines.append(f"%a{i} = vector.shape_cast %l{i} : {flat} to {t}" if flat != t else "")
            if flat == t:
                body = body.replace(f"%a{i}", f"%l{i}")
    n, e = count_of(result), result[7:-1].split("x")[-1]
    flat = f"vector<{n}x{e}>"
    store = "%r"
    lines.append(body)
    if flat != result:
        lines.append(f"%flat = vector.shape_cast %r : {result} to {flat}")
        store = "%flat"
    last = len(types) - 1
    lines.append(f"xegpu.store_nd {store}, %d{last} {{mode = vc}} : {flat}, {line(n, e)}")
    text = f"gpu.module @m {{ {declared}\ngpu.func @k({names}) kernel {{\n" + "\n".join(lines) + "\ngpu.return\n} }"
    program = lower(text, gpu)
    out = np.zeros(count_of(result), dtype_of(result))
    Kernel(program, target=gpu, check=["uninit"])(*(a for _, a in arguments), out)
    return out
