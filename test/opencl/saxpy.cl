kernel void saxpy(global float *x, global float *y, float a) {
    size_t i = get_global_id(0);
    y[i] = a * x[i] + y[i];
}
kernel void saxpy_bounded(global const float *x, global float *y, float a, int n) {
    int i = get_global_id(0);
    if (i < n)
        y[i] = fma(a, x[i], y[i]);
}
