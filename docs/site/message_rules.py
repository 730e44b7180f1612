"""`python docs/site/message_rules.py docs`: the page of the rules of messages, from `xegpu_py.target.message_rules`."""

import sys
from pathlib import Path

from xegpu_py.target import TARGETS, Target
from xegpu_py.target.message_rules import RULES, Reaction

_HEAD = """# Rules of messages

GPUs have rules for their messages, and do not report a message that breaks one. Some return wrong data, some accept it.
This page lists the rules, and the reaction of each generation of GPUs with its source. It is generated from
`xegpu_py/target/message_rules.py`. The glossary has the terms [lane](glossary.md#simd-lane), [pitch](glossary.md#pitch),
[shared local memory](glossary.md#slm) and [vISA](glossary.md#visa).

- **Assembly, OpenCL C and XeVM**: an op or instruction is the message. It is executed as written, and every rule is
  checked with the values that its operands have. A broken rule is an error at the line of the op. Its notes name the
  rule, and say what each target does. A rule that a target is known not to need is no error there.
- **XeGPU**, of [subgroups](glossary.md#subgroup) and lanes: upstream's lowering makes a message of each block access without a check. The
  lowering here uses other messages for surfaces that [2D block messages](glossary.md#2d-block-message) cannot address
  ([targets](targets.md)), so results are right. A warning names the first such block of a kernel.
- **XeGPU with `--check=surfaces`** (in Python `check="surfaces"`): blocks are 2D block messages as upstream makes them, and one that
  breaks a rule is an error. Columns that only a run knows are checked, too; without the
  check they cause the warning.
- **Xe3** (`ptl`): a dpas whose factors are in registers that were never written is an error there without a check.
- **The tile language and XeTile**: the compiler chooses the messages. The check has no effect, and there is no warning.

| Outcome | Meaning |
| --- | --- |
| refused | Intel's compiler does not compile it |
| garbage | wrong data are documented, or were seen |
| undefined | documents leave the outcome open |
| tolerated | right data were seen, and engines accept it |
| unknown | no source |

In the tables, T is the issue or pull request of that number of intel-xpu-backend-for-triton. `verifier` is its file
third_party/intel/lib/Dialect/TritonGEN/IR/TritonGENOps.cpp. oneDNN is src/gpu/intel/jit/ir/block_2d_utils.hpp unless
another file is named. LLVM is mlir/include/mlir/Dialect/XeGPU/uArch. [IGC](glossary.md#igc) is Intel's compiler.
"""


def generations() -> dict[str, list[Target]]:
    """The targets of each generation of GPUs."""
    found: dict[str, list[Target]] = {}
    for gpu in TARGETS.values():
        if gpu.generation:
            found.setdefault(gpu.generation, []).append(gpu)
    return found


def _cell(reaction: Reaction, source: str) -> str:
    seen = f", {reaction.seen}" if reaction.seen else ""
    return f"{reaction.kind}{seen}" + (f" ({reaction.source})" if reaction.source != source else "")


def page() -> str:
    """The page's text."""
    parts = [_HEAD]
    for rule in RULES.values():
        parts.append(f"\n## {rule.name}\n\nSource: {rule.source}.\n\n")
        parts.append("| Targets | Rule | If it is broken |\n| --- | --- | --- |\n")
        for gpus in generations().values():
            if not rule.holds_for(gpus[0].block2d):
                continue
            names = ", ".join(f"`{gpu.name}`" for gpu in gpus)
            reaction = _cell(rule.reaction(gpus[0].generation), rule.source)
            parts.append(f"| {names} | {rule.sentence(gpus[0].block2d)} | {reaction} |\n")
    return "".join(parts)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(
            print("message_rules.py: skipped: needs the folder of the pages: python docs/site/message_rules.py docs")
        )
    (Path(sys.argv[1]) / "message-rules.md").write_text(page())
