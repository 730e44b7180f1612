"""`xegpu-load-ahead`: the loads of a loop's next iteration are on their way while this one computes."""

from dataclasses import dataclass

from mlir import ir

from xegpu_py.ir.passes import Pass, register_pass


@register_pass("xegpu-load-ahead")
@dataclass
class XeGPULoadAhead(Pass):
    """Load the blocks of a loop's next iteration early.

    A block is loaded after the last use of the current iteration's block, into the same registers, so that no register
    is moved. The blocks of the first iteration are loaded before the loop, and the loop carries the loaded blocks. The
    last iteration loads blocks that are not used; elements outside of the matrix read as zero. Loops that write memory
    or wait for other threads are not changed, and neither are loads whose offsets depend on values from memory. It is
    an error if the values that a loop then carries do not fit the registers of a thread. `grf` is the number of these
    registers, by default the maximum of the target (`target`, or else `visa.target` of the kernel or of an op around
    it).

        %r:2 = scf.for %k = %c0 to %K step %c16 iter_args(%sum = %zero, %t = %t0) -> (...) {
          %a = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<8x16xbf16> -> vector<8x16xbf16>
          %next = xegpu.dpas %sum, %a, %b {mode = vc} : ...
          %u = xegpu.update_nd_offset %t, [0, 16] {mode = vc} : !xegpu.tensor_desc<8x16xbf16>
          scf.yield %next, %u : ...
        }

    becomes

        %a0 = xegpu.load_nd %t0 {mode = vc} : !xegpu.tensor_desc<8x16xbf16> -> vector<8x16xbf16>
        %r:3 = scf.for %k = %c0 to %K step %c16 iter_args(%sum = %zero, %t = %t0, %a = %a0) -> (...) {
          %next = xegpu.dpas %sum, %a, %b {mode = vc} : ...
          %u = xegpu.update_nd_offset %t, [0, 16] {mode = vc} : !xegpu.tensor_desc<8x16xbf16>
          %a1 = xegpu.load_nd %u {mode = vc} : !xegpu.tensor_desc<8x16xbf16> -> vector<8x16xbf16>
          scf.yield %next, %u, %a1 : ...
        }
    """

    target: str = ""
    grf: int = 0
    marked: bool = False

    def run(self, op: ir.Operation) -> None:
        # What rewrites ops is loaded when it is needed, since tools start without it.
        from xegpu_py.dialects import visa
        from xegpu_py.passes.common.gpu_functions import target_for
        from xegpu_py.passes.common.kernels import is_marked, registers_of

        for func in visa.kernels(op):
            if self.marked and not is_marked(func):
                continue
            from xegpu_py.passes.xegpu_load_ahead.loops import load_ahead

            target = target_for(func, self.target)
            load_ahead(func, target, registers_of(func, target, self.grf) or max(target.grf_counts), self.marked)
