// RUN: xegpu-run %s --kernel accesses arange:f32:20 i64:5 zeros:f32:20 --engine=both --print 2 | FileCheck %s --check-prefix=ACCESSES
// RUN: xegpu-run %s --kernel accesses arange:f32:20 i64:5 zeros:f32:20 --engine=reference --print 2 | FileCheck %s --check-prefix=ACCESSES
// RUN: xegpu-run %s --kernel reductions arange:f32:16 i64:5 zeros:f32:3 --engine=both --print 2 | FileCheck %s --check-prefix=REDUCTIONS
// RUN: xegpu-run %s --kernel reductions arange:f32:16 i64:5 zeros:f32:3 --engine=reference --print 2 | FileCheck %s --check-prefix=REDUCTIONS

// Ops under a `vector.mask`. Elements that the mask leaves out are those of the padding or the pass-through value.

// ACCESSES: 2 =
// ACCESSES-NEXT: {{\[ *0. *2. *4. *6. *7. *100. *100. *100. *4. *-1. *-1. *-1. *0. *2.}}
// ACCESSES-NEXT: {{ *4. *6. *8. *100. *100. *100.\]}}
// REDUCTIONS: 2 =
// REDUCTIONS-NEXT: {{\[10. *4. *15.\]}}
gpu.module @m {
gpu.func @accesses(%a: memref<20xf32>, %n: index, %out: memref<20xf32>) kernel {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %z = arith.constant -1.0 : f32
  %hundred = arith.constant dense<100.0> : vector<8xf32>
  %mask = vector.create_mask %n : vector<8xi1>
  %all = vector.create_mask %c8 : vector<8xi1>
  %c12 = arith.constant 12 : index
  %places = arith.constant dense<[0, 2, 4, 6, 8, 10, 12, 14]> : vector<8xindex>
  %some = vector.create_mask %c3 : vector<8xi1>
  %x = vector.mask %mask { vector.transfer_read %a[%c0], %z {in_bounds = [true]} : memref<20xf32>, vector<8xf32> } : vector<8xi1> -> vector<8xf32>
  %y = vector.mask %mask { vector.gather %a[%c0] [%places], %some, %x : memref<20xf32>, vector<8xindex>, vector<8xi1>, vector<8xf32> into vector<8xf32> } : vector<8xi1> -> vector<8xf32>
  %far = vector.mask %mask, %hundred { vector.transfer_read %a[%c3], %z {in_bounds = [true]} : memref<20xf32>, vector<8xf32> } : vector<8xi1> -> vector<8xf32>
  %last = vector.extract_strided_slice %x {offsets = [4], sizes = [4], strides = [1]} : vector<8xf32> to vector<4xf32>
  %r = arith.select %some, %y, %far : vector<8xi1>, vector<8xf32>
  vector.store %last, %out[%c8] : memref<20xf32>, vector<4xf32>
  %z8 = vector.mask %mask { vector.gather %a[%c0] [%places], %all, %far : memref<20xf32>, vector<8xindex>, vector<8xi1>, vector<8xf32> into vector<8xf32> } : vector<8xi1> -> vector<8xf32>
  vector.store %z8, %out[%c12] : memref<20xf32>, vector<8xf32>
  vector.mask %all { vector.transfer_write %r, %out[%c0] {in_bounds = [true]} : vector<8xf32>, memref<20xf32> } : vector<8xi1>
  gpu.return
}
gpu.func @reductions(%a: memref<16xf32>, %n: index, %out: memref<3xf32>) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %x = vector.load %a[%c0] : memref<16xf32>, vector<16xf32>
  %mask = vector.create_mask %n : vector<16xi1>
  %sum = vector.mask %mask { vector.reduction <add>, %x : vector<16xf32> into f32 } : vector<16xi1> -> f32
  %most = vector.mask %mask { vector.reduction <maximumf>, %x : vector<16xf32> into f32 } : vector<16xi1> -> f32
  %rows = vector.shape_cast %x : vector<16xf32> to vector<2x8xf32>
  %left = vector.create_mask %c2, %c1 : vector<2x8xi1>
  %start = arith.constant dense<7.0> : vector<8xf32>
  %columns = vector.mask %left { vector.multi_reduction <add>, %rows, %start [0] : vector<2x8xf32> to vector<8xf32> } : vector<2x8xi1> -> vector<8xf32>
  %first = vector.extract %columns[0] : f32 from vector<8xf32>
  memref.store %sum, %out[%c0] : memref<3xf32>
  memref.store %most, %out[%c1] : memref<3xf32>
  memref.store %first, %out[%c2] : memref<3xf32>
  gpu.return
}
}
