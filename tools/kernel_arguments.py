"""Arguments of the tools that run a kernel: its options, and the arrays and numbers that it is called with."""

import argparse
from collections.abc import Sequence
from typing import Any

from xegpu_py.numerics.choices import CHOICES
from xegpu_py.numerics.dpas import MODELS, Model
from xegpu_py.numerics.systolic import VARIANTS, read_model
from xegpu_py.runtime.host_arrays import parse_argument
from xegpu_py.target import DEFAULT, TARGETS
from xegpu_py.tools.driver import Parser, dimensions


def _model(text: str) -> Model:
    try:
        return VARIANTS.get(text) or (text if text in MODELS else read_model(text))
    except ValueError as e:
        raise argparse.ArgumentTypeError(str(e)) from None


class KernelParser(Parser):
    """The parser of a tool that runs a kernel."""

    def add_launch_arguments(self) -> None:
        """Add the kernel, its arguments and the options of its launch."""
        add = self.add_argument
        add(
            "file",
            metavar="FILE",
            help="the kernel, in MLIR or, for xegpu-run, vISA assembly or OpenCL C; '-' for standard input",
        )
        add("args", metavar="ARG", nargs="*", default=[], help="the kernel's arguments, see below")
        add("--kernel", metavar="NAME", help="the kernel to use, if the file has several")
        add("--grid", metavar="X,Y,Z", type=dimensions, help="number of workgroups (default 1)")
        add("--block", metavar="X,Y,Z", type=dimensions, help="work items in a workgroup (default: the kernel's, or 1)")
        add("--target", choices=TARGETS, default=DEFAULT, help=f"GPU to lower for (default {DEFAULT})")
        names = ", ".join(CHOICES["dpas-sums"].values)
        models = f"{names} (default fma), or the file of xegpu_py.extensions.hardware_check"
        add("--model", metavar="MODEL", type=_model, default="fma", help=f"rounding model of dpas: {models}")
        add("--registers", type=int, metavar="N", help="registers of a thread: 128 (default) or 256")

    def kernel_arguments(self, words: Sequence[str]) -> list[Any]:
        """A kernel's arguments, as the command line gives them."""
        try:
            return [parse_argument(word) for word in words]
        except OSError as e:
            self.error(f"cannot open '{e.filename}': {e.strerror}")
        except ValueError as e:
            number = next((word for word in words if word.isdecimal()), None)
            hint = f"; a number has its type, i32:{number}, and a grid its commas, --grid 8,4" if number else ""
            self.error(f"{e}{hint}")
