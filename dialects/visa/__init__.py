"""The vISA dialect: an op for each instruction of `xegpu_py.visa.instructions`."""

from xegpu_py.dialects.visa.ops import (
    OPS,
    BuiltinOp,
    DeclOp,
    DeclPredOp,
    InputOp,
    InstructionOp,
    Pred,
    Var,
    Visa,
)
from xegpu_py.dialects.visa.programs import (
    LIMITS,
    PRESSURE,
    REGISTERS,
    TARGET,
    KernelBody,
    is_lowered,
    kernels,
    module_of,
    name_of,
    program_of,
    registers_of,
    replace_body,
    set_target,
    target_of,
)

DIALECT = Visa

__all__ = [
    "DIALECT",
    "LIMITS",
    "OPS",
    "PRESSURE",
    "REGISTERS",
    "TARGET",
    "BuiltinOp",
    "DeclOp",
    "DeclPredOp",
    "InputOp",
    "InstructionOp",
    "KernelBody",
    "Pred",
    "Var",
    "Visa",
    "is_lowered",
    "kernels",
    "module_of",
    "name_of",
    "program_of",
    "registers_of",
    "replace_body",
    "set_target",
    "target_of",
]

__getattr__ = Visa.function
