"""The output of each pass of the pipeline is printed, parsed and verified, and then prints the same text."""

import re

import pytest
from effort import some

import xegpu_py
from xegpu_py.dialects import visa
from xegpu_py.passes.pipelines import XeGPUToVisaPipeline

from .test_kernels import CASES, FOLDER, GEMMS

STEPS = re.split(r",(?![^{]*\})", XeGPUToVisaPipeline(target="pvcxt").steps())
TEXTS = {name: (FOLDER / f"{name}.mlir").read_text() for name in dict.fromkeys(n.partition(":")[0] for n in CASES)}
TEXTS |= {str(gemm): gemm.text() for gemm in GEMMS}


def test_steps():
    assert "xegpu-to-visa{target=pvcxt}" in STEPS
    assert all(step.count("{") == step.count("}") for step in STEPS)


@pytest.mark.parametrize("name", some(TEXTS, 1 / 6))
def test_each_form(name):
    module = xegpu_py.parse(TEXTS[name])
    before = str(module)
    for step in STEPS:
        xegpu_py.run_pipeline(module, f"builtin.module({step})")
        text = str(module)
        if text == before:
            continue
        before = text
        module = xegpu_py.parse(text, name=f"after {step}")
        assert str(module) == text, step
    assert all(visa.is_lowered(func) for func in visa.kernels(module.operation))
