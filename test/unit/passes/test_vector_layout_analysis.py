"""The layouts that flow to each op, next to those that iree-opt finds."""

import re

import numpy as np
import pytest
from effort import examples

import xegpu_py
from xegpu_py.dialects.iree_vector_ext import NestedLayoutAttr
from xegpu_py.ir.diagnostics import position_of
from xegpu_py.layout import NestedLayout
from xegpu_py.passes.analysis.vector_layouts import LAYOUTS

from .iree import remarks
from .layout_programs import SHARED, make

_REMARK = re.compile(r":(\d+):\d+: remark: layout of result #(\d+) is (#iree_vector_ext.nested_layout<[^>]*>)")


def found_by_us(text):
    """Layouts by line and number of the result; those of conversions that were put in left out."""
    module = xegpu_py.parse(text)
    xegpu_py.run_pipeline(module, "builtin.module(vector-layout-analysis)")
    found = {}
    for view in module.ops():
        op = view.operation
        if LAYOUTS in op.attributes and op.name != "iree_vector_ext.to_layout":
            for i, attribute in enumerate(op.attributes[LAYOUTS]):
                if str(attribute) != "unit":
                    line = position_of(op.location).line
                    found.setdefault((line, i), NestedLayoutAttr.decode(str(attribute)).layout)
    return found


def held(layout):
    """The elements of each lane, in the order of its registers."""
    return layout.indices(*np.ogrid[: layout.subgroups.period, : layout.threads.period])


@pytest.mark.needs("iree-opt")
@pytest.mark.parametrize("kind", SHARED, ids=lambda kind: kind.__name__)
def test_layouts_are_those_of_iree_opt(kind):
    compared = 0
    for seed in range(examples(4)):
        text = make(kind, seed, writes_result=True, gaps=False).text
        ours = found_by_us(text)
        for line, number, layout in _REMARK.findall(remarks(text)):
            np.testing.assert_array_equal(held(ours[int(line), int(number)]), held(NestedLayout.parse(layout)))
            compared += 1
    assert compared >= examples(4)
