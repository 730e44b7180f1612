"""A mixture of experts: each workgroup gathers a block of tokens, and multiplies the weights of the block's expert."""

import numpy as np

import xegpu_py
import xegpu_py.language as xl


@xegpu_py.jit
def experts(X, W, ROUTES, EXPERTS, OUT):
    block = xl.program_id(0)
    expert = EXPERTS[block]
    tokens = xl.load(ROUTES + block * 16 + xl.arange(0, 16))[:, None]
    acc = xl.zeros((16, 32))
    for k in range(0, 64, 32):
        x = xl.load(X + tokens * 64 + k + xl.arange(0, 32)[None, :])
        acc += x @ W.tile((32, 32), at=(expert, k, 0)).load()
    xl.store(OUT + tokens * 32 + xl.arange(0, 32)[None, :], acc)


rng = np.random.default_rng(0)
x, w = rng.integers(-4, 5, (64, 64)).astype(xl.bfloat16), rng.integers(-4, 5, (4, 64, 32)).astype(xl.bfloat16)
routes = rng.permutation(64).astype(np.int32)
chosen = np.array([2, 0, 3, 0], np.int32)
arguments = x, w, routes, chosen, np.zeros((64, 32), np.float32)
launch = experts[4]
launch(*arguments)
wanted = np.zeros((64, 32))
for tokens, expert in zip(routes.reshape(4, 16), chosen):
    wanted[tokens] = x[tokens].astype(float) @ w[expert].astype(float)
print("equal to numpy:", (arguments[4] == wanted).all())
