"""Compare unsloth's kernels with PyTorch; `programs.py` runs these tests with the folder of a checkout on the path.

Only its modules with kernels are imported: those of the whole package change other packages, and want a GPU.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from typing import Any

import pytest
import torch
from torch.nn import functional

os.environ |= {"UNSLOTH_ALLOW_CPU": "1", "UNSLOTH_IS_PRESENT": "1"}


def kernels(name: str) -> Any:
    """A module of kernels, without the packages around it."""
    for package in ("unsloth", "unsloth.kernels"):
        if package not in sys.modules:
            spec = ModuleSpec(package, None, is_package=True)
            spec.submodule_search_locations = [f"{folder}/{package.replace('.', '/')}" for folder in sys.path]
            sys.modules[package] = module_from_spec(spec)
    return importlib.import_module(f"unsloth.kernels.{name}")


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def gradients(function: Any, *inputs: torch.Tensor) -> list[torch.Tensor]:
    """The value of a function, and the gradients of all that it depends on."""
    copies = [x.clone().requires_grad_() for x in inputs]
    y = function(*copies)
    return [y.detach(), *torch.autograd.grad((y * torch.linspace(-1, 1, y.numel()).view(y.shape)).sum(), copies)]


def agree(function: Any, reference: Any, *inputs: torch.Tensor) -> None:
    for x, y in zip(gradients(function, *inputs), gradients(reference, *inputs), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [64, 500, 1024])
@pytest.mark.parametrize("gemma", [False, True])
def test_rms_layernorm(size: int, gemma: bool) -> None:
    norm = torch.nn.RMSNorm(size, eps=1e-5)
    norm.weight.data.uniform_(-1, 1)
    norm.requires_grad_(False)

    def wanted(x: torch.Tensor) -> torch.Tensor:
        return functional.rms_norm(x, (size,), eps=1e-5) * (norm.weight + gemma)

    agree(lambda x: kernels("rms_layernorm").fast_rms_layernorm(norm, x, gemma), wanted, torch.randn(2, 7, size))


@pytest.mark.parametrize("size", [64, 500, 1024])
def test_layernorm(size: int) -> None:
    norm = torch.nn.LayerNorm(size)
    norm.weight.data.uniform_(-1, 1)
    norm.requires_grad_(False)
    agree(lambda x: kernels("layernorm").fast_layernorm(norm, x), norm, torch.randn(2, 7, size))


@pytest.mark.parametrize("size", [64, 500])
@pytest.mark.parametrize("name", ["swiglu", "geglu_exact", "geglu_approx"])
def test_gated_units(name: str, size: int) -> None:
    activations = {
        "swiglu": functional.silu,
        "geglu_exact": functional.gelu,
        "geglu_approx": lambda x: functional.gelu(x, approximate="tanh"),
    }
    module = kernels(name.partition("_")[0])
    forward = "swiglu_fg_kernel" if name == "swiglu" else f"{name}_forward_kernel"
    backward = "swiglu_DWf_DW_dfg_kernel" if name == "swiglu" else f"{name}_backward_kernel"
    e, g, dw = torch.randn(3, 21, size)

    def of(e: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        return activations[name](e) * g

    torch.testing.assert_close(getattr(module, forward)(e[None], g[None])[0], of(e, g), rtol=1e-4, atol=1e-5)

    e.requires_grad_()
    g.requires_grad_()
    de, dg = torch.autograd.grad((of(e, g) * dw).sum(), [e, g])
    wanted = of(e, g).detach(), dg, de
    found = getattr(module, backward)(dw.clone(), e.detach().clone(), g.detach().clone())
    for x, y in zip(found, wanted, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [1000, 32000, 70000])
@pytest.mark.parametrize(("softcap", "scale"), [(0, 0), (30.0, 0), (0, 0.5)])
def test_cross_entropy_loss(size: int, softcap: float, scale: float) -> None:
    labels = torch.randint(size, (2, 5))
    labels[1, 3:] = -100

    def wanted(logits: torch.Tensor) -> torch.Tensor:
        logits = logits * (scale or 1)
        logits = softcap * torch.tanh(logits / softcap) if softcap else logits
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)

    loss = kernels("cross_entropy_loss").fast_cross_entropy_loss
    # The kernel writes the gradients into the logits.
    agree(lambda x: loss(x * 1, labels, softcap, scale), wanted, torch.randn(2, 5, size) * 5)


@pytest.mark.parametrize("heads", [1, 6])
def test_rope_embedding(heads: int) -> None:
    angles = torch.rand(9, 32).repeat(1, 2)
    cos, sin = angles.cos(), angles.sin()

    def wanted(x: torch.Tensor) -> torch.Tensor:
        rotated = torch.cat((-x[..., 32:], x[..., :32]), -1)
        return x * cos + rotated * sin

    rope = kernels("rope_embedding").fast_rope_embedding
    q, k = torch.randn(2, heads, 9, 64), torch.randn(2, heads, 9, 64)
    agree(lambda x: rope(x * 1, k, cos, sin)[0], wanted, q)
    agree(lambda x: rope(q, x * 1, cos, sin)[1], wanted, k)
