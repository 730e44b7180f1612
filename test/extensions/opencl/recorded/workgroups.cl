// Barriers, local memory, and functions of workgroups.
kernel void scan(global const int *in, global int *out, local int *held) {
    int l = get_local_id(0), n = get_local_size(0);
    held[l] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int d = 1; d < n; d <<= 1) {
        int other = l >= d ? held[l - d] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        held[l] += other;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[get_global_id(0)] = held[l];
}
// RUN scan rand:i32:300 zeros:i32:300 local:400 global=300 local=100
kernel void sort_in_local_memory(global const uint *in, global uint *out) {
    local uint held[128];
    uint l = get_local_id(0);
    held[l] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 2; k <= 128; k <<= 1)
        for (uint j = k >> 1; j; j >>= 1) {
            uint p = l ^ j, a = held[l], b = held[p];
            barrier(CLK_LOCAL_MEM_FENCE);
            if (((a > b) == !(l & k)) == (l < p)) held[l] = b;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    out[get_global_id(0)] = held[l];
}
// RUN sort_in_local_memory rand:ui32:256 zeros:ui32:256 global=256 local=128
kernel void two_arrays(global const float *in, global float *out, local float *a, local double *b, int n) {
    local char flags[3];
    int l = get_local_id(0);
    if (l < 3) flags[l] = l;
    a[l] = in[get_global_id(0)];
    b[l] = 2 * l;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = a[(l + n) % get_local_size(0)] + b[get_local_size(0) - 1 - l] + flags[l % 3];
}
// RUN two_arrays small:f32:90 zeros:f32:90 local:180 local:360 i32:7 global=90 local=45
kernel void group_functions(global const int *in, global int *out) {
    int i = get_global_id(0);
    out += 6 * i;
    out[0] = work_group_reduce_add(in[i]);
    out[1] = work_group_scan_inclusive_max(in[i]);
    out[2] = work_group_scan_exclusive_add(in[i]);
    out[3] = work_group_broadcast(in[i], 3);
    out[4] = work_group_all(in[i] > -4);
    out[5] = work_group_any(in[i] > 3);
}
// RUN group_functions small:i32:128 zeros:i32:768 global=128 local=64
kernel void copied(global const int *in, global int *out) {
    local int held[64];
    event_t e = async_work_group_copy(held, in + 64 * get_group_id(0), 64, 0);
    wait_group_events(1, &e);
    held[get_local_id(0)] *= 3;
    barrier(CLK_LOCAL_MEM_FENCE);
    e = async_work_group_copy(out + 64 * get_group_id(0), held, 64, 0);
    wait_group_events(1, &e);
}
// RUN copied rand:i32:128 zeros:i32:128 global=128 local=64
typedef struct { int kind; union { float f; uint u; } value; char name[5]; } Item;
int weight(const Item *items, int n) {
    int sum = 0;
    for (int k = 0; k < n; k++) switch (items[k].kind) {
        case 0: sum += items[k].value.u & 255; break;
        case 1: sum += (int)items[k].value.f; break;
        default: sum += items[k].name[k % 5];
    }
    return sum;
}
kernel void records(global const int *in, global int *out) {
    int i = get_global_id(0);
    Item items[6];
    for (int k = 0; k < 6; k++) {
        items[k].kind = (in[i] + k) & 3;
        items[k].value.f = k + 0.5f * i;
        for (int c = 0; c < 5; c++) items[k].name[c] = in[i] >> c;
    }
    out[i] = weight(items, 2 + (in[i] & 3));
}
// RUN records rand:i32:64 zeros:i32:64 global=64
kernel void longs_atomics(volatile global long *sums, volatile global uint *mins, global const int *in) {
    int i = get_global_id(0);
    atom_add(&sums[0], (long)in[i] << 20);
    atom_max(&sums[1], (long)in[i]);
    atomic_min(&mins[i & 3], (uint)in[i]);
    local int seen;
    if (get_local_id(0) == 0) seen = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_or(&seen, 1 << (in[i] & 31));
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) mins[4 + get_group_id(0)] = seen;
}
// RUN longs_atomics zeros:i64:2 full:ui32:8:4294967295 rand:i32:128 global=128 local=64
kernel void duff(global const uchar *in, global uint *out) {
    int i = get_global_id(0), n = in[i] & 15, at = 0;
    uint hash = 5381;
    switch (n & 3) {
        do {
            case 0: hash = hash * 33 + in[at++];
            case 3: hash = hash * 33 + in[at++];
            case 2: hash = hash * 33 + in[at++];
            case 1: hash = hash * 33 + in[at++];
        } while (at < n);
    }
    out[i] = hash;
}
// RUN duff rand:ui8:64 zeros:ui32:64 global=64
