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
kernel void multiply_bf16(global const short *a, global const int *b, global float *c) {
    int l = get_sub_group_local_id();
    short8 x = as_short8(intel_sub_group_block_read_us8((global const ushort *)a));
    int8 y = as_int8(intel_sub_group_block_read8((global const uint *)b));
    float8 z = intel_sub_group_bf16_bf16_matrix_mad_k16(x, y, (float8)(0.5f));
    intel_sub_group_block_write8((global uint *)c, as_uint8(z));
}
