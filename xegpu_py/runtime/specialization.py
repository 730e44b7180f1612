"""Versions of a kernel: what a call needs of one, and what lowers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, structs

from xegpu_py.ir.module import Module
from xegpu_py.runtime.executable import Executable
from xegpu_py.runtime.options import Options
from xegpu_py.runtime.parameters import beyond
from xegpu_py.target import target as target_of


class Specialization(Struct, frozen=True):
    """The options of a kernel that follow from the arguments and the grid of a call: the key of its versions.

    A kernel assumes that arrays are aligned and small, that their innermost stride is 1, and that they share no memory.
    A version drops the assumptions that a call breaks.

    Attributes:
        unaligned, large, strided, aliased: see `Options`.
    """

    unaligned: tuple[int, ...]
    large: bool | None
    strided: tuple[int, ...]
    aliased: bool

    @classmethod
    def of_options(cls, options: Options) -> Specialization:
        """That of the version with these options."""
        return cls(options.unaligned, options.large, options.strided, options.aliased)

    @classmethod
    def of_call(
        cls, executable: Executable, options: Options, arguments: Sequence[Any], grid: int | Sequence[int]
    ) -> Specialization:
        """The one that a call needs of a kernel with these options; that of the options if it breaks no assumption."""
        limits = target_of(options.target).block2d
        misaligned = set() if executable.exact_messages else executable.unaligned(arguments, limits)
        exceeds = options.large is None and beyond(executable.parameters, arguments, grid, executable.limits)
        return cls(
            tuple(sorted({*options.unaligned, *misaligned})),
            True if exceeds else options.large,
            executable.strided(arguments),
            executable.shares_changed(arguments) or options.aliased,
        )

    def applied_to(self, options: Options) -> Options:
        """The options of a version."""
        return structs.replace(options, **structs.asdict(self))


class Compiler(Protocol):
    """Lowers one kernel, with any options."""

    def executable(self, options: Options) -> Executable:
        """The kernel lowered to vISA, from the cache on disk if it is there.

        Raises:
            ValueError: if there is no such kernel.
            DiagnosticError: if the module cannot be parsed, or the kernel cannot be lowered.
        """

    def levels(self, options: Options) -> Mapping[str, Module]:
        """The module at each level, the highest first. The modules are not to be changed."""
