kernel void histogram(global const uchar *in, global uint *bins) {
    local uint own[256];
    for (int i = get_local_id(0); i < 256; i += get_local_size(0))
        own[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_inc(&own[in[get_global_id(0)]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_local_id(0); i < 256; i += get_local_size(0))
        atomic_add(&bins[i], own[i]);
}
kernel void atomics_int(global const int *in, global int *out, global int *old) {
    int i = get_global_id(0), x = in[i];
    atomic_add(out, x);
    atomic_sub(out + 1, x);
    atomic_min(out + 2, x);
    atomic_max(out + 3, x);
    atomic_and(out + 4, x);
    atomic_or(out + 5, x);
    atomic_xor(out + 6, x);
    old[2 * i] = atomic_xchg(out + 8 + i, x);
    old[2 * i + 1] = atomic_cmpxchg(out + 8 + i, x, i);
    atomic_min((volatile global uint *)out + 7, (uint)x);
}
// RUN histogram rand:ui8:512 zeros:ui32:256 global=512 local=128
// RUN atomics_int small:i32:160 zeros:i32:168 zeros:i32:320 global=160 local=40
