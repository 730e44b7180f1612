"""`xegpu-translate`: translate kernels to vISA assembly and native code, and assembly to MLIR, like mlir-translate."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlir import ir

from xegpu_py.dialects import visa
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Source, position_of
from xegpu_py.ir.module import Module, walk
from xegpu_py.ir.passes import run_pipeline
from xegpu_py.target import DEFAULT, TARGETS, target
from xegpu_py.tools import driver
from xegpu_py.upstream import read_kernels
from xegpu_py.visa import assembly
from xegpu_py.visa.finalizer import FINALIZERS, FinalizerError, FinalizerMissing, Native, finalize, opencl
from xegpu_py.visa.linking import linked
from xegpu_py.visa.program import NOWHERE, kernel_index
from xegpu_py.visa.verify import misaligned_payloads, verify

TRANSLATIONS = {
    "mlir_to_visaasm": "translate kernels to vISA assembly; kernels above vISA are lowered first",
    "visaasm_to_mlir": "translate vISA assembly to kernels in the visa dialect",
    "mlir_to_gen": "translate kernels to native code with Intel's finalizer",
    "mlir_to_opencl": "translate kernels to OpenCL C whose kernels are vISA as inline assembly",
    "mlir_to_zebin": "translate a kernel to a binary that a GPU's driver launches, with ocloc",
}


def argument_parser() -> driver.Parser:
    """The parser of the tool's arguments."""
    description = "Translate kernels in MLIR to vISA assembly or native code, and vISA assembly to MLIR."
    examples = [
        "xegpu-translate gemm.mlir --mlir-to-visaasm -o gemm.visaasm",
        "xegpu-translate gemm.mlir --mlir-to-gen --target pvc --registers 256",
        "xegpu-translate gemm.mlir --mlir-to-zebin --target bmg -o gemm.bin",
        "xegpu-translate gemm.visaasm --visaasm-to-mlir",
    ]
    parser = driver.Parser("xegpu-translate", "[FILE]", description, examples)
    parser.add_text_arguments()
    which = parser.add_mutually_exclusive_group(required=True)
    for name, text in TRANSLATIONS.items():
        flag = f"--{name.replace('_', '-')}"
        which.add_argument(flag, dest="translation", action="store_const", const=name, help=text)
    parser.add_switch("--line-comments", "name the source lines of instructions in comments of the assembly")
    described = f"GPU to lower and verify for (default: that of the module, or else {DEFAULT})"
    parser.add_argument("--target", choices=TARGETS, help=described)
    by = "finalizer for native code (default: the newest that is installed, knows the target and takes the kernel)"
    parser.add_argument("--finalizer", choices=FINALIZERS, help=by)
    parser.add_argument("--kernel", metavar="NAME", help="translate only this kernel")
    registers = "registers of a thread, for kernels that are lowered: 128 (default) or 256"
    parser.add_argument("--registers", type=int, metavar="N", help=registers)
    return parser


@dataclass
class _Translator:
    """The translations, by the names of their flags."""

    args: argparse.Namespace
    parser: driver.Parser

    def convert(self, source: Source, arose: list[Diagnostic]) -> str | bytes:
        """The translation of a source."""
        return getattr(self, self.args.translation)(source)

    def visaasm_to_mlir(self, source: Source) -> str:
        programs = linked(assembly.read(source))
        chosen = self._chosen([p.name for p in programs], source)
        gpu = target(self.args.target or DEFAULT)
        issues = [issue for program in programs for issue in verify(program, gpu)]
        if issues:
            raise DiagnosticError([issue.diagnostic() for issue in issues])
        return visa.module_of([programs[i] for i in chosen], self.args.target, context=Context.from_pool()).text()

    def mlir_to_visaasm(self, source: Source) -> str:
        module = self._module(source)
        programs = [visa.program_of(func) for func in self._kernels(module, source)]
        return assembly.write(programs, lines=self.args.line_comments)

    def mlir_to_gen(self, source: Source) -> str:
        module = self._module(source)
        return "\n".join([self._listed(func) for func in self._kernels(module, source)])

    def mlir_to_opencl(self, source: Source) -> str:
        module = self._module(source)
        return "\n".join(
            opencl(assembly.write([visa.program_of(f)]), visa.target_of(f).grf_bytes)[0]
            for f in self._kernels(module, source)
        )

    def mlir_to_zebin(self, source: Source) -> bytes:
        if self.args.split_input_file:
            self.parser.error("--mlir-to-zebin makes one file, and --split-input-file several outputs")
        if self.args.output == "-" and sys.stdout.isatty():
            self.parser.error("--mlir-to-zebin makes a binary file; -o names it")
        module = self._module(source)
        kernels = self._kernels(module, source)
        try:
            func = kernels[kernel_index([visa.name_of(f) for f in kernels], None)]
        except ValueError as e:
            raise source.error(0, f"{e}; a binary has one") from None
        return self._native(func, "ocloc").binary

    def _listed(self, func: ir.Operation) -> str:
        native = self._native(func, self.args.finalizer)
        return (
            f"// kernel: {visa.name_of(func)}\n"
            f"// target: {visa.target_of(func).name}\n"
            f"// instructions: {native.instructions}\n"
            f"// registers: {native.registers} of {native.total_registers}\n"
            f"// spilled bytes: {native.spill_bytes}\n"
            f"{native.text.strip()}\n"
        )

    def _native(self, func: ir.Operation, finalizer: str | None) -> Native:
        gpu = visa.target_of(func)
        program = visa.program_of(func)
        issues = misaligned_payloads(program, gpu)
        if issues:
            raise DiagnosticError([issue.diagnostic() for issue in issues])
        text = assembly.write([program])
        try:
            return finalize(text, gpu.name, visa.registers_of(func), finalizer)
        except FinalizerMissing as e:
            self.parser.error(str(e))
        except FinalizerError as e:
            # Each instruction is a line, behind the declarations.
            first = text.count("\n") - len(program.instructions) + 1
            found = program.instructions[e.line - first] if e.line and e.line >= first else None
            place = found.where if found and found.where != NOWHERE else position_of(func.location)
            subject = f"'{found.name}'" if found else f"'{func.name}' op"
            raise DiagnosticError([Diagnostic("error", f"{subject} {e}", place)]) from None

    def _module(self, source: Source) -> Module:
        """The module in a source, verified for the target that was given."""
        module = read_kernels(source, Context.from_pool(), verify=False)
        if self.args.target:
            visa.set_target(module.operation, self.args.target)
        module.verify()
        return module

    def _kernels(self, module: Module, source: Source) -> list[ir.Operation]:
        found = visa.kernels(module.operation)
        names = [visa.name_of(func) for func in found]
        chosen = [found[i] for i in self._chosen(names, source)]
        if all(visa.is_lowered(func) for func in chosen):
            return chosen
        given = {"kernel": self.args.kernel, "grf": self.args.registers}
        options = " ".join(f"{name}={value}" for name, value in given.items() if value)
        tiles = any(op.name.startswith("xetile.") for func in chosen for op in walk(func))
        level = "xetile" if tiles else "xegpu"
        run_pipeline(module, f"builtin.module({level}-to-visa-pipeline{{{options}}})")
        return [f for f in visa.kernels(module.operation) if self.args.kernel in (None, visa.name_of(f))]

    def _chosen(self, names: Sequence[str], source: Source) -> Iterable[int]:
        """The indices of the kernels to translate."""
        wanted = self.args.kernel or next((n for n in names if names.count(n) > 1), None)
        if names and wanted is None:
            return range(len(names))
        try:
            return [kernel_index(names, wanted)]
        except ValueError as e:
            raise source.error(0, str(e)) from None


def run(argv: Sequence[str]) -> int:
    """Run the tool with these arguments; its exit status."""
    parser = argument_parser()
    args = parser.parse_args(parser.normalized(argv))
    translator = _Translator(args, parser)
    return driver.finish(parser, args, driver.process(parser, args, translator.convert))


def main() -> None:
    """Entry point of the command `xegpu-translate`."""
    driver.main(run)


if __name__ == "__main__":
    main()
