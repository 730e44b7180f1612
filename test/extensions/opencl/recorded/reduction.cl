// A sum in local memory, of a static array and of a pointer argument.
kernel void reduce_sum(global const int *in, global int *out, local int *scratch) {
    local int last;
    int l = get_local_id(0), n = get_local_size(0);
    scratch[l] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = n / 2; s > 0; s >>= 1) {
        if (l < s)
            scratch[l] += scratch[l + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0)
        last = scratch[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l == n - 1)
        out[get_group_id(0)] = last;
}
// RUN reduce_sum rand:i32:256 zeros:i32:4 local:256 global=256 local=64
