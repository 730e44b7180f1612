"""The public names of `xegpu_py.triton`.

import torch, triton, triton.language as tl        # a Triton program, unmodified

@triton.jit
def double(X, n, BLOCK: tl.constexpr): ...

with xegpu_py.triton.options(check="races,uninit"):
    double[(4,)](torch.rand(1000), 1000, BLOCK=256)
"""

try:
    from xegpu_py.extensions.triton.inspection import fidelity, kernel_of, portability, profile
    from xegpu_py.extensions.triton.settings import options
    from xegpu_py.extensions.triton.wrapped import wrap
except ModuleNotFoundError as e:
    if e.name != "triton":
        raise
    from xegpu_py.plugins import MissingExtra

    raise MissingExtra("Triton programs need 'triton': pip install 'xegpu-py[triton]'") from None

__all__ = ["fidelity", "kernel_of", "options", "portability", "profile", "wrap"]
