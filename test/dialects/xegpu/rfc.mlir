// Every example of the RFC's table and every code block of its text, in the RFC's own spelling. Only typing errors are
// corrected; each place is marked, and docs/xegpu.md lists them with the reasons.

// RUN: xegpu-opt --allow-unregistered-dialect %s | FileCheck %s
// RUN: xegpu-opt --allow-unregistered-dialect %s | xegpu-opt --allow-unregistered-dialect | FileCheck %s
// RUN: xegpu-opt --allow-unregistered-dialect --mlir-print-op-generic %s | xegpu-opt --allow-unregistered-dialect | FileCheck %s

#sg_map_a = xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>
#sg_map_b = xegpu.sg_map<wi_layout = [1, 16], wi_data = [2, 1]>
#sg_map_c = xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>

// CHECK-LABEL: func.func @table
func.func @table(%mem_addr: i64, %offset: vector<16xindex>, %mask: vector<16xi1>, %value: vector<16xbf16>,
                 %tile_offset0: index, %base_shape: index, %base_strides: index, %c1: index,
                 %c: vector<8x16xf32>, %a: vector<8x8x2xbf16>, %b: vector<8x16x2xbf16>, %n: ui8) {
  // create_tdesc.  Corrected: "mode = vc" added (also to every other op that is in VC mode only), memory_scope and
  // #scattered are one attribute's settings.
  // CHECK: xegpu.create_tdesc %{{.*}}, %{{.*}} {mode = vc} : i64, vector<16xindex> -> !xegpu.tensor_desc<16xbf16, #xegpu.tdesc_attr<memory_scope = slm, #xegpu.scattered>>
  %scatter_tdesc1 = XeGPU.create_tdesc %mem_addr, %offset {mode = vc} : int64, Vector<16 x index> -> tensor_desc<16 x bf16, #scattered, memory_scope=slm, chunk_size_per_lane=1>
  // The descriptors that the following lines use.
  %scatter_tdesc2 = XeGPU.create_tdesc %mem_addr, %offset {chunk_size_per_lane = 8, mode = vc} : int64, Vector<16 x index> -> tensor_desc<16x8xbf16, #Scattered>
  %scatter_tdesc = XeGPU.create_tdesc %mem_addr, %offset {mode = vc} : int64, Vector<16 x index> -> tensor_desc<16xbf16, #scattered>
  // CHECK: xegpu.load_gather %{{.*}}, %{{.*}} {mode = vc, transpose = [1, 0], l1_hint = cached, l2_hint = uncached} : !xegpu.tensor_desc<16x8xbf16, #xegpu.scattered>, vector<16xi1> -> vector<8x16xbf16>
  %result = XeGPU.load_gather %scatter_tdesc2, %mask {L1 = cached, L2 = uncached, transpose=[1,0], mode = vc} : tensor_desc<16x8xbf16, #Scattered>, vector<16xi1> -> vector<8x16xbf16>
  // Corrected: cached is not a valid hint for a write.
  // CHECK: xegpu.store_scatter %{{.*}}, %{{.*}}, %{{.*}} {mode = vc, l1_hint = write_back, l2_hint = uncached} : vector<16xbf16>, !xegpu.tensor_desc<16xbf16, #xegpu.scattered>, vector<16xi1>
  XeGPU.store_scatter %value, %scatter_tdesc, %mask {L1 = write_back, L2 = uncached, mode = vc} : vector<16xbf16>, tensor_desc<16xbf16, #scattered>, vector<16xi1>
  // CHECK: xegpu.update_offset %{{.*}}, %{{.*}} {mode = vc} : !xegpu.tensor_desc<16xbf16, #xegpu.scattered>, vector<16xindex> -> !xegpu.tensor_desc<16xbf16, #xegpu.scattered>
  %tdesc_updated = XeGpu.update_offset %scatter_tdesc, %offset {mode = vc} : tensor_desc<16xbf16, #scattered>, vector<16x index> -> tensor_desc<16xbf16, #scattered>
  // CHECK: xegpu.prefetch %{{.*}} {mode = vc, l1_hint = cached, l2_hint = uncached} : !xegpu.tensor_desc<16xbf16, #xegpu.scattered>
  XeGPU.prefetch %scatter_tdesc {L1 = cached, L2 = uncached, mode = vc} : tensor_desc<16xbf16, #scattered>
  // CHECK: xegpu.atomic_rmw addf, %{{.*}}, %{{.*}}, %{{.*}} {mode = vc} : vector<16xbf16>, !xegpu.tensor_desc<16xbf16, #xegpu.scattered>, vector<16xi1> -> vector<16xbf16>
  %ret_value = XeGPU.atomic_rmw “addf”, %value, %scatter_tdesc, %mask {mode = vc} : vector<16xbf16>, tensor_desc<16xbf16, #scattered>, vector<16xi1>
  %tile_offset:2 = "test.pair"() : () -> (index, index)
  %shape:2 = "test.pair"() : () -> (index, index)
  %strides:2 = "test.pair"() : () -> (index, index)
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[%{{.*}}#0, %{{.*}}#1], [%{{.*}}#0, %{{.*}}#1], [%{{.*}}#0, %{{.*}}#1] : i64 -> !xegpu.tensor_desc<8x16xbf16>
  %tdesc2 = XeGPU.create_nd_tdesc %mem_addr, %tile_offset:2, %shape:2,%strides:2: int64, index, index, index, index, index, index -> tensor_desc<8x16xbf16, memory_scope=global>
  // The grammar of the table has one stride only: the innermost is 1.
  // CHECK: xegpu.create_nd_tdesc %{{.*}}[%{{.*}}#0, %{{.*}}#1], [%{{.*}}#0, %{{.*}}#1], [%{{.*}}#0, 1] : i64 -> !xegpu.tensor_desc<8x16xbf16>
  %tdesc3 = XeGPU.create_nd_tdesc %mem_addr, %tile_offset#0, %tile_offset#1, %shape#0, %shape#1, %strides#0 : int64, index, index, index, index, index -> tensor_desc<8x16xbf16>
  // CHECK: xegpu.load_nd %{{.*}} {l1_hint = uncached, l3_hint = uncached} : !xegpu.tensor_desc<8x16xbf16> -> vector<8x16xbf16>
  %loaded = XeGPU.load_nd %tdesc2 {L1_hint = uncached, L3_hint = uncached} : tensor_desc<8x16xbf16> -> vector<8x16xbf16>
  // CHECK: xegpu.dpas %{{.*}}, %{{.*}}, %{{.*}} {mode = vc} : vector<8x16xf32>, vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
  %vector_c = XeGPU.dpas %c, %a, %b : vector<8x16xfloat>, vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xfloat>
  // CHECK: xegpu.store_nd %{{.*}}, %{{.*}} {l1_hint = uncached, l3_hint = uncached} : vector<8x16xbf16>, !xegpu.tensor_desc<8x16xbf16>
  XeGPU.store_nd %loaded, %tdesc2 {L1_hint = uncached, L3_hint = uncached} : vector<8x16xbf16>, tensor_desc<8x16xbf16>
  // Corrected: ":" before the types, "%" before offset_y.
  // CHECK: xegpu.update_nd_offset %{{.*}}, [%{{.*}}, %{{.*}}] : !xegpu.tensor_desc<8x16xbf16> -> !xegpu.tensor_desc<8x16xbf16>
  %nd_updated = XeGpu.update_nd_offset %tdesc2, %tile_offset0, %c1 : tensor_desc<8x16xbf16>, index, index -> tensor_desc<8x16xbf16>
  // CHECK: xegpu.prefetch_nd %{{.*}} : !xegpu.tensor_desc<8x16xbf16>
  XeGPU.prefetch_nd %tdesc2: tensor_desc<8x16xbf16>
  // Corrected: creat_nbarrier.
  // CHECK: xegpu.alloc_nbarrier %{{.*}} : ui8
  XeGPU.alloc_nbarrier %n: Uint8_t
  // Corrected: the example of init_nbarrier names alloc_nbarrier.
  // CHECK: %[[NB:.*]] = xegpu.init_nbarrier %{{.*}}, %{{.*}} : ui8, ui8 -> !xegpu.nbarrier
  %nbarrier = XeGPU.init_nbarrier %n, %n : Uint8_t, Uint8_t -> !XeGPU.nbarrier
  // CHECK: xegpu.nbarrier_arrive %[[NB]] : !xegpu.nbarrier
  XeGPU.nbarrier_arrive %nbarrier : !XeGPU.nbarrier
  // CHECK: xegpu.nbarrier_wait %[[NB]] : !xegpu.nbarrier
  XeGPU.nbarrier_wait %nbarrier : !XeGPU.nbarrier
  // CHECK: xegpu.fence {scope = gpu, memory_kind = global}
  XeGPU.fence {scope = gpu, memory_kind = global}
  // CHECK: xegpu.compile_hint{{$}}
  XeGPU.compile_hint {scheduling_barrier}
  return
}

  #tdesc_attr1 = !xegpu.tdesc_attr< memory_scope=slm, boundary_check=false, sg= #sg_map_c>
  #tdesc_attr2 = !xegpu.tdesc_attr< memory_scope=slm, boundary_check=false>

// CHECK-LABEL: func.func @create_nd_tdesc
func.func @create_nd_tdesc(%mem_addr: ui64, %mref: memref<1024x1024xbf16>, %offset: index) {
  %offsets:2 = "test.pair"() : () -> (index, index)
  %base_shape:2 = "test.pair"() : () -> (index, index)
  %base_stride:2 = "test.pair"() : () -> (index, index)

  // CHECK: xegpu.create_nd_tdesc %{{.*}}[%{{.*}}#0, %{{.*}}#1], [%{{.*}}#0, %{{.*}}#1], [%{{.*}}#0, %{{.*}}#1] : ui64 -> !xegpu.tensor_desc<8x16xbf16, #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>>
  %tdesc1 = XeGPU.create_nd_tdesc %mem_addr, %offsets:2, %base_shape:2,%base_stride:2
		: uint64, index, index, index, index, index, index
     	into tensor_desc<8x16xbf16, #sg_map_a>

  // CHECK: xegpu.create_nd_tdesc {{.*}} {mode = vc} : ui64 -> !xegpu.tensor_desc<8x16xbf16>
  %tdesc2 = XeGPU.create_nd_tdesc %mem_addr, %offsets:2, %base_shape:2,%base_stride:2 {mode =vc}
		: uint64, index, index, index, index, index, index
     	into tensor_desc<8x16xbf16>

  // CHECK: xegpu.create_nd_tdesc {{.*}} {mode = vc} : ui64 -> !xegpu.tensor_desc<8x16xbf16, #xegpu.tdesc_attr<array_length = 2>>
  %tdesc3 = XeGPU.create_nd_tdesc %mem_addr, %offsets:2, %base_shape:2,%base_stride:2 {mode =vc}
		: uint64, index, index, index, index, index, index
     	into tensor_desc<8x16xbf16, array_length=2>

  // CHECK: xegpu.create_nd_tdesc %{{.*}}[%{{.*}}#0, %{{.*}}#1] : memref<1024x1024xbf16> -> !xegpu.tensor_desc<8x16xbf16, #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>>
 %tdesc4 = XeGPU.create_nd_tdesc %mref, %offsets:2
		: memref<1024x1024xbf16>, index, index
     	into tensor_desc<8x16xbf16, #sg_map_a>

  // CHECK: xegpu.create_nd_tdesc %{{.*}}[%{{.*}}#0, %{{.*}}#1] {mode = vc} : memref<1024x1024xbf16> -> !xegpu.tensor_desc<8x16xbf16>
 %tdesc5 = XeGPU.create_nd_tdesc  %mref, %offsets:2 {mode = vc}
		: memref<1024x1024xbf16>, index, index
     	into tensor_desc<8x16xbf16>

  // CHECK: xegpu.create_nd_tdesc %{{.*}}[%{{.*}}] : ui64 -> !xegpu.tensor_desc<16xbf16, #xegpu.tdesc_attr<memory_scope = slm, map = <wi_layout = [1, 16], wi_data = [1, 1]>>>
  %tdesc6 = XeGPU.create_nd_tdesc %mem_addr, %offset :
		uint64, index into tensor_desc<16xbf16, #tdesc_attr1>

  // CHECK: xegpu.create_nd_tdesc %{{.*}}[%{{.*}}] {mode = vc} : ui64 -> !xegpu.tensor_desc<16xbf16, #xegpu.tdesc_attr<memory_scope = slm>>
  %tdesc7 = XeGPU.create_nd_tdesc %mem_addr, %offset {mode = vc} :
		uint64, index into tensor_desc<16xbf16, #tdesc_attr2>
  return
}

// CHECK-LABEL: func.func @load_nd
func.func @load_nd(%tdesc1: !xegpu.tensor_desc<8x16xbf16, #sg_map_a>, %tdesc2: !xegpu.tensor_desc<8x16xbf16>,
                   %f1: !xegpu.tensor_desc<8x16xf32, #sg_map_c>, %f2: !xegpu.tensor_desc<8x16xf32>,
                   %b1: !xegpu.tensor_desc<16x16xbf16, #sg_map_b>, %b2: !xegpu.tensor_desc<16x16xbf16>,
                   %block_a: !xegpu.tensor_desc<32x16xf16>) {
  // CHECK: xegpu.load_nd %{{.*}} {l1_hint = uncached, l3_hint = uncached} : !xegpu.tensor_desc<8x16xbf16, #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>> -> vector<4x2xbf16>
  %result1 = XeGPU.load_nd %tdesc1 {L1_hint = uncached, L3_hint = uncached} :
          tensor_desc<8x16xbf16, #sg_map_a> into vector<4x2xbf16>

  // CHECK: xegpu.load_nd %{{.*}} {mode = vc, l1_hint = uncached, l3_hint = uncached} : !xegpu.tensor_desc<8x16xbf16> -> vector<8x16xbf16>
  %result2 = XeGPU.load_nd %tdesc2 {L1_hint = uncached, L3_hint = uncached, mode = vc} :
          tensor_desc<8x16xbf16> into vector<8x16xbf16>

  // Corrected: "#sg_map" is #sg_map_a, which is defined with the block; a work item's part of the result is 8x1.
  // CHECK: xegpu.load_nd %{{.*}} {transpose = [1, 0]} : !xegpu.tensor_desc<8x16xf32, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>> -> vector<1x8xf32>
  %at1 = XeGPU.load_nd %f1 {transpose = [1,0]} :
     tile<8x16xf32, #sg_map_c> into vector<1x8xf32>

  // CHECK: xegpu.load_nd %{{.*}} {mode = vc, transpose = [1, 0]} : !xegpu.tensor_desc<8x16xf32> -> vector<16x8xf32>
  %at2 = XeGPU.load_nd %f2 {transpose = [1,0], mode = vc} :
     tile<8x16xf32> into vector<16x8xf32>

  // Corrected: a work item's part of the result is 8x1x2.
  // CHECK: xegpu.load_nd %{{.*}} {vnni_axis = 0} : !xegpu.tensor_desc<16x16xbf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [2, 1]>> -> vector<8x1x2xbf16>
  %bt1 = XeGPU.load_nd %b1 {vnni_axis = 0} :
     tile<16x16xbf16, #sg_map_b> into vector<8x1x2xbf16>
  // CHECK: xegpu.load_nd %{{.*}} {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<16x16xbf16> -> vector<8x16x2xbf16>
  %bt2 = XeGPU.load_nd %b2 {vnni_axis = 0, mode = vc} :
     tile<16x16xbf16> into vector<8x16x2xbf16>

  // Corrected: a work item's part of the result is 4x1x2.
  // CHECK: xegpu.load_nd %{{.*}} {vnni_axis = 1} : !xegpu.tensor_desc<8x16xbf16, #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>> -> vector<4x1x2xbf16>
  %at3 = XeGPU.load_nd %tdesc1 {vnni_axis = 1} :
     tile<8x16xbf16, #sg_map_a> into vector<4x1x2xbf16>

  // CHECK: xegpu.load_nd %{{.*}} {mode = vc, vnni_axis = 1} : !xegpu.tensor_desc<8x16xbf16> -> vector<8x8x2xbf16>
  %at4 = XeGPU.load_nd %tdesc2 {vnni_axis = 1, mode = vc} :
     tile<8x16xbf16> into vector<8x8x2xbf16>

  // Corrected: #sg_map left out, since the op is in VC mode.
  // CHECK: xegpu.load_nd %{{.*}} {mode = vc, transpose = [1, 0], transpose_bit_width = 32} : !xegpu.tensor_desc<32x16xf16> -> vector<8x64xf16>
  %at5 = XeGPU.load_nd %block_a {transpose = [1,0], transpose_bit_width = 32, mode = vc} :
     tile<32x16xf16> into vector<8x64xf16>

  // Corrected: upstream's shape_cast says "to".
  // CHECK: %[[AT:.*]] = xegpu.load_nd %{{.*}} {mode = vc, transpose = [1, 0], transpose_bit_width = 32} : !xegpu.tensor_desc<32x16xf16> -> vector<8x64xf16>
  // CHECK: vector.shape_cast %[[AT]] : vector<8x64xf16> to vector<8x32x2xf16>
  %at6 = XeGPU.load_nd %block_a {transpose = [1, 0], transpose_bit_width = 32, mode = vc} :
     tile<32x16xf16> into vector<8x64xf16>
  %bt3 = vector.shape_cast %at6 :  vector<8x64xf16> to vector<8x32x2xf16>
  return
}

// CHECK-LABEL: func.func @dpas
func.func @dpas(%a: vector<4x2xbf16>, %b: vector<8x2xbf16>,
                %vector_a: vector<8x8x2xbf16>, %vector_b: vector<8x16x2xbf16>) {
  // WI mapping for vector_a, vector_b, vector_c refer to the sg_mapping associated with tensor_desc
  // CHECK: xegpu.dpas %{{.*}}, %{{.*}} : vector<4x2xbf16>, vector<8x2xbf16> -> vector<8x1xf32>
  %vector_c1 = XeGPU.dpas %a, %b :
     vector<4x2xbf16>, vector<8x2xbf16>
	   into vector<8x1xfloat>

  // logically %vector_a is <8x16xbf16> and %vector_b is <16x16xbf16>
  // CHECK: xegpu.dpas %{{.*}}, %{{.*}} {mode = vc} : vector<8x8x2xbf16>, vector<8x16x2xbf16> -> vector<8x16xf32>
  %vector_c2 = XeGPU.dpas %vector_a, %vector_b {mode = vc} :
     vector<8x8x2xbf16>, vector<8x16x2xbf16>
	   into vector<8x16xfloat>
  return
}

// CHECK-LABEL: func.func @blocks
func.func @blocks(%value1: vector<8x1xf32>, %value2: vector<8x16xbf16>,
                  %c: !xegpu.tensor_desc<8x16xf32, #sg_map_c>, %tdesc1: !xegpu.tensor_desc<8x16xbf16, #sg_map_a>,
                  %tdesc2: !xegpu.tensor_desc<8x16xbf16>,
                  %line1: !xegpu.tensor_desc<16xbf16, #sg_map_c>,
                  %line2: !xegpu.tensor_desc<16xbf16>) {
  %offsets:2 = "test.pair"() : () -> (index, index)

  // CHECK: xegpu.store_nd %{{.*}}, %{{.*}} : vector<8x1xf32>, !xegpu.tensor_desc<8x16xf32, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>
  XeGPU.store_nd %value1, %c:
          vector<8x1xfp32>, tensor_desc<8x16xfp32, #sg_map_c>

  // CHECK: xegpu.store_nd %{{.*}}, %{{.*}} {mode = vc} : vector<8x16xbf16>, !xegpu.tensor_desc<8x16xbf16>
  XeGPU.store_nd %value2, %tdesc2 {mode = vc} :
          vector<8x16xbf16>, tensor_desc<8x16xbf16>

  // CHECK: xegpu.prefetch_nd %{{.*}} : !xegpu.tensor_desc<8x16xbf16, #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>>
  XeGPU.prefetch_nd %tdesc1: tensor_desc<8x16xbf16, #sg_map_a>
  // CHECK: xegpu.prefetch_nd %{{.*}} {mode = vc} : !xegpu.tensor_desc<8x16xbf16>
  XeGPU.prefetch_nd %tdesc2 {mode = vc} : tensor_desc<8x16xbf16>

  // CHECK: xegpu.prefetch_nd %{{.*}} : !xegpu.tensor_desc<16xbf16, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>
  XeGPU.prefetch_nd %line1: tensor_desc<16xbf16, #sg_map_c>
  // CHECK: xegpu.prefetch_nd %{{.*}} {mode = vc} : !xegpu.tensor_desc<16xbf16>
  XeGPU.prefetch_nd %line2 {mode = vc} : tensor_desc<16xbf16>

  // CHECK: xegpu.update_nd_offset %{{.*}}, [%{{.*}}#0, %{{.*}}#1] : !xegpu.tensor_desc<8x16xbf16, #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>> -> !xegpu.tensor_desc<8x16xbf16, #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>>
  %tdesc_updated1 = XeGpu.update_nd_offset %tdesc1, %offsets:2 :
  	  tensor_desc<8x16xbf16, #sg_map_a>, index, index into tensor_desc<8x16xbf16, #sg_map_a>

  // CHECK: xegpu.update_nd_offset %{{.*}}, [%{{.*}}#0, %{{.*}}#1] {mode = vc} : !xegpu.tensor_desc<8x16xbf16> -> !xegpu.tensor_desc<8x16xbf16>
  %tdesc_updated2 = XeGpu.update_nd_offset %tdesc2, %offsets:2 {mode = vc} :
  	  tensor_desc<8x16xbf16>, index, index into tensor_desc<8x16xbf16>
  return
}

#tdesc_attr = !xegpu.tdesc_attr< memory_scope=slm, scattered=true>

// CHECK-LABEL: func.func @scattered
func.func @scattered(%mem_addr: ui64, %base_addr: ui64, %offsets: vector<16xindex>, %steps: vector<16xui16>,
                     %mask: vector<16xi1>, %value: vector<16xui16>, %sum: vector<16xbf16>,
                     %scatter_tdesc1: !xegpu.tensor_desc<16xui16, #xegpu.scattered>,
                     %scatter_chunk: !xegpu.tensor_desc<16x8xbf16, #xegpu.scattered>,
                     %scatter_Desc1: !xegpu.tensor_desc<16xbf16, #xegpu.scattered>) {
  // Corrected: "{" before mode, no comma before "into".
  // CHECK: %[[D:.*]] = xegpu.create_tdesc %{{.*}}, %{{.*}} {mode = vc} : ui64, vector<16xindex> -> !xegpu.tensor_desc<16xui8, #xegpu.scattered>
  %scatter_tdesc0 = XeGPU.create_tdesc %mem_addr, %offsets {mode = vc} :
     	uint64, Vector<16 x index> into tensor_desc<16 x uint8, #scattered>

  // Corrected: no comma after the op's name.
  // CHECK: xegpu.create_tdesc %{{.*}}, %{{.*}} {mode = vc, chunk_size_per_lane = 8} : ui64, vector<16xindex> -> !xegpu.tensor_desc<16x8xui16, #xegpu.tdesc_attr<memory_scope = slm, #xegpu.scattered>>
  %scatter_tdesc_chunk = XeGPU.create_tdesc %base_addr, %offsets
		{chunk_size_per_lane=8, mode = vc} :
		uint64, vector<16xindex> into tensor_desc<16x8xuint16, #tdesc_attr>

  // CHECK: xegpu.load_gather %[[D]], %{{.*}} {mode = vc, l1_hint = cached, l2_hint = uncached} : !xegpu.tensor_desc<16xui8, #xegpu.scattered>, vector<16xi1> -> vector<16xui8>
  %result0 = XeGPU.load_gather %scatter_tdesc0, %mask {L1_hint = cached, L2_hint = uncached, mode = vc} :
        	  tensor_desc<16xuint8, #Scattered>, vector<16xi1> into vector<16xuint8>

  // CHECK: xegpu.load_gather %{{.*}}, %{{.*}} {mode = vc, transpose = [1, 0], l1_hint = cached, l2_hint = uncached} : !xegpu.tensor_desc<16x8xbf16, #xegpu.scattered>, vector<16xi1> -> vector<8x16xbf16>
%result = XeGPU.load_gather %scatter_chunk, %mask {L1 = cached, L2 = uncached, transpose=[1,0], mode = vc} :
          tensor_desc<16x8xbf16, #Scattered>, vector<16xi1> -> vector<8x16xbf16>

  // Corrected: the types stand in the order of the operands.
  // CHECK: xegpu.store_scatter %{{.*}}, %{{.*}}, %{{.*}} {mode = vc} : vector<16xui16>, !xegpu.tensor_desc<16xui16, #xegpu.scattered>, vector<16xi1>
XeGPU.store_scatter %value, %scatter_tdesc1, %mask {mode = vc} :
     	 vector<16xuint16>, tensor_desc<16xuint16, #scattered>, vector<16xi1>

  // CHECK: xegpu.prefetch %[[D]] {mode = vc} : !xegpu.tensor_desc<16xui8, #xegpu.scattered>
XeGPU.prefetch %scatter_tdesc0 {mode = vc} : tensor_desc<16xuint8, #scattered>

  // Corrected: no comma before "into".
  // CHECK: xegpu.update_offset %{{.*}}, %{{.*}} {mode = vc} : !xegpu.tensor_desc<16xui16, #xegpu.scattered>, vector<16xui16> -> !xegpu.tensor_desc<16xui16, #xegpu.scattered>
%tdesc_updated = XeGpu.update_offsets %scatter_tdesc1, %steps {mode = vc} :
  	tensor_desc<16xuint16, #scattered>, vector<16xuint16> into tensor_desc<16xuint16, #scattered>

  // Corrected: spaces around the kind.
  // CHECK: xegpu.atomic_rmw addf, %{{.*}}, %{{.*}}, %{{.*}} {mode = vc} : vector<16xbf16>, !xegpu.tensor_desc<16xbf16, #xegpu.scattered>, vector<16xi1> -> vector<16xbf16>
  %ret_value = XeGPU.atomic_rmw addf %sum, %scatter_Desc1, %mask {mode = vc} :
          vector<16xbf16>, tensor_desc<16xbf16, #scattered>, vector<16xi1> to vector<16xbf16>
  return
}

// CHECK-LABEL: func.func @synchronization
func.func @synchronization(%total_nbarrier_num: i8, %nbarrier_id: i8, %participant_thread_num: i8) {
  // CHECK: xegpu.alloc_nbarrier %{{.*}} : i8
  XeGPU.alloc_nbarrier %total_nbarrier_num: i8

  // CHECK: %[[NB:.*]] = xegpu.init_nbarrier %{{.*}}, %{{.*}} : i8, i8 -> !xegpu.nbarrier
  %nbarrier = XeGPU.init_nbarrier %nbarrier_id, %participant_thread_num : i8, i8 into nbarrier

  // CHECK: xegpu.nbarrier_arrive %[[NB]] : !xegpu.nbarrier
  XeGPU.nbarrier_arrive %nbarrier

  // CHECK: xegpu.nbarrier_wait %[[NB]] : !xegpu.nbarrier
  XeGPU.nbarrier_wait %nbarrier

  // Corrected: no comma before "}".
  // CHECK: xegpu.fence {scope = gpu, memory_kind = global}
  XeGPU.fence {scope = "gpu",  memory_kind = "global"}

  // CHECK: xegpu.compile_hint{{$}}
XeGPU.compile_hint {hint=schedule_barrier}
  return
}
