"""Formatting keeps meaning, comments and names, and does not change formatted text."""

import re

import pytest
from effort import some
from files import VALID
from markdown import ROOT

from xegpu_py.ir.context import Context, dialects_of
from xegpu_py.ir.diagnostics import DiagnosticError, Source
from xegpu_py.ir.module import parse_source
from xegpu_py.ir.printer import formatted


def made(text):
    return formatted(Source(text, "test.mlir"), dialects_of(text))


def meaning(text):
    context = Context()
    context.allow_unregistered_dialects = True
    return parse_source(Source(text, "test.mlir"), context=context, verify=False).text()


@pytest.mark.parametrize("path", some(VALID, 1 / 8), ids=lambda p: str(p.relative_to(ROOT)))
def test_formatting_keeps_what_a_file_means(path):
    text = path.read_text()
    after = made(text)
    assert meaning(after) == meaning(text)
    assert made(after) == after
    comments = re.compile(r"//.*")
    assert [c.rstrip() for c in comments.findall(after)] == [c.rstrip() for c in comments.findall(text)]
    assert set(re.findall(r"%[\w$.-]+", after)) == set(re.findall(r"%[\w$.-]+", text))


UGLY = """\
#map = #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>
gpu.module @kernels {
// Copies a block.
gpu.func @copy(%from: memref<64x64xf16>,
  %to: memref<64x64xf16>) kernel {
      %c0 = arith.constant 0 : index
  %src = xegpu.create_nd_tdesc %from[%c0, 16] {mode = vc} : memref<64x64xf16> into tensor_desc<8x16xf16>
        %v = xegpu.load_nd %src {L1_hint = cached,   mode = vc}
: tensor_desc<8x16xf16> into vector<8x16xf16>

    %d = xegpu.create_nd_tdesc %to[0, 0] : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16, #map>
gpu.return
}
}
"""
NEAT = """\
#map = #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>
gpu.module @kernels {
  // Copies a block.
  gpu.func @copy(%from: memref<64x64xf16>,
                 %to: memref<64x64xf16>) kernel {
    %c0 = arith.constant 0 : index
    %src = xegpu.create_nd_tdesc %from[%c0, 16] {mode = vc} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
    %v = xegpu.load_nd %src {mode = vc, l1_hint = cached}
      : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>

    %d = xegpu.create_nd_tdesc %to[0, 0] : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16, #map>
    gpu.return
  }
}
"""


def test_spellings_and_indentation():
    assert made(UGLY) == NEAT


def test_a_mistake_is_reported_where_it_is():
    with pytest.raises(DiagnosticError, match="test.mlir:2:2: error: unknown operation 'xegpu.lod_nd'"):
        made("\n xegpu.lod_nd")
