// What host code may have: each dialect, numbers of 16 bits, globals, library functions.
// RUN: xegpu-run %s -e main | FileCheck %s

memref.global "private" constant @table : memref<2x3xf32> = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]>
memref.global "private" @state : memref<2xi64> = dense<[5, 6]>

func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}
func.func private @printMemrefBF16(memref<*xbf16>) attributes {llvm.emit_c_interface}
func.func private @printMemrefF16(memref<*xf16>) attributes {llvm.emit_c_interface}
func.func private @printMemrefI8(memref<*xi8>)
func.func private @printMemrefInd(memref<*xindex>)
func.func private @printMemrefF64(memref<*xf64>)
func.func private @printMemref1dF32(memref<?xf32>) attributes {llvm.emit_c_interface}
func.func private @printMemrefShapeF32(memref<*xf32>)
func.func private @verifyMemRefF32(memref<*xf32>, memref<*xf32>) -> i64 attributes {llvm.emit_c_interface}
func.func private @printI64(i64)
func.func private @printF64(f64)
func.func private @printNewline()
func.func private @rtclock() -> f64
func.func private @fillResource1DF16(memref<*xf16>, f32) attributes {llvm.emit_c_interface}
func.func private @fillResource1DRandomF32(memref<*xf32>, f32, f32, i1)
func.func private @printAllcloseF16(memref<*xf16>, memref<*xf32>)
func.func private @printMaxErrorF32(memref<*xf32>, memref<*xf32>)
func.func private @gemmF16F16F32(memref<*xf16>, memref<*xf16>, memref<*xf32>)
// It is never called, so nobody has to have it.
func.func private @unknown()

func.func @factorial(%n: i64) -> i64 {
  %one = arith.constant 1 : i64
  cf.br ^loop(%n, %one : i64, i64)
^loop(%i: i64, %product: i64):
  %more = arith.cmpi sgt, %i, %one : i64
  cf.cond_br %more, ^body, ^done
^body:
  %next = arith.muli %product, %i : i64
  %less = arith.subi %i, %one : i64
  cf.br ^loop(%less, %next : i64, i64)
^done:
  return %product : i64
}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %true = arith.constant true

  %table = memref.get_global @table : memref<2x3xf32>
  %column = memref.subview %table[0, 1] [2, 2] [1, 1] : memref<2x3xf32> to memref<2x2xf32, strided<[3, 1], offset: 1>>
  %u0 = memref.cast %column : memref<2x2xf32, strided<[3, 1], offset: 1>> to memref<*xf32>
  // CHECK: rank = 2 offset = 1 sizes = [2, 2] strides = [3, 1] data =
  // CHECK-NEXT: {{^\[\[}}2,   3],
  // CHECK-NEXT: {{^}} [5,   6{{\]\]$}}
  call @printMemrefF32(%u0) : (memref<*xf32>) -> ()
  // CHECK-NEXT: Unranked Memref base@ = 0x{{[0-9a-f]+}} rank = 2 offset = 1 sizes = [2, 2] strides = [3, 1]{{$}}
  call @printMemrefShapeF32(%u0) : (memref<*xf32>) -> ()
  %packed = memref.alloc() : memref<2x2xf32>
  memref.copy %column, %packed : memref<2x2xf32, strided<[3, 1], offset: 1>> to memref<2x2xf32>
  %u1 = memref.cast %packed : memref<2x2xf32> to memref<*xf32>
  // CHECK: {{^\[\[}}2,   3],
  call @printMemrefF32(%u1) : (memref<*xf32>) -> ()

  %state = memref.get_global @state : memref<2xi64>
  %five = memref.load %state[%c0] : memref<2xi64>
  %product = call @factorial(%five) : (i64) -> i64
  // CHECK: {{^}}120{{$}}
  call @printI64(%product) : (i64) -> ()
  call @printNewline() : () -> ()

  // linalg on buffers, affine, math, bf16 and f16.
  %a = memref.alloc() : memref<4x4xbf16>
  %b = memref.alloc() : memref<4x4xbf16>
  %third = arith.constant 0.333 : bf16
  linalg.fill ins(%third : bf16) outs(%a : memref<4x4xbf16>)
  %zero = arith.constant 0.0 : bf16
  linalg.fill ins(%zero : bf16) outs(%b : memref<4x4xbf16>)
  linalg.matmul ins(%a, %a : memref<4x4xbf16>, memref<4x4xbf16>) outs(%b : memref<4x4xbf16>)
  %ub = memref.cast %b : memref<4x4xbf16> to memref<*xbf16>
  // CHECK: {{^\[\[}}0.441406,   0.441406,
  call @printMemrefBF16(%ub) : (memref<*xbf16>) -> ()
  %e = memref.alloc() : memref<4xf16>
  affine.for %i = 0 to 4 {
    %int = arith.index_cast %i : index to i32
    %x = arith.sitofp %int : i32 to f16
    %y = math.exp %x : f16
    %wide = arith.extf %y : f16 to f32
    %root = math.sqrt %wide : f32
    %erf = math.erf %root : f32
    %sum = arith.addf %root, %erf : f32
    %narrow = arith.truncf %sum : f32 to f16
    affine.store %narrow, %e[%i] : memref<4xf16>
  }
  %ue = memref.cast %e : memref<4xf16> to memref<*xf16>
  // CHECK: [1.84277,  2.62891,  3.71875,  5.48047]
  call @printMemrefF16(%ue) : (memref<*xf16>) -> ()

  // Vectors, and what vector.print makes.
  %v = vector.load %packed[%c0, %c0] : memref<2x2xf32>, vector<2xf32>
  %w = arith.mulf %v, %v : vector<2xf32>
  // CHECK: ( 4, 9 )
  vector.print %w : vector<2xf32>
  %s = vector.reduction <add>, %w : vector<2xf32> into f32
  // CHECK-NEXT: sum 13
  vector.print str "sum "
  vector.print %s : f32

  // Library functions.
  %nan = arith.constant 0x7FC00000 : f32
  %inf = arith.constant 0xFF800000 : f32
  memref.store %nan, %packed[%c0, %c0] : memref<2x2xf32>
  memref.store %inf, %packed[%c0, %c1] : memref<2x2xf32>
  // CHECK: {{^\[\[}}nan,   -inf],
  call @printMemrefF32(%u1) : (memref<*xf32>) -> ()
  // CHECK: {{^}}2{{$}}
  %wrong = call @verifyMemRefF32(%u1, %u1) : (memref<*xf32>, memref<*xf32>) -> i64
  vector.print %wrong : i64
  %time = call @rtclock() : () -> f64
  %old = arith.constant 1.5e9 : f64
  %later = arith.cmpf ogt, %time, %old : f64
  // CHECK: 1
  vector.print %later : i1

  %h = memref.alloc() : memref<4x4xf16>
  %f = memref.alloc() : memref<4x4xf32>
  %g = memref.alloc() : memref<4x4xf32>
  %uh = memref.cast %h : memref<4x4xf16> to memref<*xf16>
  %uf = memref.cast %f : memref<4x4xf32> to memref<*xf32>
  %ug = memref.cast %g : memref<4x4xf32> to memref<*xf32>
  %half = arith.constant 0.5 : f32
  %three = arith.constant 3.0 : f32
  %none = arith.constant 0.0 : f32
  call @fillResource1DF16(%uh, %half) : (memref<*xf16>, f32) -> ()
  linalg.fill ins(%none : f32) outs(%f : memref<4x4xf32>)
  call @gemmF16F16F32(%uh, %uh, %uf) : (memref<*xf16>, memref<*xf16>, memref<*xf32>) -> ()
  // CHECK: {{^\[\[}}1,   1,   1,   1],
  call @printMemrefF32(%uf) : (memref<*xf32>) -> ()
  // CHECK: [ALLCLOSE: FALSE]
  call @printAllcloseF16(%uh, %uf) : (memref<*xf16>, memref<*xf32>) -> ()
  linalg.fill ins(%half : f32) outs(%f : memref<4x4xf32>)
  // CHECK: [ALLCLOSE: TRUE]
  call @printAllcloseF16(%uh, %uf) : (memref<*xf16>, memref<*xf32>) -> ()
  // Random numbers are the same in each run; whole ones have no fraction.
  call @fillResource1DRandomF32(%ug, %none, %three, %true) : (memref<*xf32>, f32, f32, i1) -> ()
  // CHECK: {{^\[\[}}{{[012]}},   {{[012]}},
  call @printMemrefF32(%ug) : (memref<*xf32>) -> ()
  linalg.fill ins(%three : f32) outs(%g : memref<4x4xf32>)
  memref.store %half, %g[%c0, %c1] : memref<4x4xf32>
  // CHECK: Max absolute error 2.5 at idx=0 (i=3, j=0.5)
  // CHECK-NEXT: Max relative error 0.833333 at idx=0 (i=3, j=0.5)
  call @printMaxErrorF32(%ug, %uf) : (memref<*xf32>, memref<*xf32>) -> ()

  %bytes = memref.alloc() : memref<3xi8>
  %letter = arith.constant 65 : i8
  linalg.fill ins(%letter : i8) outs(%bytes : memref<3xi8>)
  %ubytes = memref.cast %bytes : memref<3xi8> to memref<*xi8>
  // MLIR's library prints bytes as characters, and so does this.
  // CHECK: [A,  A,  A]
  call @printMemrefI8(%ubytes) : (memref<*xi8>) -> ()
  %point = memref.alloc() : memref<f64>
  %third64 = arith.constant 0.33333333333 : f64
  memref.store %third64, %point[] : memref<f64>
  %upoint = memref.cast %point : memref<f64> to memref<*xf64>
  // CHECK: rank = 0 offset = 0 sizes = [] strides = [] data =
  // CHECK-NEXT: [0.333333]
  call @printMemrefF64(%upoint) : (memref<*xf64>) -> ()
  %deep = memref.alloc() : memref<2x1x2xindex>
  linalg.fill ins(%c4 : index) outs(%deep : memref<2x1x2xindex>)
  %udeep = memref.cast %deep : memref<2x1x2xindex> to memref<*xindex>
  // CHECK: {{^\[\[\[}}4,    4{{\]\]}},
  // CHECK-NEXT: {{^}} {{\[\[}}4,    4{{\]\]\]}}
  call @printMemrefInd(%udeep) : (memref<*xindex>) -> ()
  return
}
