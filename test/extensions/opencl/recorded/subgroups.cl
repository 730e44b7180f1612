#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
__attribute__((intel_reqd_sub_group_size(16)))
kernel void exchange(global const int *in, global int *out) {
    int i = get_global_id(0), x = in[i];
    uint l = get_sub_group_local_id();
    out += 10 * i;
    out[0] = intel_sub_group_shuffle(x, (l + 3) & 15);
    out[1] = intel_sub_group_shuffle_xor(x, 5);
    out[2] = intel_sub_group_shuffle_down(x, 100, 2);
    out[3] = sub_group_broadcast(x, 7);
    out[4] = sub_group_reduce_add(x);
    out[5] = sub_group_scan_exclusive_add(x);
    out[6] = sub_group_scan_inclusive_max(x);
    out[7] = sub_group_any(x > 100);
    out[8] = sub_group_all(x > 0);
    out[9] = get_sub_group_id() * 100 + get_sub_group_size() + get_num_sub_groups();
}
__attribute__((intel_reqd_sub_group_size(16)))
kernel void blocks(global const uint *in, global uint *out) {
    int at = 64 * get_group_id(0) + 64 * get_sub_group_id();
    uint4 v = intel_sub_group_block_read4(in + at);
    intel_sub_group_block_write4(out + at, v + (uint4)(get_sub_group_local_id()));
}
__attribute__((intel_reqd_sub_group_size(16)))
kernel void divergent_shuffle(global const int *in, global int *out) {
    int i = get_global_id(0), x = in[i];
    uint l = get_sub_group_local_id();
    int r = 0;
    for (int k = 0; k < x; k++)
        r += intel_sub_group_shuffle(x, l ^ (k & 15));
    out[i] = r;
}
// RUN exchange small:i32:96 zeros:i32:960 global=96 local=32
// RUN blocks rand:ui32:256 zeros:ui32:256 global=64 local=16
// RUN divergent_shuffle small:ui32:64 zeros:i32:64 global=64
