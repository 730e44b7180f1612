// RUN: xegpu-opt %s --canonicalize --split-input-file | FileCheck %s

// A cast of an index to a narrower integer and back keeps the low bits alone.

// CHECK-LABEL: func.func @signed(
func.func @signed(%x: index) -> index {
  // CHECK: %[[LOW:.*]] = arith.index_castui %{{.*}} : index to i32
  // CHECK: %[[BACK:.*]] = arith.index_cast %[[LOW]] : i32 to index
  // CHECK: return %[[BACK]]
  %a = arith.index_cast %x : index to i32
  %b = arith.index_cast %a : i32 to index
  return %b : index
}

// -----

// CHECK-LABEL: func.func @unsigned(
func.func @unsigned(%x: vector<4xindex>) -> vector<4xindex> {
  // CHECK: %[[LOW:.*]] = arith.index_cast %{{.*}} : vector<4xindex> to vector<4xi8>
  // CHECK: %[[BACK:.*]] = arith.index_castui %[[LOW]] : vector<4xi8> to vector<4xindex>
  // CHECK: return %[[BACK]]
  %a = arith.index_castui %x : vector<4xindex> to vector<4xi8>
  %b = arith.index_castui %a : vector<4xi8> to vector<4xindex>
  return %b : vector<4xindex>
}

// -----

// The extension goes, and the cast behind it meets the first one.
// CHECK-LABEL: func.func @extended(
func.func @extended(%x: index) -> (index, index) {
  // CHECK: %[[LOW:.*]] = arith.index_castui %{{.*}} : index to i8
  // CHECK: arith.index_cast %[[LOW]] : i8 to index
  // CHECK: %[[UNSIGNED:.*]] = arith.index_cast %{{.*}} : index to i16
  // CHECK: arith.index_castui %[[UNSIGNED]] : i16 to index
  %a = arith.index_cast %x : index to i8
  %b = arith.extsi %a : i8 to i32
  %c = arith.index_cast %b : i32 to index
  %d = arith.index_castui %x : index to i16
  %e = arith.extui %d : i16 to i64
  %f = arith.index_castui %e : i64 to index
  return %c, %f : index, index
}

// -----

// The loop goes, and its cast meets the one behind it.
// CHECK-LABEL: func.func @both(
func.func @both(%x: vector<4xindex>) -> (vector<4xindex>, vector<4xindex>) {
  // CHECK: %[[WIDE:.*]] = arith.index_cast %{{.*}} : vector<4xindex> to vector<4xi64>
  // CHECK: %[[LOW:.*]] = arith.trunci %[[WIDE]] : vector<4xi64> to vector<4xi16>
  // CHECK-DAG: arith.index_cast %[[LOW]] : vector<4xi16> to vector<4xindex>
  // CHECK-DAG: arith.index_castui %[[LOW]] : vector<4xi16> to vector<4xindex>
  %true = arith.constant true
  %r = scf.if %true -> (vector<4xi16>) {
    %a = arith.index_cast %x : vector<4xindex> to vector<4xi16>
    scf.yield %a : vector<4xi16>
  } else {
    %c = arith.constant dense<3> : vector<4xi16>
    scf.yield %c : vector<4xi16>
  }
  %b = arith.index_cast %r : vector<4xi16> to vector<4xindex>
  %c = arith.index_castui %r : vector<4xi16> to vector<4xindex>
  return %b, %c : vector<4xindex>, vector<4xindex>
}

// -----

// Casts that lose nothing cancel each other.
// CHECK-LABEL: func.func @whole(
func.func @whole(%x: index, %y: i32) -> (index, i32) {
  // CHECK-NEXT: return %{{.*}}, %{{.*}} : index, i32
  %a = arith.index_cast %x : index to i64
  %b = arith.index_cast %a : i64 to index
  %c = arith.index_cast %y : i32 to index
  %d = arith.index_cast %c : index to i32
  return %b, %d : index, i32
}
