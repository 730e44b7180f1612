#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void math_float(global const float *a, global const float *b, global float *out) {
    int i = get_global_id(0);
    float x = a[i], y = b[i];
    out += 20 * i;
    out[0] = x / y;
    out[1] = sqrt(x);
    out[2] = native_exp2(x);
    out[3] = native_log2(y);
    out[4] = native_sin(x);
    out[5] = native_cos(x);
    out[6] = rsqrt(y);
    out[7] = floor(x);
    out[8] = ceil(x);
    out[9] = rint(x);
    out[10] = trunc(x);
    out[11] = fmin(x, y);
    out[12] = fmax(x, y);
    out[13] = fabs(x) - copysign(y, x);
    out[14] = isnan(x) ? 1.0f : isinf(x) ? 2.0f : 3.0f;
    out[15] = fma(x, y, 1.5f);
    out[16] = x > y ? x : -y;
    out[17] = clamp(x, 0.0f, 1.0f);
    out[18] = mix(x, y, 0.25f);
    out[19] = native_recip(y);
}
kernel void math_half(global const half *a, global const half *b, global half *out) {
    int i = get_global_id(0);
    half x = a[i], y = b[i];
    out += 8 * i;
    out[0] = x + y;
    out[1] = x * y;
    out[2] = fma(x, y, x);
    out[3] = fmax(x, y);
    out[4] = floor(x);
    out[5] = x / y;
    out[6] = sqrt(y);
    out[7] = (half)(x < y);
}
kernel void math_double(global const double *a, global const double *b, global double *out) {
    int i = get_global_id(0);
    double x = a[i], y = b[i];
    out += 8 * i;
    out[0] = x + y;
    out[1] = x * y;
    out[2] = fma(x, y, x);
    out[3] = fmax(x, y);
    out[4] = floor(x);
    out[5] = x / y;
    out[6] = sqrt(y);
    out[7] = rint(x);
}
kernel void math_exact(global const float *a, global const float *b, global float *out) {
    int i = get_global_id(0);
    float x = a[i], y = b[i];
    out += 4 * i;
    out[0] = exp(x);
    out[1] = log(y);
    out[2] = pow(y, x);
    out[3] = tanh(x);
}
kernel void sines(global const float *a, global float *out) {
    int i = get_global_id(0);
    out[i] = sin(a[i]);
}
