// The lower half of an index argument, which is the pitch of a matrix, is one number for all lanes.

// RUN: xegpu-opt --pass-pipeline='builtin.module(xegpu-to-visa-pipeline{target=pvcxt grf=128 unaligned=true optimize=true})' %s | xegpu-run - small:i8:2x64:seed=0 small:i8:16x2:seed=0 small:i8:5x64:seed=0 small:i8:16x4:seed=0 small:i8:5x64:seed=0 i32:5 i32:64 i32:0 small:i8:16x2:seed=0 --block 16 --engine both -o 0=%t.both.0.npy -o 1=%t.both.1.npy -o 2=%t.both.2.npy -o 3=%t.both.3.npy -o 4=%t.both.4.npy -o 8=%t.both.8.npy
// RUN: xegpu-run %s small:i8:2x64:seed=0 small:i8:16x2:seed=0 small:i8:5x64:seed=0 small:i8:16x4:seed=0 small:i8:5x64:seed=0 i32:5 i32:64 i32:0 small:i8:16x2:seed=0 --block 16 --engine reference -o 0=%t.reference.0.npy -o 1=%t.reference.1.npy -o 2=%t.reference.2.npy -o 3=%t.reference.3.npy -o 4=%t.reference.4.npy -o 8=%t.reference.8.npy
// RUN: cmp %t.both.0.npy %t.reference.0.npy
// RUN: cmp %t.both.1.npy %t.reference.1.npy
// RUN: cmp %t.both.2.npy %t.reference.2.npy
// RUN: cmp %t.both.3.npy %t.reference.3.npy
// RUN: cmp %t.both.4.npy %t.reference.4.npy
// RUN: cmp %t.both.8.npy %t.reference.8.npy

gpu.module @kernels {
  gpu.func @random(%a0: memref<2x64xi8>, %a1: memref<?x2xi8>, %a2: memref<5x64xi8>, %a3: memref<?x4xi8>, %a4: memref<?x?xi8>, %a5: index, %a6: index, %a7: index, %a8: memref<?x2xi8>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %v1 = gpu.thread_id x
    %v2 = gpu.block_dim x
    %v3 = gpu.block_id x
    %v4 = arith.muli %v3, %v2 : index
    %v5 = arith.addi %v4, %v1 : index
    %v6 = gpu.lane_id
    %v7 = arith.constant 0 : index
    %v8 = arith.constant 0 : index
    %v9 = xegpu.create_nd_tdesc %a0[%v7, %v8] : memref<2x64xi8> -> !xegpu.tensor_desc<1x32xi8, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>
    xegpu.prefetch_nd %v9 : !xegpu.tensor_desc<1x32xi8, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>
    %v10 = xegpu.load_nd %v9 {transpose = [1, 0]} : !xegpu.tensor_desc<1x32xi8, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>> -> vector<2x1xi8>
    %v11 = vector.shape_cast %v10 : vector<2x1xi8> to vector<2xi8>
    %v12 = vector.extract %v11[0] : i8 from vector<2xi8>
    %v13 = arith.constant 0 : index
    memref.store %v12, %a1[%v5, %v13] : memref<?x2xi8>
    %v14 = vector.extract %v11[1] : i8 from vector<2xi8>
    %v15 = arith.constant 1 : index
    memref.store %v14, %a1[%v5, %v15] : memref<?x2xi8>
    %v16 = gpu.block_id x
    %v17 = gpu.num_subgroups : index
    %v18 = gpu.subgroup_id : index
    %v19 = arith.muli %v16, %v17 : index
    %v20 = arith.addi %v19, %v18 : index
    %v21 = arith.constant 4 : index
    %v22 = arith.muli %v20, %v21 : index
    %v23 = xegpu.create_nd_tdesc %a2[%v22, 0] : memref<5x64xi8> -> !xegpu.tensor_desc<4x16xi8, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [4, 1]>>
    %v24 = xegpu.load_nd %v23 {vnni_axis = 0} : !xegpu.tensor_desc<4x16xi8, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [4, 1]>> -> vector<1x1x4xi8>
    %v25 = vector.shape_cast %v24 : vector<1x1x4xi8> to vector<4xi8>
    %v26 = vector.extract %v25[0] : i8 from vector<4xi8>
    %v27 = arith.constant 0 : index
    memref.store %v26, %a3[%v5, %v27] : memref<?x4xi8>
    %v28 = vector.extract %v25[1] : i8 from vector<4xi8>
    %v29 = arith.constant 1 : index
    memref.store %v28, %a3[%v5, %v29] : memref<?x4xi8>
    %v30 = vector.extract %v25[2] : i8 from vector<4xi8>
    %v31 = arith.constant 2 : index
    memref.store %v30, %a3[%v5, %v31] : memref<?x4xi8>
    %v32 = vector.extract %v25[3] : i8 from vector<4xi8>
    %v33 = arith.constant 3 : index
    memref.store %v32, %a3[%v5, %v33] : memref<?x4xi8>
    %v34 = memref.extract_aligned_pointer_as_index %a4 : memref<?x?xi8> -> index
    %v35 = arith.index_cast %v34 : index to i64
    %v36 = arith.constant -5 : index
    %v37 = xegpu.create_nd_tdesc %v35[%v36, %a7], [%a5, 64], [%a6, 1] : i64 -> !xegpu.tensor_desc<4x8xi8, #xegpu.sg_map<wi_layout = [4, 4], wi_data = [1, 1]>>
    xegpu.prefetch_nd %v37 : !xegpu.tensor_desc<4x8xi8, #xegpu.sg_map<wi_layout = [4, 4], wi_data = [1, 1]>>
    %v38 = xegpu.load_nd %v37 {transpose = [1, 0]} : !xegpu.tensor_desc<4x8xi8, #xegpu.sg_map<wi_layout = [4, 4], wi_data = [1, 1]>> -> vector<2x1xi8>
    %v39 = vector.shape_cast %v38 : vector<2x1xi8> to vector<2xi8>
    %v40 = vector.extract %v39[0] : i8 from vector<2xi8>
    %v41 = arith.constant 0 : index
    memref.store %v40, %a8[%v5, %v41] : memref<?x2xi8>
    %v42 = vector.extract %v39[1] : i8 from vector<2xi8>
    %v43 = arith.constant 1 : index
    memref.store %v42, %a8[%v5, %v43] : memref<?x2xi8>
    gpu.return
  }
}
