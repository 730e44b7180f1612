#l = #iree_vector_ext.nested_layout<subgroup_tile = [2], batch_tile = [2], outer_tile = [1], thread_tile = [16], element_tile = [1], subgroup_strides = [1], thread_strides = [1]>
#m = #xegpu.sg_map<wi_layout = [2, 8], wi_data = [1, 2]>
func.func @f(%v: vector<64xf32>, %m: memref<8x16xf16>) {
  %0 = iree_vector_ext.to_layout %v to layout(#l) : vector<64xf32>
  %1 = iree_vector_ext.to_layout %0 to layout(#l) : vector<64xf32>
  %2 = xegpu.create_nd_tdesc %m[0, 0] : memref<8x16xf16> -> !xegpu.tensor_desc<8x16xf16, #m>
  return
}
