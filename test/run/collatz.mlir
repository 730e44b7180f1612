// Steps of the Collatz sequence of the numbers 1 to N, one to a workgroup: while, if and a choice among cases, all on
// uniform values.

gpu.module @kernels {
  func.func @half(%x: i32) -> i32 {
    %c1 = arith.constant 1 : i32
    %h = arith.shrui %x, %c1 : i32
    return %h : i32
  }

  gpu.func @collatz(%out: memref<?xi32>) kernel {
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %three = arith.constant 3 : i32
    %zero = arith.constant 0 : i32
    %group = gpu.block_id x
    %start = arith.addi %group, %c1 : index
    %n = arith.index_cast %start : index to i32
    %end:2 = scf.while (%x = %n, %steps = %zero) : (i32, i32) -> (i32, i32) {
      %more = arith.cmpi ne, %x, %one : i32
      scf.condition(%more) %x, %steps : i32, i32
    } do {
    ^bb0(%x: i32, %steps: i32):
      %low = arith.andi %x, %one : i32
      %parity = arith.index_cast %low : i32 to index
      %next = scf.index_switch %parity -> i32
      case 0 {
        %h = func.call @half(%x) : (i32) -> i32
        scf.yield %h : i32
      }
      default {
        %t = arith.muli %x, %three : i32
        %u = arith.addi %t, %one : i32
        scf.yield %u : i32
      }
      %more = arith.addi %steps, %one : i32
      scf.yield %next, %more : i32, i32
    }
    memref.store %end#1, %out[%group] : memref<?xi32>
    gpu.return
  }
}
