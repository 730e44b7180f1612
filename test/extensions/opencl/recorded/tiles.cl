#define T 16
__attribute__((reqd_work_group_size(T, T, 1)))
kernel void matmul(global const float *a, global const float *b, global float *c, int n) {
    local float x[T][T], y[T][T];
    int col = get_global_id(0), row = get_global_id(1), i = get_local_id(0), j = get_local_id(1);
    float sum = 0;
    for (int k = 0; k < n; k += T) {
        x[j][i] = a[row * n + k + i];
        y[j][i] = b[(k + j) * n + col];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int m = 0; m < T; m++)
            sum += x[j][m] * y[m][i];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + col] = sum;
}
kernel void stencil(global const float *in, global float *out, int width, int height) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1)
        return;
    global const float *p = in + y * width + x;
    out[y * width + x] = 0.5f * p[0] + 0.125f * (p[-1] + p[1] + p[-width] + p[width]);
}
kernel void transpose(global const uchar *in, global uchar *out, int width, int height) {
    int x = get_global_id(0), y = get_global_id(1);
    out[x * height + y] = in[y * width + x];
}
// RUN matmul small:f32:32x32:seed=1 small:f32:32x32:seed=2 zeros:f32:32x32 i32:32 global=32,32
// RUN stencil small:f32:24x40 zeros:f32:24x40 i32:40 i32:24 global=40,24 local=8,8
// RUN transpose rand:ui8:24x40 zeros:ui8:40x24 i32:40 i32:24 global=40,24 local=8,8
