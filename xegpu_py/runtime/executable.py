"""A lowered kernel: its parameters, its code and its assumptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from xegpu_py.ir.diagnostics import Diagnostic, Position, Source
from xegpu_py.runtime.argument_conditions import Multiple, Product, Sum, Surface
from xegpu_py.runtime.host_arrays import Window
from xegpu_py.runtime.parameters import Parameter
from xegpu_py.target.message_rules import Block2DLimits
from xegpu_py.visa.dataflow import referenced_variables
from xegpu_py.visa.operands import GROUP_IDS
from xegpu_py.visa.program import Program


def reads_group_ids(program: Program) -> bool:
    """Whether an instruction of a program reads the id of its workgroup."""
    return not GROUP_IDS.isdisjoint(referenced_variables(program.instructions))


class Executable(Struct, frozen=True):
    """A kernel lowered to vISA, as plain data that can be pickled and read again without MLIR.

    Attributes:
        name: the kernel's name.
        parameters: its parameters.
        program: the vISA program.
        limits: the limits of its launches, with the keys of `SMALL`; 0 for no limit.
        known: the extents of grid and block that the kernel fixes, by "grid" and "block".
        subgroups: the number of subgroups of a workgroup if the kernel's maps define it; otherwise None.
        remarks: the remarks of the lowering about code that is correct but slow.
        source: the text from which it was read, for diagnostics.
        surfaces: the 2D surfaces whose extents or strides are computed from arguments.
        multiples: the numbers that it assumes to be multiples of others.
        sums: the sums that it assumes to fit 32 bits.
        products: the products of matrices, whose inner sizes a call compares.
        unit_strides: the numbers of the arguments whose innermost stride must be 1 although their types allow others.
        changed: the numbers of the arguments that may not share memory with others, since subgroups change them without
            waiting for accesses of those.
        places: the position of each argument in the kernel's text.
        is_assembly: whether its parameters are the program's inputs.
        exact_messages: whether its messages are as its author wrote them; see `engines.operands.Layout.exact`.
        exact_addresses: whether this is a kernel of XeVM, whose addresses are its author's, as those of assembly; see
            `engines.operands.Layout.exact_addresses`.
        repaired: of kernels that are written in XeGPU, a warning of the first 2D block that other messages move, since
            a 2D block message, as upstream's lowering makes one, would break a rule of the target; empty if there is
            none. None for other kernels.
        reads_block_ids: whether its author reads the ids of blocks, which differ from workgroup to workgroup. Programs
            that print or assert read them too.
    """

    name: str
    parameters: tuple[Parameter, ...]
    program: Program
    limits: Mapping[str, int] = {}
    known: Mapping[str, tuple[int, ...]] = {}
    subgroups: int | None = None
    remarks: tuple[Diagnostic, ...] = ()
    source: Source | None = None
    surfaces: tuple[Surface, ...] = ()
    multiples: tuple[Multiple, ...] = ()
    sums: tuple[Sum, ...] = ()
    products: tuple[Product, ...] = ()
    unit_strides: tuple[int, ...] = ()
    changed: tuple[int, ...] = ()
    places: tuple[Position, ...] = ()
    is_assembly: bool = False
    exact_messages: bool = False
    exact_addresses: bool = False
    repaired: str | None = None
    reads_block_ids: bool = False

    @classmethod
    def of_assembly(cls, program: Program, source: Source | None = None) -> Executable:
        """The executable of a program that was read from assembly."""
        parameters = tuple(Parameter(i.var.type, i.var.type, "input", name=i.var.name) for i in program.arguments)
        return cls(
            program.name,
            parameters,
            program,
            source=source,
            is_assembly=True,
            exact_messages=True,
            reads_block_ids=reads_group_ids(program),
        )

    def unaligned(self, arguments: Sequence[Any], limits: Block2DLimits | None) -> set[int]:
        """The numbers of the arrays that it accesses by an assumption which does not hold in a call.

        Args:
            limits: those of the target's 2D block messages; None if it has none.
        """
        misaligned = {i for i, (p, a) in enumerate(zip(self.parameters, arguments)) if p.misfits(a, limits)}
        misaligned |= {s.argument for s in self.surfaces if limits is not None and s.misfits(arguments, limits)}
        misaligned |= {m.argument for m in self.multiples if not m.holds(arguments)}
        if limits is not None:
            windows = ((i, a) for i, a in enumerate(arguments) if isinstance(a, Window))
            misaligned |= {i for i, window in windows if not window.is_aligned(limits.base_alignment)}
        return misaligned | {s.argument for s in self.sums if not s.holds(arguments)}

    def strided(self, arguments: Sequence[Any]) -> tuple[int, ...]:
        """The numbers of the arguments whose innermost stride is assumed to be 1, but is not."""
        return tuple(i for i in self.unit_strides if self.parameters[i].is_strided(arguments[i]))

    def shares_changed(self, arguments: Sequence[Any]) -> bool:
        """Whether an array that must not share memory with others does."""
        return any(
            i != other and isinstance(found, np.ndarray) and np.may_share_memory(arguments[i], found)
            for i in self.changed
            for other, found in enumerate(arguments)
        )
