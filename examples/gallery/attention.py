"""Flash attention: the sums of a block of rows are rescaled when a greater score is found."""

import numpy as np

import xegpu_py
import xegpu_py.language as xl


@xegpu_py.jit
def attention(Q, K, V, OUT, scale: float):
    m = xl.program_id(0) * 16
    q = Q.tile((16, 64), at=(m, 0)).load()
    top, total, out = xl.full((16, 1), -1e30), xl.zeros((16, 1)), xl.zeros((16, 64))
    for n in range(0, K.shape[0], 16):
        scores = (q @ K.tile((16, 64), at=(n, 0)).load().T) * scale
        new = xl.maximum(top, scores.max(axis=1, keep_dims=True))
        powers, kept = xl.exp(scores - new), xl.exp(top - new)
        total = total * kept + powers.sum(axis=1, keep_dims=True)
        out = out * kept + powers.to(xl.bfloat16) @ V.tile((16, 64), at=(n, 0)).load()
        top = new
    OUT.tile((16, 64), at=(m, 0)).store(out / total)


q, k, v = np.random.default_rng(0).standard_normal((3, 64, 64)).astype(xl.bfloat16)
arguments = q, k, v, np.zeros((64, 64), np.float32), 64**-0.5
launch = attention[4]
launch(*arguments)
powers = np.exp(q.astype(np.float32) @ k.astype(np.float32).T * 64**-0.5)
wanted = powers / powers.sum(1, keepdims=True) @ v.astype(np.float32)
print(f"largest difference from numpy: {abs(arguments[3] - wanted).max():.1g}")
