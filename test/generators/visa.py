"""Random vISA programs with aliased or unwritten registers, branches and divergent lanes, for both engines."""

from __future__ import annotations

from random import Random

from visa.mixtures import SCRATCH, Mixture

from xegpu_py.target import TARGETS
from xegpu_py.visa import assembly

from .program import Program


def program(r: Random) -> Program:
    """A random vISA program."""
    target = r.choice(["pvcxt", "pvcxt", "pvc", "dg2", "any"])
    lanes_part, partly, indirect = (r.random() < part for part in (0.5, 0.3, 0.2))
    mixture = Mixture(r, TARGETS[target], lanes_part=lanes_part, partly=partly, indirect=indirect)
    made = mixture.program(r.randint(1, 25), r.randint(0, 2))
    size = sum(root.bytes for root in mixture.roots)
    words = [
        f"bits:ui8:{size}:seed={r.randrange(100)}",
        f"zeros:ui8:{size + 64}",
        f"bits:ui8:{SCRATCH}:seed={r.randrange(100)}",
    ]
    return Program(assembly.write([made]), tuple(words), target=target)
