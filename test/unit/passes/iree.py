"""iree-opt as a peer: its distribution of a function, as our parser reads it."""

import re
import subprocess

import xegpu_py
from xegpu_py import external_tools

_PIPELINE = "builtin.module(func.func({}))"
# iree-opt's MLIR is newer than ours, and spells these attributes in another way.
_NEWER = (
    (r"(?m)^#translation.*\n", ""),
    (r" \{translation_info = #translation\}", ""),
    (r"<\{(?=[^<>]*barrier_scope|address_spaces = \[[^]]*\], scope = #gpu).*?\}> (?=: \(\) -> \(\))", ""),
    (r"#gpu\.(dim|shuffle_mode|all_reduce_op)<(\w+)>", r"#gpu<\1 \2>"),
)


def opt(text, *flags):
    """The output of iree-opt for a text; None if it rejects the text."""
    command = [external_tools.find("iree-opt"), "-", *flags]
    ran = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
    return ran.stdout if ran.returncode == 0 else None


def with_workgroup(program):
    """The program's text, with the size of its workgroup and subgroups as IREE has it."""
    info = (
        "#iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<VectorDistribute> "
        f"workgroup_size = [{program.subgroups * program.lanes}, 1, 1] subgroup_size = {program.lanes}>"
    )
    head, brace, body = program.text.partition(" {\n")
    return f"{head} attributes {{translation_info = {info}}}{brace}{body}"


def distributed(program):
    """The module that IREE's distribution makes of a program; None if it cannot distribute it."""
    pipeline = _PIPELINE.format("iree-llvmgpu-vector-distribute,canonicalize,cse")
    text = opt(with_workgroup(program), f"--pass-pipeline={pipeline}", "--mlir-print-op-generic")
    if text is None:
        return None
    for pattern, replacement in _NEWER:
        text = re.sub(pattern, replacement, text)
    return xegpu_py.parse(text)


def remarks(text):
    """What IREE's analysis says of the layouts of a function."""
    pipeline = _PIPELINE.format("iree-codegen-test-vector-layout-analysis")
    command = [external_tools.find("iree-opt"), "-", f"--pass-pipeline={pipeline}", "-o", "/dev/null"]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, check=True).stderr
