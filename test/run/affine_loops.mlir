// RUN: xegpu-run %s arange:f32:4x8 i64:2 zeros:f32:4x8 --engine=both --print 2 | FileCheck %s

// Ops of `affine` are lowered by MLIR's own pass, also for the reference evaluator.

// CHECK: 2 =
// CHECK-NEXT: {{\[\[ *1. *0. *3. *0. *5. *0. *7. *0.\]}}
// CHECK-NEXT: {{ *\[ *9. *0. *11. *0. *13. *0. *15. *0.\]}}
// CHECK-NEXT: {{ *\[17. *16. *19. *18. *21. *20. *23. *22.\]}}
// CHECK-NEXT: {{ *\[25. *24. *27. *26. *29. *28. *31. *30.\]\]}}
#at = affine_map<(d0)[s0] -> (d0 + s0 floordiv 2)>
#lower = affine_set<(d0): (d0 - 2 >= 0)>
gpu.module @m {
  gpu.func @k(%x: memref<4x8xf32>, %n: index, %y: memref<4x8xf32>) kernel {
    affine.for %i = 0 to 4 {
      affine.for %j = 0 to 8 step 2 {
        %a = affine.load %x[%i, %j] : memref<4x8xf32>
        affine.if #lower(%i) {
          affine.store %a, %y[%i, %j + 1] : memref<4x8xf32>
        }
        %k = affine.apply #at(%j)[%n]
        %b = memref.load %x[%i, %k] : memref<4x8xf32>
        affine.store %b, %y[%i, %j] : memref<4x8xf32>
      }
    }
    gpu.return
  }
}
