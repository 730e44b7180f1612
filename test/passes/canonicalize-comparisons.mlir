// RUN: xegpu-opt %s --canonicalize | FileCheck %s

// Upstream's canonicalization ends the process where a converted integer is compared with a constant by one of these predicates.

// CHECK-LABEL: func.func @always
func.func @always(%x: i32, %v: vector<4xi8>) -> (i1, i1, vector<4xi1>) {
  // CHECK-DAG: %[[FALSE:.*]] = arith.constant false
  // CHECK-DAG: %[[TRUE:.*]] = arith.constant true
  // CHECK-DAG: %[[ALL:.*]] = arith.constant dense<true> : vector<4xi1>
  // CHECK: return %[[TRUE]], %[[FALSE]], %[[ALL]]
  %c = arith.constant 3.5 : f64
  %d = arith.constant dense<2.0> : vector<4xf16>
  %f = arith.sitofp %x : i32 to f64
  %u = arith.uitofp %v : vector<4xi8> to vector<4xf16>
  %0 = arith.cmpf true, %f, %c : f64
  %1 = arith.cmpf false, %f, %c : f64
  %2 = arith.cmpf true, %u, %d : vector<4xf16>
  return %0, %1, %2 : i1, i1, vector<4xi1>
}
