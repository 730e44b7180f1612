"""Kernels of the tile language as custom ops of PyTorch, which `torch.compile` leaves in its graphs as they are.

    empty = {"Z": lambda X: torch.empty_like(X)}
    add = xegpu_py.torch.custom_op("demo::add", kernel, lambda v: cdiv(v["n"], 256), empty, (), {"n": int}, BLOCK=256)

    @torch.compile
    def doubled(x):
        return add(x, x, x.numel()) * 2

Kernels take tensors of the CPU as they are, without copies: this module is only for graphs. It needs the extra `torch`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xegpu_py.plugins import MissingExtra

try:
    import torch
except ImportError:
    raise MissingExtra("kernels in PyTorch's graphs need 'torch': pip install 'xegpu-py[torch]'") from None

from xegpu_py.language.jit_function import Kernel
from xegpu_py.tiles.element_types import Constexpr, DType

Allocation = Callable[..., torch.Tensor]
"""Gives an empty tensor from those arguments of an op that it names."""


def custom_op(
    name: str,
    kernel: Kernel,
    grid: Any,
    results: Mapping[str, Allocation] | None = None,
    changed: Sequence[str] = (),
    scalars: Mapping[str, type] | None = None,
    **constants: Any,
) -> Any:
    """Register a kernel as a custom op of PyTorch.

    The op takes the kernel's parameters, in their order, without the results and constants.

    Args:
        name: "library::op".
        kernel: the kernel.
        grid: as in `kernel[grid]`.
        results: for each array that the op returns, in this order, a function of the op's arguments, by their names,
            that gives an empty tensor. It is called with fake tensors too.
        changed: the other arrays that the kernel writes to.
        scalars: the types, int, float or bool, of the parameters that are numbers; one whose annotation is an element
            type needs none. The others are tensors.
        constants: arguments of the kernel that are the same in all calls, such as `Constexpr`.

    Returns:
        The op, a `torch.library.CustomOpDef`.

    Raises:
        TypeError: if the kernel has no such parameter, or one that is known at compile time is not given.
        ValueError: if a parameter would be in two of these groups.
    """
    made, own, numbers = dict(results or {}), inspect.signature(kernel).parameters, dict(scalars or {})
    for one in (*made, *changed, *numbers, *constants):
        if one not in own:
            raise TypeError(f"op '{name}' names '{one}', but kernel '{kernel.__name__}' has no such parameter")
        groups = [one in group for group in (made, changed, numbers, constants)]
        if sum(groups) > 1:
            raise ValueError(f"op '{name}': '{one}' is one of results, changed, scalars and constants, not several")
    taken = [p for p in own.values() if p.name not in made and p.name not in constants]
    kinds = {p.name: _kind(name, p, numbers) for p in taken}
    shown = (
        f"Tensor(a{i}!) {one}" if one in changed else f"{kind} {one}" for i, (one, kind) in enumerate(kinds.items())
    )
    gives = ", ".join(["Tensor"] * len(made))
    schema = f"({', '.join(shown)}) -> {gives if len(made) == 1 else f'({gives})'}"

    def allocated(*arguments: Any) -> tuple[dict[str, Any], list[torch.Tensor]]:
        given = dict(zip(kinds, arguments, strict=True))
        tensors = []
        for make in made.values():
            wanted = inspect.signature(make).parameters
            tensors.append(make(**{one: value for one, value in given.items() if one in wanted}))
        return given, tensors

    def returned(tensors: list[torch.Tensor]) -> Any:
        return None if not tensors else tensors[0] if len(tensors) == 1 else tuple(tensors)

    @functools.wraps(kernel.__kernel_function__)
    def run(*arguments: Any) -> Any:
        given, tensors = allocated(*arguments)
        kernel[grid](**given, **dict(zip(made, tensors)), **constants)
        return returned(tensors)

    op = torch.library.custom_op(name, run, mutates_args=tuple(changed), schema=schema)
    op.register_fake(lambda *arguments: returned(allocated(*arguments)[1]))
    return op


_SCALARS = {int: "SymInt", float: "float", bool: "bool"}


def _kind(name: str, parameter: inspect.Parameter, numbers: Mapping[str, type]) -> str:
    """The type of a parameter in the schema of an op."""
    annotation = parameter.annotation
    if parameter.name in numbers:
        if numbers[parameter.name] not in _SCALARS:
            raise TypeError(f"op '{name}': '{parameter.name}' is int, float or bool, not {numbers[parameter.name]!r}")
        return _SCALARS[numbers[parameter.name]]
    if annotation is Constexpr or annotation == "Constexpr":
        raise TypeError(f"op '{name}': '{parameter.name}' is known at compile time: give it as a constant")
    if isinstance(annotation, DType):
        return _SCALARS[float if annotation.is_float else int]
    return "Tensor"
