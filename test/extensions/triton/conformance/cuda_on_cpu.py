"""A plugin of pytest for tests that ask for the device `cuda`: their tensors are those of the CPU."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode


def on_host(argument: Any) -> Any:
    """An argument, with the CPU in place of a GPU."""
    is_name = isinstance(argument, str) and argument.partition(":")[0] == "cuda"
    is_device = isinstance(argument, torch.device) and argument.type == "cuda"
    return "cpu" if is_name or is_device else argument


class OnHost(TorchFunctionMode):
    """Calls PyTorch's functions with the CPU in place of a GPU."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.Tensor.cuda:
            return args[0]
        words = {name: on_host(argument) for name, argument in (kwargs or {}).items()}
        return function(*map(on_host, args), **words)


def pytest_load_initial_conftests() -> None:
    """Begin before the tests are imported."""
    torch.cuda.synchronize = torch.cuda.empty_cache = lambda *_: None
    torch.cuda.current_device = lambda: 0
    OnHost().__enter__()
