// RUN: xegpu-opt %s --vector-lower-contract --canonicalize | FileCheck %s

gpu.module @k {
  // One step for each index of k. Products of floats are added by fma.
  // CHECK-LABEL: gpu.func @matmul
  // CHECK: %[[A0:.+]] = vector.extract_strided_slice %{{.+}} {offsets = [0, 0], sizes = [8, 1], strides = [1, 1]} : vector<8x2xf32> to vector<8x1xf32>
  // CHECK: %[[A0B:.+]] = vector.broadcast %[[A0]] : vector<8x1xf32> to vector<8x16xf32>
  // CHECK: %[[B0:.+]] = vector.extract %{{.+}}[0] : vector<16xf32> from vector<2x16xf32>
  // CHECK: %[[B0B:.+]] = vector.broadcast %{{.+}} : {{.+}} to vector<8x16xf32>
  // CHECK: %[[C0:.+]] = math.fma %[[A0B]], %[[B0B]], %{{.+}} : vector<8x16xf32>
  // CHECK: math.fma %{{.+}}, %{{.+}}, %[[C0]] : vector<8x16xf32>
  // CHECK-NOT: vector.contract
  gpu.func @matmul(%A: memref<8x2xf32>, %B: memref<2x16xf32>, %C: memref<8x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %a = vector.load %A[%c0, %c0] : memref<8x2xf32>, vector<8x2xf32>
    %b = vector.load %B[%c0, %c0] : memref<2x16xf32>, vector<2x16xf32>
    %c = vector.load %C[%c0, %c0] : memref<8x16xf32>, vector<8x16xf32>
    %d = vector.contract {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                       affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>
    } %a, %b, %c : vector<8x2xf32>, vector<2x16xf32> into vector<8x16xf32>
    vector.store %d, %C[%c0, %c0] : memref<8x16xf32>, vector<8x16xf32>
    gpu.return
  }

  // A scalar product of narrower numbers.
  // CHECK-LABEL: gpu.func @dot
  // CHECK: arith.extf %{{.+}} : vector<4xf16> to vector<4xf32>
  // CHECK-COUNT-4: math.fma %{{.+}} : f32
  gpu.func @dot(%A: memref<4xf16>, %C: memref<1xf32>) kernel {
    %c0 = arith.constant 0 : index
    %a = vector.load %A[%c0] : memref<4xf16>, vector<4xf16>
    %c = memref.load %C[%c0] : memref<1xf32>
    %d = vector.contract {
      indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> (k)>, affine_map<(k) -> ()>],
      iterator_types = ["reduction"], kind = #vector.kind<add>
    } %a, %a, %c : vector<4xf16>, vector<4xf16> into f32
    memref.store %d, %C[%c0] : memref<1xf32>
    gpu.return
  }
  // Masked-off products are not added. Masks have all iteration dimensions, here m, n and k.
  // CHECK-LABEL: gpu.func @masked
  // CHECK: %[[M:.+]] = vector.transpose %{{.+}}, [2, 0, 1] : vector<8x16x2xi1> to vector<2x8x16xi1>
  // CHECK: %[[C0:.+]] = math.fma %{{.+}}, %{{.+}}, %[[C:.+]] : vector<8x16xf32>
  // CHECK: %[[M0:.+]] = vector.extract %[[M]][0] : vector<8x16xi1> from vector<2x8x16xi1>
  // CHECK: %[[S0:.+]] = arith.select %[[M0]], %[[C0]], %[[C]] : vector<8x16xi1>, vector<8x16xf32>
  // CHECK: %[[C1:.+]] = math.fma %{{.+}}, %{{.+}}, %[[S0]] : vector<8x16xf32>
  // CHECK: %[[M1:.+]] = vector.extract %[[M]][1] : vector<8x16xi1> from vector<2x8x16xi1>
  // CHECK: arith.select %[[M1]], %[[C1]], %[[S0]] : vector<8x16xi1>, vector<8x16xf32>
  // CHECK-NOT: vector.mask
  gpu.func @masked(%A: memref<8x2xf32>, %B: memref<2x16xf32>, %C: memref<8x16xf32>, %D: memref<8x16x2xi8>) kernel {
    %c0 = arith.constant 0 : index
    %a = vector.load %A[%c0, %c0] : memref<8x2xf32>, vector<8x2xf32>
    %b = vector.load %B[%c0, %c0] : memref<2x16xf32>, vector<2x16xf32>
    %c = vector.load %C[%c0, %c0] : memref<8x16xf32>, vector<8x16xf32>
    %bytes = vector.load %D[%c0, %c0, %c0] : memref<8x16x2xi8>, vector<8x16x2xi8>
    %some = arith.trunci %bytes : vector<8x16x2xi8> to vector<8x16x2xi1>
    %d = vector.mask %some { vector.contract {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>
    } %a, %b, %c : vector<8x2xf32>, vector<2x16xf32> into vector<8x16xf32> } : vector<8x16x2xi1> -> vector<8x16xf32>
    vector.store %d, %C[%c0, %c0] : memref<8x16xf32>, vector<8x16xf32>
    gpu.return
  }

  // An outer product is one step, by fma or another combining op; so is a product with a scalar.
  // CHECK-LABEL: gpu.func @outer
  // CHECK: %[[P:.+]] = arith.mulf %{{.+}}, %{{.+}} : vector<8x16xf32>
  // CHECK: %[[Q:.+]] = math.fma %{{.+}}, %{{.+}}, %[[P]] : vector<8x16xf32>
  // CHECK: %[[PRODUCT:.+]] = arith.mulf %{{.+}}, %{{.+}} : vector<8x16xf32>
  // CHECK: %[[LEAST:.+]] = arith.minimumf %[[Q]], %[[PRODUCT]] : vector<8x16xf32>
  // CHECK: %[[R:.+]] = arith.select %{{.+}}, %[[LEAST]], %[[Q]] : vector<8x16xi1>, vector<8x16xf32>
  // CHECK: vector.store %[[R]]
  // CHECK: %[[S:.+]] = vector.broadcast %{{.+}} : f32 to vector<16xf32>
  // CHECK: math.fma %{{.+}}, %[[S]], %{{.+}} : vector<16xf32>
  gpu.func @outer(%A: memref<8xf32>, %B: memref<16xf32>, %C: memref<8x16xf32>, %m: vector<8x16xi1>) kernel {
    %c0 = arith.constant 0 : index
    %a = vector.load %A[%c0] : memref<8xf32>, vector<8xf32>
    %b = vector.load %B[%c0] : memref<16xf32>, vector<16xf32>
    %s = memref.load %A[%c0] : memref<8xf32>
    %p = vector.outerproduct %a, %b : vector<8xf32>, vector<16xf32>
    %q = vector.outerproduct %a, %b, %p : vector<8xf32>, vector<16xf32>
    %r = vector.mask %m {
      vector.outerproduct %a, %b, %q {kind = #vector.kind<minimumf>} : vector<8xf32>, vector<16xf32>
    } : vector<8x16xi1> -> vector<8x16xf32>
    vector.store %r, %C[%c0, %c0] : memref<8x16xf32>, vector<8x16xf32>
    %t = vector.outerproduct %b, %s, %b : vector<16xf32>, f32
    vector.store %t, %B[%c0] : memref<16xf32>, vector<16xf32>
    gpu.return
  }

  // Ops under a mask take it as an operand, or combine the identity.
  // CHECK-LABEL: gpu.func @other_masked
  // CHECK-SAME: %[[A:[a-z0-9]+]]: memref<16xf32>, %[[M:[a-z0-9]+]]: vector<16xi1>, %[[OWN:[a-z0-9]+]]: vector<16xi1>, %[[P:[a-z0-9]+]]:
  // CHECK-DAG: %[[ZEROS:.+]] = arith.constant dense<-0.000000e+00> : vector<16xf32>
  // CHECK: %[[X:.+]] = vector.transfer_read %[[A]][%{{.+}}], %{{.+}}, %[[M]] {in_bounds = [true]}
  // CHECK: %[[READ:.+]] = arith.select %[[M]], %[[X]], %[[P]] : vector<16xi1>, vector<16xf32>
  // CHECK: %[[BOTH:.+]] = arith.andi %[[OWN]], %[[M]] : vector<16xi1>
  // CHECK: %[[GATHERED:.+]] = vector.gather %[[A]][%{{.+}}] [%{{.+}}], %[[BOTH]], %[[READ]]
  // CHECK: %[[CHOSEN:.+]] = arith.select %[[M]], %[[GATHERED]], %[[ZEROS]] : vector<16xi1>, vector<16xf32>
  // CHECK: vector.reduction <add>, %[[CHOSEN]] : vector<16xf32> into f32
  // CHECK: vector.transfer_write %[[GATHERED]], %[[A]][%{{.+}}], %[[M]] {in_bounds = [true]}
  // CHECK-NOT: vector.mask
  gpu.func @other_masked(
      %A: memref<16xf32>, %m: vector<16xi1>, %own: vector<16xi1>, %p: vector<16xf32>, %at: vector<16xindex>) kernel {
    %c0 = arith.constant 0 : index
    %z = arith.constant 0.0 : f32
    %x = vector.mask %m, %p { vector.transfer_read %A[%c0], %z {in_bounds = [true]} : memref<16xf32>, vector<16xf32> }
      : vector<16xi1> -> vector<16xf32>
    %y = vector.mask %m {
      vector.gather %A[%c0] [%at], %own, %x : memref<16xf32>, vector<16xindex>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    } : vector<16xi1> -> vector<16xf32>
    %sum = vector.mask %m { vector.reduction <add>, %y : vector<16xf32> into f32 } : vector<16xi1> -> f32
    memref.store %sum, %A[%c0] : memref<16xf32>
    vector.mask %m { vector.transfer_write %y, %A[%c0] {in_bounds = [true]} : vector<16xf32>, memref<16xf32> } : vector<16xi1>
    gpu.return
  }
}
