"""Random kernels of OpenCL C give what another implementation of OpenCL has computed."""

from __future__ import annotations

import msgspec
import pytest
import random_kernels
from effort import some

from xegpu_py import opencl


@pytest.mark.needs("ocloc")
def test_random_kernels() -> None:
    """Each on the interpreter, each fortieth also as native code; `make test` runs every other one."""
    recorded = msgspec.msgpack.decode(random_kernels.RECORDED.read_bytes(), type=random_kernels.Recorded)
    source = random_kernels.program(range(random_kernels.COUNT))
    assert random_kernels.digest(source.encode()) == recorded.source, "record them again; see random_kernels.py"
    made = opencl.compile(source, options=random_kernels.OPTIONS)
    wrong = []
    for seed, wanted in some(enumerate(recorded.results), 1 / 2):
        engine = "interpreter" if seed % (4 * random_kernels.BOTH) else "both"
        if random_kernels.digest(random_kernels.results(made, seed, engine).tobytes()) != wanted:
            wrong.append(seed)
    assert not wrong, "python test/extensions/opencl/random_kernels.py 1 SEED shows the difference"
