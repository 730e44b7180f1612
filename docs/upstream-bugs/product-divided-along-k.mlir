// RUN: not xegpu-bisect --upstream %s small:f16:16x32:seed=1 small:f16:32x32:seed=2 zeros:f32:16x32 --block 64 --level workgroup --pass-pipeline='builtin.module(gpu.module(xegpu-wg-to-sg-distribute))'
// after 'xegpu-wg-to-sg-distribute' %c differs first at [0, 0]: 18.0 before, 6.0 after (506 of 512 elements differ, by up to 2233466880 units in the last place)

#a = #xegpu.layout<sg_layout = [2, 2], sg_data = [8, 16]>
#b = #xegpu.layout<sg_layout = [2, 2], sg_data = [16, 16]>
#c = #xegpu.layout<sg_layout = [2, 2], sg_data = [8, 16]>
gpu.module @k {
  gpu.func @f(%a: memref<16x32xf16>, %b: memref<32x32xf16>, %c: memref<16x32xf32>) kernel {
    %da = xegpu.create_nd_tdesc %a : memref<16x32xf16> -> !xegpu.tensor_desc<16x32xf16, #a>
    %va = xegpu.load_nd %da[0, 0] {layout = #a} : !xegpu.tensor_desc<16x32xf16, #a> -> vector<16x32xf16>
    %db = xegpu.create_nd_tdesc %b : memref<32x32xf16> -> !xegpu.tensor_desc<32x32xf16, #b>
    %vb = xegpu.load_nd %db[0, 0] {layout = #b} : !xegpu.tensor_desc<32x32xf16, #b> -> vector<32x32xf16>
    %r = xegpu.dpas %va, %vb {layout_a = #a, layout_b = #b, layout_cd = #c} : vector<16x32xf16>, vector<32x32xf16> -> vector<16x32xf32>
    %dc = xegpu.create_nd_tdesc %c : memref<16x32xf32> -> !xegpu.tensor_desc<16x32xf32, #c>
    xegpu.store_nd %r, %dc[0, 0] {layout = #c} : vector<16x32xf32>, !xegpu.tensor_desc<16x32xf32, #c>
    gpu.return
  }
}
