// RUN: xegpu-opt --split-input-file --verify-diagnostics %s

// expected-error @below {{a pointer must point to integers or floating-point numbers, but got '!tt.ptr<f32, "global">'}}
tt.func @f(%p: !tt.ptr<!tt.ptr<f32>>) { tt.return }

// -----

// expected-error @below {{the address space of a pointer must be global, descriptor or constant, but got 'shared'}}
tt.func @f(%p: !tt.ptr<f32, "shared">) { tt.return }

// -----

// expected-error @below {{a layout in shared memory belongs to TritonGPU's IR, and not to TTIR}}
tt.func @f(%p: !tt.tensordesc<16x16xf32, #shared>) { tt.return }

// -----

tt.func @f(%x: tensor<3xf32>) {
  // expected-error @below {{requires tensors of a power of two of elements, but got tensor<3xf32>}}
  %0 = tt.bitcast %x : tensor<3xf32> -> tensor<3xi32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{requires types of one width, but f32 has 32 bits and i64 has 64}}
  %0 = tt.bitcast %x : tensor<4xf32> -> tensor<4xi64>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{requires a rounding mode for f32 to f16}}
  // expected-note @below {{write ', rounding = rtne' or rtz}}
  %0 = tt.fp_to_fp %x : tensor<4xf32> -> tensor<4xf16>
  tt.return
}

// -----

tt.func @f(%p: tensor<4x!tt.ptr<f32>>, %i: tensor<8xi32>) {
  // expected-error @below {{requires operands and results of one shape}}
  %0 = tt.addptr %p, %i : tensor<4x!tt.ptr<f32>>, tensor<8xi32>
  tt.return
}

// -----

tt.func @f() {
  // expected-error @below {{requires a result of type tensor<8xi32>, but got tensor<4xi32>}}
  %0 = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<4xi32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4x8xf32>) {
  // expected-error @below {{'order' must be a permutation of [0, 1], but got [0, 0]}}
  %0 = tt.trans %x {order = array<i32: 0, 0>} : tensor<4x8xf32> -> tensor<4x8xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4x8xf32>) {
  // expected-error @below {{cannot change dimension 0 from size 4 to 8: only size 1 is repeated}}
  %0 = tt.broadcast %x : tensor<4x8xf32> -> tensor<8x8xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4x8xf32>) {
  // expected-error @below {{requires results of types tensor<4xf32>, but got tensor<8xf32>}}
  %0 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    tt.reduce.return %a : f32
  }) : (tensor<4x8xf32>) -> tensor<8xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4x8xf32>) {
  // expected-error @below {{requires a region of arguments f32, f32, but got f32}}
  %0 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32):
    tt.reduce.return %a : f32
  }) : (tensor<4x8xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<8xf32>) {
  %0 = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    // expected-error @below {{must return f32, but got f32, f32}}
    tt.scan.return %a, %b : f32, f32
  }) : (tensor<8xf32>) -> tensor<8xf32>
  tt.return
}

// -----

tt.func @f(%a: tensor<16x32xf16>, %b: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error @below {{'a' has 32 columns, but 'b' has 16 rows}}
  %0 = tt.dot %a, %b, %c : tensor<16x32xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  tt.return
}

// -----

tt.func @f(%p: !tt.ptr<f32>, %n: i32, %s: i64) {
  // expected-error @below {{requires 2 entries in 'shape' for !tt.tensordesc<16x16xf32>, but got 1}}
  %0 = tt.make_tensor_descriptor %p, [%n], [%s, %s] : <f32>, <16x16xf32>
  tt.return
}

// -----

tt.func @f(%d: !tt.tensordesc<16x16xf32>, %i: i32, %r: tensor<16xi32>) {
  // expected-error @below {{requires a descriptor with a block of one row, but got !tt.tensordesc<16x16xf32>}}
  %0 = tt.descriptor_gather %d[%r, %i] : (!tt.tensordesc<16x16xf32>, tensor<16xi32>, i32) -> tensor<16x16xf32>
  tt.return
}

// -----

tt.func @f(%p: !tt.ptr<f32>) {
  // expected-error @below {{'sem' must be relaxed or acquire, but got release}}
  %0 = tt.atomic_load release, gpu, %p : (!tt.ptr<f32>) -> f32
  tt.return
}

// -----

tt.func @f(%p: !tt.ptr<f32>, %x: i32) {
  // expected-error @below {{expected one of and, or, xor, add, fadd, max, min, umax, umin, exch, but got 'sub'}}
  %0 = tt.atomic_rmw sub, relaxed, gpu, %p, %x : (!tt.ptr<f32>, i32) -> f32
  tt.return
}

// -----

tt.func @f(%x: i32) -> i32 {
  %0 = arith.constant 1.0 : f32
  // expected-error @below {{type of return operand 0 ('f32') doesn't match function result type ('i32') in function @f}}
  tt.return %0 : f32
}

// -----

// expected-error @below {{unknown operation 'tt.lode'; did you mean 'tt.load'?}}
tt.func @f(%p: !tt.ptr<f32>) { %0 = tt.lode %p : !tt.ptr<f32> }

// -----

tt.func @f(%x: tensor<4x!tt.ptr<f32>>) {
  // expected-error @below {{cannot bitcast between pointers and numbers}}
  // expected-note @below {{use tt.int_to_ptr or tt.ptr_to_int}}
  %0 = tt.bitcast %x : tensor<4x!tt.ptr<f32>> -> tensor<4xi64>
  tt.return
}

// -----

tt.func @f() {
  // expected-error @below {{'end' must be greater than 'start', but got 4 and 4}}
  %0 = tt.make_range {end = 4 : i32, start = 4 : i32} : tensor<0xi32>
  tt.return
}

// -----

tt.func @f() {
  // expected-error @below {{requires a result of type tensor<4xi32>, but got tensor<4xi64>}}
  %0 = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi64>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{requires a number or pointer to repeat, and no tensor}}
  // expected-note @below {{use tt.broadcast for a tensor}}
  %0 = tt.splat %x : tensor<4xf32> -> tensor<4xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'axis' must be from 0 to 1, but got 2}}
  %0 = tt.expand_dims %x {axis = 2 : i32} : tensor<4xf32> -> tensor<4x1xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4x4xf32>, %i: tensor<4xi32>) {
  // expected-error @below {{requires indices of rank 2, but got tensor<4xi32>}}
  %0 = tt.gather %x[%i] {axis = 0 : i32} : (tensor<4x4xf32>, tensor<4xi32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4x4xf32>, %i: tensor<4x4xi32>) {
  // expected-error @below {{'axis' must be from 0 to 1, but got 2}}
  %0 = tt.gather %x[%i] {axis = 2 : i32} : (tensor<4x4xf32>, tensor<4x4xi32>) -> tensor<4x4xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4x4xf32>, %i: tensor<4x8xi32>) {
  // expected-error @below {{dimension 1 of the indices has size 8, but that of the operand has size 4}}
  %0 = tt.gather %x[%i] {axis = 0 : i32} : (tensor<4x4xf32>, tensor<4x8xi32>) -> tensor<4x8xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xf32>, %y: tensor<4xf16>) {
  // expected-error @below {{'min' must have the result's type tensor<4xf32>}}
  %0 = "tt.clampf"(%x, %y, %x) {propagateNan = 0 : i32} : (tensor<4xf32>, tensor<4xf16>, tensor<4xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @f(%p: tensor<4x!tt.ptr<f32>>, %o: tensor<4xf32>) {
  // expected-error @below {{accepts 'other' only with a mask}}
  %0 = "tt.load"(%p, %o) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<4x!tt.ptr<f32>>, tensor<4xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{must keep the element type f32, but got tensor<2x2xf16>}}
  %0 = tt.reshape %x : tensor<4xf32> -> tensor<2x2xf16>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{must keep the number of elements, but got 4 and 6}}
  %0 = tt.reshape %x : tensor<4xf32> -> tensor<2x3xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<2x1xf32>) {
  // expected-error @below {{requires a tensor of one element, but got tensor<2x1xf32>}}
  %0 = tt.unsplat %x : tensor<2x1xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<1xf32>) {
  // expected-error @below {{must keep the rank 1, but got tensor<1x4xf32>}}
  %0 = tt.broadcast %x : tensor<1xf32> -> tensor<1x4xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<2x4xf32>) {
  // expected-error @below {{cannot change dimension 0 from size 2 to 4: only size 1 is repeated}}
  %0 = tt.broadcast %x : tensor<2x4xf32> -> tensor<4x4xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{requires two operands of one type and a result of type tensor<8xf32>, but got tensor<4xf32>, tensor<4xf32> and tensor<4xf32>}}
  %0 = tt.cat %x, %x : tensor<4xf32> -> tensor<4xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{requires two operands of one type and a result of type tensor<4x2xf32>, but got tensor<4xf32>, tensor<4xf32> and tensor<2x4xf32>}}
  %0 = tt.join %x, %x : tensor<4xf32> -> tensor<2x4xf32>
  tt.return
}

// -----

tt.func @cat_of_two_types(%a: tensor<4xf32>, %b: tensor<4xi32>) {
  // expected-error @below {{requires two operands of one type and a result of type tensor<8xf32>, but got tensor<4xf32>, tensor<4xi32> and tensor<8xf32>}}
  %0 = "tt.cat"(%a, %b) : (tensor<4xf32>, tensor<4xi32>) -> tensor<8xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<2x4xf32>) {
  // expected-error @below {{requires a tensor whose last dimension has size 2, but got tensor<2x4xf32>}}
  %0, %1 = tt.split %x : tensor<2x4xf32> -> tensor<2xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4x2xf32>) {
  // expected-error @below {{requires results of type tensor<4xf32>, but got tensor<2xf32> and tensor<2xf32>}}
  %0, %1 = tt.split %x : tensor<4x2xf32> -> tensor<2xf32>
  tt.return
}

// -----

tt.func @f(%a: tensor<4xf32>, %c: tensor<4x4xf32>) {
  // expected-error @below {{requires matrices, or three dimensions, but got tensor<4xf32>, tensor<4x4xf32> and tensor<4x4xf32>}}
  %0 = tt.dot %a, %c, %c : tensor<4xf32> * tensor<4x4xf32> -> tensor<4x4xf32>
  tt.return
}

// -----

tt.func @f(%a: tensor<4x8xf32>, %c: tensor<4x4xf32>) {
  // expected-error @below {{'a' has 8 columns, but 'b' has 4 rows}}
  %0 = tt.dot %a, %c, %c : tensor<4x8xf32> * tensor<4x4xf32> -> tensor<4x4xf32>
  tt.return
}

// -----

tt.func @f(%d: !tt.tensordesc<1x4xf32>, %i: i32, %x: tensor<8xf32>) {
  // expected-error @below {{requires a tensor of type tensor<1x4xf32> for !tt.tensordesc<1x4xf32>, but got tensor<8xf32>}}
  tt.descriptor_store %d[%i, %i], %x : !tt.tensordesc<1x4xf32>, tensor<8xf32>
  tt.return
}

// -----

tt.func @f(%d: !tt.tensordesc<1x4xf32>, %i: i32, %rows: tensor<8xi32>) {
  // expected-error @below {{requires a tensor of 8 rows of !tt.tensordesc<1x4xf32>, but got tensor<4x4xf32>}}
  %0 = tt.descriptor_gather %d[%rows, %i] : (!tt.tensordesc<1x4xf32>, tensor<8xi32>, i32) -> tensor<4x4xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{requires a result of type tensor<1x4xf32>, but got tensor<4x1xf32>}}
  %0 = tt.expand_dims %x {axis = 0 : i32} : tensor<4xf32> -> tensor<4x1xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<2x4xf32>) {
  // expected-error @below {{requires a result of type tensor<4x2xf32>, but got tensor<2x4xf32>}}
  %0 = tt.trans %x {order = array<i32: 1, 0>} : tensor<2x4xf32> -> tensor<2x4xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xi64>) {
  // expected-error @below {{'tt.int_to_ptr' op requires operands and results of one shape, but got tensor<4xi64> and tensor<8x!tt.ptr<f32, "global">>}}
  %0 = tt.int_to_ptr %x : tensor<4xi64> -> tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

tt.func @f(%x: tensor<4x!tt.ptr<f32>>) {
  // expected-error @below {{'tt.ptr_to_int' op requires operands and results of one shape, but got tensor<4x!tt.ptr<f32, "global">> and i64}}
  %0 = tt.ptr_to_int %x : tensor<4x!tt.ptr<f32>> -> i64
  tt.return
}

// -----

tt.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'tt.bitcast' op requires operands and results of one shape, but got tensor<4xf32> and tensor<2x2xi32>}}
  %0 = tt.bitcast %x : tensor<4xf32> -> tensor<2x2xi32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'tt.fp_to_fp' op requires operands and results of one shape, but got tensor<4xf32> and tensor<8xf16>}}
  %0 = tt.fp_to_fp %x, rounding = rtne : tensor<4xf32> -> tensor<8xf16>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xi32>, %y: tensor<4xi64>) {
  // expected-error @below {{'y' must have the type of 'x', tensor<4xi32>, but got tensor<4xi64>}}
  %0 = "tt.mulhiui"(%x, %y) : (tensor<4xi32>, tensor<4xi64>) -> tensor<4xi32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'result' must have the type of 'x', tensor<4xf32>, but got tensor<4xf64>}}
  %0 = "tt.precise_divf"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf64>
  tt.return
}

// -----

tt.func @f(%p: !tt.ptr<f32>, %o: i32) {
  // expected-error @below {{the result must have the pointer's type !tt.ptr<f32, "global">, but got !tt.ptr<i32, "global">}}
  %0 = "tt.addptr"(%p, %o) : (!tt.ptr<f32>, i32) -> !tt.ptr<i32>
  tt.return
}

// -----

tt.func @f(%p: tensor<4x!tt.ptr<f32>>, %o: tensor<8xi32>) {
  // expected-error @below {{requires operands and results of one shape, but got tensor<4x!tt.ptr<f32, "global">> and tensor<8xi32>}}
  %0 = tt.addptr %p, %o : tensor<4x!tt.ptr<f32>>, tensor<8xi32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{requires operands and results of one shape, but got tensor<4xf32> and tensor<8xf32>}}
  %0 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_sinf"} : (tensor<4xf32>) -> tensor<8xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xi32>) {
  // expected-error @below {{requires operands and results of one shape, but got tensor<4xi32> and i32}}
  %0 = tt.elementwise_inline_asm "" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : tensor<4xi32> -> i32
  tt.return
}

// -----

tt.func @f() {
  // expected-error @below {{requires at least one operand}}
  "tt.map_elementwise"() <{pack = 1 : i32}> ({
    tt.map_elementwise.return
  }) : () -> ()
  tt.return
}

// -----

tt.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'pack' must be at least 1, but got 0}}
  %0 = "tt.map_elementwise"(%x) <{pack = 0 : i32}> ({
    tt.map_elementwise.return
  }) : (tensor<4xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @f(%p: !tt.ptr<f32>, %n: i32, %s: i64) {
  // expected-error @below {{the elements of the descriptor must be of the pointee's type f32, but got f16}}
  %0 = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s] : <f32>, <16x16xf16>
  tt.return
}

// -----

tt.func @f(%p: !tt.ptr<f32>, %n: i32, %s: i64) {
  // expected-error @below {{requires 2 entries in 'strides' for !tt.tensordesc<16x16xf32>, but got 1}}
  %0 = tt.make_tensor_descriptor %p, [%n, %n], [%s] : <f32>, <16x16xf32>
  tt.return
}

// -----

tt.func @f(%d: !tt.tensordesc<4x4xf32>, %i: i32) {
  // expected-error @below {{requires elements of type f32 for !tt.tensordesc<4x4xf32>, but got tensor<4x4xf16>}}
  %0 = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<4x4xf32> -> tensor<4x4xf16>
  tt.return
}

// -----

tt.func @f(%d: !tt.tensordesc<4x4xf32>, %i: i32) {
  // expected-error @below {{requires 2 indices for !tt.tensordesc<4x4xf32>, but got 1}}
  %0 = tt.descriptor_load %d[%i] : !tt.tensordesc<4x4xf32> -> tensor<4x4xf32>
  tt.return
}

// -----

tt.func @f(%d: !tt.tensordesc<1x4xf32>, %i: i32, %rows: tensor<2x4xi32>) {
  // expected-error @below {{requires rows of one dimension, but got tensor<2x4xi32>}}
  %0 = tt.descriptor_gather %d[%rows, %i] : (!tt.tensordesc<1x4xf32>, tensor<2x4xi32>, i32) -> tensor<8x4xf32>
  tt.return
}

// -----

tt.func @f(%d: !tt.tensordesc<1x4x4xf32>, %i: i32, %rows: tensor<8xi32>) {
  // expected-error @below {{requires a descriptor with a block of one row, but got !tt.tensordesc<1x4x4xf32>}}
  %0 = tt.descriptor_gather %d[%rows, %i] : (!tt.tensordesc<1x4x4xf32>, tensor<8xi32>, i32) -> tensor<8x4xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<f32>) {
  // expected-error @below {{requires tensors of at least one dimension, but got tensor<f32>}}
  %0 = tt.cat %x, %x : tensor<f32> -> tensor<2xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xi32>) {
  // expected-error @below {{requires a result of one dimension, but got tensor<2x2xi32>}}
  %0 = tt.histogram %x : tensor<4xi32> -> tensor<2x2xi32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xi32>, %m: tensor<2xi1>) {
  // expected-error @below {{requires a mask of type tensor<4xi1>, but got tensor<2xi1>}}
  %0 = "tt.histogram"(%x, %m) : (tensor<4xi32>, tensor<2xi1>) -> tensor<8xi32>
  tt.return
}

// -----

tt.func @f() {
  // expected-error @below {{requires at least one operand}}
  "tt.reduce"() <{axis = 0 : i32}> ({
    tt.reduce.return
  }) : () -> ()
  tt.return
}

// -----

tt.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'axis' must be from 0 to 0, but got 1}}
  %0 = "tt.scan"(%x) <{axis = 1 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    tt.scan.return %a : f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func @f(%x: tensor<4xf32>, %y: tensor<8xf32>) {
  // expected-error @below {{requires operands and results of one shape, but got tensor<4xf32> and tensor<8xf32>}}
  %0:2 = "tt.reduce"(%x, %y) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    tt.reduce.return %a, %b : f32, f32
  }) : (tensor<4xf32>, tensor<8xf32>) -> (f32, f32)
  tt.return
}

// -----

tt.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{requires a region of one block}}
  %0 = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    cf.br ^bb1
  ^bb1:
    tt.scan.return %a : f32
  }) : (tensor<8xf32>) -> tensor<8xf32>
  tt.return
}

// -----

tt.func @f(%a: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error @below {{the result must have the type of 'c', tensor<16x16xf32>, but got tensor<16x16xf16>}}
  %0 = "tt.dot"(%a, %a, %c) {inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32} : (tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf32>) -> tensor<16x16xf16>
  tt.return
}

// -----

tt.func @f(%a: tensor<16x16xf16>, %b: tensor<16x16xf32>) {
  // expected-error @below {{requires elements of 'a' and 'b' of one width, but got tensor<16x16xf16> and tensor<16x16xf32>}}
  %0 = tt.dot %a, %b, %b : tensor<16x16xf16> * tensor<16x16xf32> -> tensor<16x16xf32>
  tt.return
}

// -----

tt.func @f(%a: tensor<2x16x16xf32>, %b: tensor<4x16x16xf32>) {
  // expected-error @below {{'c' must be 2x16x16 for tensor<2x16x16xf32> times tensor<4x16x16xf32>, but got tensor<2x16x16xf32>}}
  %0 = tt.dot %a, %b, %a : tensor<2x16x16xf32> * tensor<4x16x16xf32> -> tensor<2x16x16xf32>
  tt.return
}

// -----

tt.func @f(%a: tensor<16x64xf8E5M2>, %s: tensor<16x4xi8>, %b: tensor<64x16xf8E5M2>, %t: tensor<16x2xi8>, %c: tensor<16x16xf32>) {
  // expected-error @below {{requires scales of as many elements each, but got tensor<16x4xi8> and tensor<16x2xi8>}}
  %0 = tt.dot_scaled %a scale %s, %b scale %t, %c lhs = e5m2 rhs = e5m2 {fastMath = false} : tensor<16x64xf8E5M2>, tensor<16x4xi8> * tensor<64x16xf8E5M2>, tensor<16x2xi8> -> tensor<16x16xf32>
  tt.return
}

// -----

tt.func @f(%a: tensor<16x64xf8E5M2>, %s: tensor<16x1xi8>, %b: tensor<64x16xf8E5M2>, %c: tensor<16x16xf32>) {
  // expected-error @below {{'a_scale' must be 16x2 or 16x4 for 64 elements along K, but got tensor<16x1xi8>}}
  %0 = tt.dot_scaled %a scale %s, %b, %c lhs = e5m2 rhs = e5m2 {fastMath = false} : tensor<16x64xf8E5M2>, tensor<16x1xi8> * tensor<64x16xf8E5M2> -> tensor<16x16xf32>
  tt.return
}

// -----

tt.func @f(%a: tensor<16x64xf8E5M2>, %b: tensor<64x32xf8E5M2>, %s: tensor<2x32xi8>, %c: tensor<16x32xf32>) {
  // expected-error @below {{'b_scale' must be 32x2 or 32x4 for 64 elements along K, but got tensor<2x32xi8>}}
  %0 = tt.dot_scaled %a, %b scale %s, %c lhs = e5m2 rhs = e5m2 {fastMath = false} : tensor<16x64xf8E5M2> * tensor<64x32xf8E5M2>, tensor<2x32xi8> -> tensor<16x32xf32>
  tt.return
}

// -----

tt.func @f(%a: tensor<16x64xf16>, %b: tensor<64x16xf8E5M2>, %c: tensor<16x16xf32>) {
  // expected-error @below {{'a' of type e5m2 must have elements f8E5M2, but got tensor<16x64xf16>}}
  %0 = tt.dot_scaled %a, %b, %c lhs = e5m2 rhs = e5m2 {fastMath = false} : tensor<16x64xf16> * tensor<64x16xf8E5M2> -> tensor<16x16xf32>
  tt.return
}

// -----

tt.func @f(%p: !tt.ptr<f32>, %x: f32) {
  // expected-error @below {{'sem' must be relaxed or release, but got acquire}}
  tt.atomic_store acquire, gpu, %p, %x : !tt.ptr<f32>
  tt.return
}

// -----

tt.func @f(%p: tensor<4x!tt.ptr<i32>>, %x: tensor<4xi32>) {
  // expected-error @below {{requires a result of type tensor<4xi1>, but got i1}}
  %0 = tt.atomic_poll relaxed, gpu, %p, %x : tensor<4x!tt.ptr<i32>>, tensor<4xi32> -> i1
  tt.return
}

// -----

tt.func @f(%p: !tt.ptr<i32>, %x: i32) {
  // expected-error @below {{'sem' must be relaxed or acquire, but got acq_rel}}
  %0 = tt.atomic_poll acq_rel, gpu, %p, %x : !tt.ptr<i32>, i32 -> i1
  tt.return
}

// -----

// A tensor of 2^20 elements is the largest one.
tt.func @f(%x: i32, %y: f32) {
  %0 = tt.splat %x : i32 -> tensor<1024x1024xi32>
  // expected-error @below {{requires tensors of at most 1048576 elements, but got tensor<2097152xf32>}}
  %1 = tt.splat %y : f32 -> tensor<2097152xf32>
  tt.return
}
