#pragma OPENCL EXTENSION cl_intel_subgroup_matrix_multiply_accumulate : enable
__attribute__((intel_reqd_sub_group_size(16)))
kernel void multiply_s8(global const short *a, global const int *b, global int *c) {
    int l = get_sub_group_local_id();
    short8 x = vload8(l, a);
    int8 y = vload8(l, b);
    int8 z = intel_sub_group_i8_i8_matrix_mad_k32(x, y, (int8)(1));
    vstore8(z, l, c);
}
__attribute__((intel_reqd_sub_group_size(16)))
kernel void multiply_bf16(global const ushort *a, global const ushort *b, global float *c) {
    int l = get_sub_group_local_id();
    short8 x = as_short8(intel_sub_group_block_read_us8(a));
    int8 y = as_int8(intel_sub_group_block_read8((global const uint *)b));
    float8 z = intel_sub_group_bf16_bf16_matrix_mad_k16(x, y, (float8)(0.5f));
    intel_sub_group_block_write8((global uint *)c, as_uint8(z));
}
// RUN multiply_s8 rand:i16:128 rand:i32:128 zeros:i32:128 global=16
// RUN multiply_bf16 small:bf16:128 small:bf16:256 zeros:f32:128 global=16
#pragma OPENCL EXTENSION cl_intel_bfloat16_conversions : enable
kernel void as_bf16(global const float *in, global ushort *out, global float *back) {
    int i = get_global_id(0);
    out[i] = intel_convert_bfloat16_as_ushort(in[i]);
    back[i] = intel_convert_as_bfloat16_float(out[i]);
}
// RUN as_bf16 randn:f32:64 zeros:ui16:64 zeros:f32:64 global=64
