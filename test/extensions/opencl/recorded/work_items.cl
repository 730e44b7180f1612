kernel void ids(global ulong *out) {
    size_t n = get_global_linear_id();
    out += 18 * n;
    for (uint d = 0; d < 3; d++) {
        out[d] = get_global_id(d);
        out[3 + d] = get_local_id(d);
        out[6 + d] = get_group_id(d);
        out[9 + d] = get_global_size(d);
        out[12 + d] = get_local_size(d);
        out[15 + d] = get_num_groups(d);
    }
    out[0] += 1000 * get_global_offset(0) + 100 * get_work_dim();
}
// RUN ids zeros:ui64:3456 global=8,6,4 local=4,3,2
