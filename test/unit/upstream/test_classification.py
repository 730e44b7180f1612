"""What a module is: the spelling of its text, and the dialect and level of its kernels."""

import time

import numpy as np
import pytest

import xegpu_py
from xegpu_py.dialects.xegpu.spelling import Spelling, spelling_of
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import Source
from xegpu_py.upstream import classify, import_upstream, recognized
from xegpu_py.upstream.import_common import read_upstream

T = "!xegpu.tensor_desc"


def kernel(body, arguments="%a: memref<64x64xf16>", attributes=""):
    return f"""gpu.module @m {{
  gpu.func @f({arguments}) kernel {attributes} {{
    {body}
    gpu.return
  }}
}}"""


def load(desc, value, before="", at="[0, 0]", attributes=""):
    return f"""{before}%d = xegpu.create_nd_tdesc %a : memref<64x64xf16> -> {T}<{desc}>
    %v = xegpu.load_nd %d{at} {attributes} : {T}<{desc}> -> vector<{value}>"""


MAP = "#xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>"
DIVIDED = "#xegpu.layout<sg_layout = [4, 4], sg_data = [8, 16]>"
TILE = """%t = xetile.init_tile %a[0, 0] : memref<64x64xf16> -> !xetile.tile<8x16xf16>
    %v = xetile.load_tile %t : !xetile.tile<8x16xf16> -> vector<8x16xf16>"""
RFC = """%d = xegpu.create_nd_tdesc %a[0, 0] {mode = MODE} : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16TYPE>
    %v = xegpu.load_nd %d {mode = MODE} : !xegpu.tensor_desc<8x16xf16TYPE> -> vector<VALUE>"""
XEVM = """%p = llvm.inttoptr %x : i64 to !llvm.ptr<1>
    xevm.memfence <{addrspace = #xevm.addr_space<global>, scope = #xevm.mem_scope<workgroup>}>"""

KERNELS = {
    "block": (kernel(load("8x16xf16", "8x16xf16")), "upstream", "subgroup"),
    "fragment": (kernel(load("8x16xf16", "8xf16")), "upstream", "lane"),
    "divided": (kernel(load(f"32x64xf16, {DIVIDED}", "32x64xf16")), "upstream", "workgroup"),
    "divided already": (
        kernel(load(f"8x16xf16, {DIVIDED}", "8x16xf16", "%s = gpu.subgroup_id : index\n    ")),
        "upstream",
        "subgroup",
    ),
    "tiles": (kernel(TILE), "rfc", "workgroup"),
    "vc": (kernel(RFC.replace("MODE", "vc").replace("TYPE", "").replace("VALUE", "8x16xf16")), "rfc", "subgroup"),
    "simt": (
        kernel(RFC.replace("MODE", "simt").replace("TYPE", f", {MAP}").replace("VALUE", "8x1xf16")),
        "rfc",
        "lane",
    ),
    "no op of these": (kernel("%c = arith.constant 0 : index"), None, "lane"),
}


@pytest.mark.parametrize("name", KERNELS)
def test_dialects_and_levels_of_kernels(name):
    text, origin, level = KERNELS[name]
    module = xegpu_py.parse(text)
    (found,) = classify(module).kernels
    assert (found.origin, found.level) == (origin, level)
    assert (spelling_of(text) == Spelling.UPSTREAM) == (origin == "upstream")
    assert recognized(module) is module
    assert "upstream" not in str(module)
    if origin == "upstream":
        assert classify(module).of("rfc") and not classify(module).of("upstream")


def test_only_lanes_have_numbers():
    text = kernel(load("8x16xf16", "8x16xf16", "%l = gpu.lane_id\n    "))
    assert [found.level for found in classify(xegpu_py.parse(text)).kernels] == ["lane"]


def test_kernels_in_xevm_are_of_lanes():
    module = read_upstream(Source(kernel(XEVM, "%x: i64"), "k.mlir"), Context())
    (found,) = classify(module).kernels
    assert (found.origin, found.level) == ("xevm", "lane")


@pytest.mark.parametrize(
    "comment",
    [f"// {load('8x16xf16', '8x16xf16')}".split("\n")[0], "// CHECK: xegpu.load_nd %0[0, 0] :", f"// {DIVIDED}"],
)
def test_comments_have_no_spelling(comment):
    text = kernel(f"{comment}\n%c = arith.constant 0 : index // mode = vc\n    xegpu.compile_hint")
    assert spelling_of(text) == Spelling.RFC
    marked = text.replace("%c =", "xegpu.fence memory_kind = global, fence_scope = gpu\n%c =")
    assert spelling_of(marked) == Spelling.UPSTREAM


@pytest.mark.parametrize(
    "text",
    [
        "xegpu.load_nd %a " * 30000,
        '"xegpu.load_nd"(%a ' * 30000,
        "xegpu.create_nd_tdesc %a[" * 30000,
        "//" + DIVIDED * 30000,
    ],
)
def test_a_long_line_takes_time_in_proportion_to_its_length(text):
    """It took minutes."""
    start = time.process_time()
    assert spelling_of(f"xegpu. {text}") == Spelling.RFC
    assert time.process_time() - start < 5


def test_a_module_in_memory_is_compiled():
    body = (
        load("8x16xf16", "8x16xf16")
        + """
    %w = arith.addf %v, %v : vector<8x16xf16>
    xegpu.store_nd %w, %d[0, 0] : vector<8x16xf16>, !xegpu.tensor_desc<8x16xf16>"""
    )
    module = xegpu_py.parse(kernel(body))
    text = str(module)
    a = np.ones((64, 64), np.float16)
    xegpu_py.compile(module)(a)
    assert (a[:8, :16] == 2).all() and a.sum() == 64 * 64 + 8 * 16
    assert str(module) == text


def test_a_module_without_ops_of_the_dialect_may_have_its_attributes():
    """MLIR's own dialect of this name, loaded for the attribute, ended the process."""
    text = kernel("%c = arith.constant 0 : index", attributes="attributes {xegpu.subgroup_size = 16 : i32}")
    assert "xegpu.subgroup_size" in str(import_upstream(text))
