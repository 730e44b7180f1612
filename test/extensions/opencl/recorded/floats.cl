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
kernel void sines(global const float *a, global float *out) {
    int i = get_global_id(0);
    out[i] = sin(a[i]);
}
// RUN math_float rand:f32:96:seed=1 rand:f32:96:seed=2 zeros:f32:1920 global=96 close=1e-3
// RUN sines randn:f32:64 zeros:f32:64 global=64 ulp=4
