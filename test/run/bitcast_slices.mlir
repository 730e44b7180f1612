// Slices that do not begin at a multiple of the wider element's size.
// RUN: xegpu-run %s arange:i32:16 zeros:i32:8 arange:i8:32 zeros:i32:8 --engine both --print 1 --print 3 | FileCheck %s
// RUN: xegpu-run %s arange:i32:16 zeros:i32:8 arange:i8:32 zeros:i32:8 --engine reference --print 1 --print 3 | FileCheck %s

// CHECK: 1 =
// CHECK-NEXT: [ 3  5  7  9  4  6  8 10]
// CHECK: 3 =
// CHECK-NEXT: [ 67305985 134678021 117835012 185207048 100992003 168364039  50462976
// CHECK-NEXT:  117835012]

gpu.module @kernels {
  gpu.func @slices(%a: memref<16xi32>, %out: memref<8xi32>, %bytes: memref<32xi8>, %words: memref<8xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c6 = arith.constant 6 : index
    %x = vector.load %a[%c0] : memref<16xi32>, vector<16xi32>
    %odd = vector.extract_strided_slice %x {offsets = [3], sizes = [8], strides = [1]} : vector<16xi32> to vector<8xi32>
    %wide = vector.bitcast %odd : vector<8xi32> to vector<4xi64>
    %low = arith.trunci %wide : vector<4xi64> to vector<4xi32>
    vector.store %low, %out[%c0] : memref<8xi32>, vector<4xi32>
    %by = arith.constant dense<32> : vector<4xi64>
    %shifted = arith.shrui %wide, %by : vector<4xi64>
    %high = arith.trunci %shifted : vector<4xi64> to vector<4xi32>
    vector.store %high, %out[%c4] : memref<8xi32>, vector<4xi32>

    %b = vector.load %bytes[%c0] : memref<32xi8>, vector<32xi8>
    %b1 = vector.extract_strided_slice %b {offsets = [1], sizes = [8], strides = [1]} : vector<32xi8> to vector<8xi8>
    %w1 = vector.bitcast %b1 : vector<8xi8> to vector<2xi32>
    vector.store %w1, %words[%c0] : memref<8xi32>, vector<2xi32>
    %b2 = vector.extract_strided_slice %b {offsets = [4], sizes = [8], strides = [1]} : vector<32xi8> to vector<8xi8>
    %w2 = vector.bitcast %b2 : vector<8xi8> to vector<2xi32>
    vector.store %w2, %words[%c2] : memref<8xi32>, vector<2xi32>
    %b3 = vector.extract_strided_slice %b {offsets = [3], sizes = [8], strides = [1]} : vector<32xi8> to vector<8xi8>
    %w3 = vector.bitcast %b3 : vector<8xi8> to vector<2xi32>
    vector.store %w3, %words[%c4] : memref<8xi32>, vector<2xi32>
    %b0 = vector.extract_strided_slice %b {offsets = [0], sizes = [8], strides = [1]} : vector<32xi8> to vector<8xi8>
    %w0 = vector.bitcast %b0 : vector<8xi8> to vector<2xi32>
    vector.store %w0, %words[%c6] : memref<8xi32>, vector<2xi32>
    gpu.return
  }
}
