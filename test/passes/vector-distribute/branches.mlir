// RUN: xegpu-opt %s --vector-distribute | FileCheck %s

// Layouts propagate through every control flow op, which then passes on lanes' parts.

#l = #iree_vector_ext.nested_layout<subgroup_tile = [1], batch_tile = [1], outer_tile = [1], thread_tile = [16], element_tile = [2], subgroup_strides = [0], thread_strides = [1]>
// CHECK-LABEL: func.func @switch
func.func @switch(%v: vector<32xf32>, %n: index) -> vector<32xf32> {
  %x = iree_vector_ext.to_layout %v to layout(#l) : vector<32xf32>
  // CHECK: %[[X:.*]] = iree_vector_ext.to_simt
  // CHECK: %[[R:.*]] = scf.index_switch %{{.*}} -> vector<1x1x2xf32>
  // CHECK: %[[Y:.*]] = arith.addf %[[X]], %[[X]] : vector<1x1x2xf32>
  // CHECK-NEXT: scf.yield %[[Y]] : vector<1x1x2xf32>
  // CHECK: scf.yield %[[X]] : vector<1x1x2xf32>
  // CHECK: arith.mulf %[[R]], %[[R]]
  %r = scf.index_switch %n -> vector<32xf32>
  case 1 {
    %y = arith.addf %x, %x : vector<32xf32>
    scf.yield %y : vector<32xf32>
  }
  default {
    scf.yield %x : vector<32xf32>
  }
  %s = arith.mulf %r, %r : vector<32xf32>
  return %s : vector<32xf32>
}

// CHECK-LABEL: func.func @region
func.func @region(%v: vector<32xf32>, %c: i1) -> vector<32xf32> {
  %x = iree_vector_ext.to_layout %v to layout(#l) : vector<32xf32>
  // CHECK: %[[X:.*]] = iree_vector_ext.to_simt
  // CHECK: %[[R:.*]] = scf.execute_region -> vector<1x1x2xf32>
  // CHECK-NEXT: cf.cond_br %{{.*}}, ^[[YES:.*]](%[[X]] : vector<1x1x2xf32>), ^[[NO:.*]]
  // CHECK: ^[[YES]](%[[A:.*]]: vector<1x1x2xf32>):
  // CHECK-NEXT: scf.yield %[[A]]
  // CHECK: ^[[NO]]:
  // CHECK-NEXT: %[[Y:.*]] = arith.addf %[[X]], %[[X]]
  // CHECK-NEXT: scf.yield %[[Y]]
  // CHECK: iree_vector_ext.to_simd %[[R]]
  %r = scf.execute_region -> vector<32xf32> {
    cf.cond_br %c, ^yes(%x : vector<32xf32>), ^no
  ^yes(%a: vector<32xf32>):
    scf.yield %a : vector<32xf32>
  ^no:
    %y = arith.addf %x, %x : vector<32xf32>
    scf.yield %y : vector<32xf32>
  }
  return %r : vector<32xf32>
}

// CHECK-LABEL: func.func @blocks
func.func @blocks(%v: vector<32xf32>, %n: index) -> vector<32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = iree_vector_ext.to_layout %v to layout(#l) : vector<32xf32>
  // CHECK: %[[X:.*]] = iree_vector_ext.to_simt
  // CHECK: cf.br ^[[LOOP:.*]](%{{.*}}, %[[X]] : index, vector<1x1x2xf32>)
  // CHECK-NEXT: ^[[LOOP]](%{{.*}}: index, %[[A:.*]]: vector<1x1x2xf32>):
  // CHECK-NEXT: %[[B:.*]] = arith.addf %[[A]], %[[X]] : vector<1x1x2xf32>
  // CHECK: cf.cond_br %{{.*}}, ^[[LOOP]](%{{.*}}, %[[B]] : index, vector<1x1x2xf32>), ^[[END:.*]]
  // CHECK: ^[[END]]:
  // CHECK: iree_vector_ext.to_simd %[[B]]
  cf.br ^loop(%c0, %x : index, vector<32xf32>)
^loop(%i: index, %a: vector<32xf32>):
  %b = arith.addf %a, %x : vector<32xf32>
  %j = arith.addi %i, %c1 : index
  %go = arith.cmpi slt, %j, %n : index
  cf.cond_br %go, ^loop(%j, %b : index, vector<32xf32>), ^end
^end:
  return %b : vector<32xf32>
}
