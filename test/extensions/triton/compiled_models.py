"""Compile models by torch.compile to Triton programs for the CPU, run them on the virtual GPU and compare with PyTorch.

    python test/extensions/triton/compiled_models.py [NAME ...]

TorchInductor writes Triton kernels for tensors of the CPU if `cpu_backend` is "triton". Forward and backward passes are
compared; each model is a line of the printed table, and the exit status is 1 if one differs.
"""

import os
import sys
import time
import warnings
from collections.abc import Callable

os.environ["XEGPU_PY_TRITON_DEVICE"] = "cpu"

import torch
from torch import nn
from torch._inductor import config

from xegpu_py.extensions.triton.launches import LoadedKernel

config.cpu_backend = "triton"
config.fx_graph_cache = False
config.compile_threads = 1
# It looks for a backend that has the name of the device.
warnings.filterwarnings("ignore", message="Could not find an active CPU backend")


class Block(nn.Module):
    """A block of a transformer: attention of two heads, and two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(32), nn.LayerNorm(32)])
        self.inputs, self.output = nn.Linear(32, 96), nn.Linear(32, 32)
        self.layers = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (z.unflatten(-1, (2, 16)).transpose(1, 2) for z in self.inputs(self.norms[0](x)).chunk(3, -1))
        heads = (q @ k.transpose(-1, -2) / 4).softmax(-1) @ v
        x = x + self.output(heads.transpose(1, 2).flatten(2))
        return x + self.layers(self.norms[1](x))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "MLP": (lambda: nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 16)), (8, 32)),
    "softmax": (lambda: nn.Sequential(nn.Linear(20, 50), nn.LogSoftmax(-1)), (7, 20)),
    "convolution net": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 7 * 7, 10)
        ),
        (2, 3, 16, 16),
    ),
    "transformer block": (Block, (2, 12, 32)),
}
"""Models and the shapes of their inputs."""

FORWARD = ("transformer block",)
"""Models whose backward pass torch.compile of PyTorch 2.13 does not compile for any device, its own of C++ included."""


def errors(name: str) -> tuple[float, float]:
    """The largest relative differences from PyTorch of a model's result, and of its gradients; 0 if it has none."""
    torch.manual_seed(0)
    make, shape = MODELS[name]
    trains = name not in FORWARD
    model, x = make().requires_grad_(trains), torch.randn(shape, requires_grad=trains)

    def run(function: Callable[[torch.Tensor], torch.Tensor]) -> list[torch.Tensor]:
        y = function(x)
        gradients = torch.autograd.grad(y.square().sum(), [x, *model.parameters()]) if trains else []
        return [y.detach(), *gradients]

    wanted, found = run(model), run(torch.compile(model, dynamic=False))
    sizes = [float((a - b).abs().max() / b.abs().max().clamp(min=1)) for a, b in zip(found, wanted, strict=True)]
    return sizes[0], max(sizes[1:], default=0.0)


def main() -> int:
    launches = 0
    launch = LoadedKernel.launch

    def counted(self: LoadedKernel, *arguments: object, **options: object) -> object:
        nonlocal launches
        launches += 1
        return launch(self, *arguments, **options)

    LoadedKernel.launch = counted
    differ = False
    print(f"{'model':20} {'forward':>9} {'backward':>9} {'launches':>9} {'seconds':>8}")
    for name in sys.argv[1:] or MODELS:
        launches, start = 0, time.process_time()
        forward, backward = errors(name)
        differ |= max(forward, backward) > 1e-5 or launches == 0
        seconds = time.process_time() - start
        print(f"{name:20} {forward:9.1e} {backward:9.1e} {launches:9} {seconds:8.1f}", flush=True)
    return differ


if __name__ == "__main__":
    sys.exit(main())
