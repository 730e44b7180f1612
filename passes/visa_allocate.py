"""`visa-allocate`: where a kernel's variables lie, and how many registers that takes."""

from mlir import ir

from xegpu_py.dialects import visa
from xegpu_py.ir.passes import BodyPass, register_pass
from xegpu_py.ir.pending_functions import PendingFunctions
from xegpu_py.passes.analysis.ir_queries import registers_of
from xegpu_py.visa.allocate import allocate


@register_pass("visa-allocate")
class VisaAllocate(BodyPass):
    """Allocate the variables of kernels to registers.

    The register pressure becomes an attribute of the kernel. `grf` is the number of registers of a thread, by default
    the target's usual one. With `strict` a kernel whose variables do not fit is an error. Kernels that are not lowered
    to vISA stay as they are.

        gpu.func @gemm() kernel attributes {visa.attributes = {Target = "cm"}} {

    becomes

        gpu.func @gemm() kernel attributes {visa.attributes = {Target = "cm"}, visa.pressure = 22 : i64,
                                            visa.registers = 128 : i64} {
    """

    grf: int = 0
    strict: bool = False

    def run_with(self, op: ir.Operation, bodies: PendingFunctions) -> None:
        for func in visa.kernels(op):
            if not visa.is_lowered(func, bodies):
                continue
            gpu = visa.target_of(func)
            allocation = allocate(visa.program_of(func, bodies), gpu, registers_of(func, gpu, self.grf))
            if self.strict and allocation.beyond:
                self.fail(func, f"does not fit: {allocation.report()}")
            i64 = ir.IntegerType.get_signless(64, func.context)
            func.attributes[visa.PRESSURE] = ir.IntegerAttr.get(i64, allocation.pressure)
            func.attributes[visa.REGISTERS] = ir.IntegerAttr.get(i64, allocation.registers)
