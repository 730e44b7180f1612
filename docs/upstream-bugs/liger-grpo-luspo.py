"""Liger-Kernel's gradient of GRPO's loss reads beyond an array of one column, by that array's strides.

`loss_type="luspo"` with `importance_sampling_level="sequence"` makes an array of a number for each sequence, of shape
(sequences, 1). The kernel of the gradient reads it by sequence and token, as others that have a column for each token.

$ python liger-grpo-luspo.py
liger-grpo-luspo.py:25:9: error: 'lsc_load' reads 4 bytes at 0x100008,
reaching 4 bytes over the end of 'scale', which has 8 bytes
"""

import sys
from pathlib import Path

import numpy as np
import triton
import triton.language as tl

import xegpu_py


@triton.jit
def gradient(scale, out, by_sequence, by_token, tokens: tl.constexpr):
    """Scale the gradient of a token, with the strides of the array, as Liger's `_grpo_loss_bwd_kernel_seq`."""
    sequence, token = tl.program_id(0), tl.program_id(1)
    x = tl.load(scale + sequence * by_sequence + token * by_token)
    tl.store(out + sequence * tokens + token, x)


scale, out = np.ones((2, 1), np.float32), np.zeros((2, 8), np.float32)
strides = (stride // scale.itemsize for stride in scale.strides)
try:
    gradient[(2, 8)](xegpu_py.triton.wrap(scale), xegpu_py.triton.wrap(out), *strides, tokens=8)
except xegpu_py.DiagnosticError as error:
    message = str(error).splitlines()[0].replace(f"{Path(__file__).parent}/", "")
    print(message.replace(", reaching", ",\nreaching"))
    sys.exit(1)
