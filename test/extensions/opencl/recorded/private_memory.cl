kernel void sorted(global const int *in, global int *out) {
    int i = get_global_id(0);
    int v[8];
    for (int k = 0; k < 8; k++)
        v[k] = in[8 * i + k];
    for (int k = 1; k < 8; k++) {
        int x = v[k], j = k - 1;
        while (j >= 0 && v[j] > x) {
            v[j + 1] = v[j];
            j--;
        }
        v[j + 1] = x;
    }
    for (int k = 0; k < 8; k++)
        out[8 * i + k] = v[k];
}
kernel void small_table(global const int *in, global int *out) {
    int i = get_global_id(0);
    int t[4] = {in[0], in[1], in[2], in[3]};
    t[in[i] & 3] += i;
    out[i] = t[(in[i] >> 2) & 3] * 10 + t[(in[i] >> 1) & 3];
}
kernel void large_array(global const int *in, global int *out, int n) {
    int i = get_global_id(0);
    int v[400];
    for (int k = 0; k < 400; k++)
        v[k] = k;
    for (int k = 0; k < n; k++)
        v[(k * 37 + in[k & 15]) % 400] = k + i;
    out[i] = v[in[i] & 255];
}
// RUN sorted rand:i32:512 zeros:i32:512 global=64
// RUN small_table rand:i32:64 zeros:i32:64 global=64
// RUN large_array arange:i32:64 zeros:i32:64 i32:300 global=64
