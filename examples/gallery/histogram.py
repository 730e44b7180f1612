"""A histogram by atomic additions, which all workgroups make in one array."""

import numpy as np

import xegpu_py
import xegpu_py.language as xl


@xegpu_py.jit
def histogram(X, COUNTS):
    x = xl.load(X + xl.program_id(0) * 64 + xl.arange(0, 64))
    xl.atomic_add(COUNTS + x, xl.full((64,), 1, xl.int32))


x = np.random.default_rng(0).binomial(63, 0.4, 512).astype(np.int32)
arguments = x, np.zeros(64, np.int32)
launch = histogram[8]
launch(*arguments)
print("equal to numpy:", (arguments[1] == np.bincount(x, minlength=64)).all())
