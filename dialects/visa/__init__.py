"""The vISA dialect: an op for each instruction of `xegpu_py.visa.instructions`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from xegpu_py.dialects.visa.programs import (
    LIMITS,
    PRESSURE,
    REGISTERS,
    TARGET,
    KernelBody,
    is_lowered,
    kernel_named,
    module_of,
    name_of,
    program_of,
    registers_of,
    replace_body,
    set_target,
    target_of,
    verify,
)
from xegpu_py.ir.module import kernels

if TYPE_CHECKING:
    from xegpu_py.dialects.visa.ops import (
        OPS,
        BuiltinOp,
        DeclAddressOp,
        DeclOp,
        DeclPredOp,
        InputOp,
        InstructionOp,
        Pred,
        Var,
        Visa,
    )


def __getattr__(name: str) -> Any:
    """The ops, which are defined when one of them is first asked for; see `programs`."""
    if name.startswith("_"):
        raise AttributeError(name)
    ops = importlib.import_module(f"{__name__}.ops")
    if "DIALECT" not in globals():
        globals().update(vars(ops) | globals(), DIALECT=ops.Visa)
        ops.Visa.rule(verify)
    return globals()[name] if name in globals() else ops.Visa.function(name)
