kernel void saxpy(global float *x, global float *y, float a) {
    size_t i = get_global_id(0);
    y[i] = a * x[i] + y[i];
}
kernel void saxpy_bounded(global const float *x, global float *y, float a, int n) {
    int i = get_global_id(0);
    if (i < n)
        y[i] = fma(a, x[i], y[i]);
}
// RUN saxpy small:f32:150 small:f32:150 f32:2 global=150 local=50
// RUN saxpy_bounded randn:f32:120:seed=1 randn:f32:120:seed=2 f32:0.3 i32:120 global=128 local=64
