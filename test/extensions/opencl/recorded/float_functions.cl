// Functions of floats whose bits OpenCL fixes, and others within their ulp. IGC's floor, ceil and nextafter of double
// and half give zeros of either sign.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
#define EXACT(T, I) \
    kernel void exact_##T(global const T *a, global const T *b, global T *out, global I *ints) { \
        int i = get_global_id(0); \
        T x = a[i], y = b[i]; \
        out += 20 * i; \
        ints += 10 * i; \
        out[0] = x + y; \
        out[1] = x - y; \
        out[2] = x * y; \
        out[3] = fma(x, y, x); \
        out[4] = floor(x) + (T)(0); \
        out[5] = ceil(x) + (T)(0); \
        out[6] = rint(x) + (T)(0); \
        out[7] = trunc(x) + (T)(0); \
        out[8] = round(x) + (T)(0); \
        out[9] = fabs(x); \
        out[10] = copysign(x, y); \
        out[11] = fmod(x, y); \
        out[12] = ldexp(x, 3); \
        out[13] = (x < y) ? x : y; \
        out[14] = nextafter(x, y) + (T)(0); \
        out[15] = fdim(x, y); \
        out[16] = sign(x); \
        out[17] = step(fmin(x, (T)(9)), fmin(y, (T)(9))); \
        out[18] = clamp(x, (T)(-2), (T)(3)); \
        out[19] = logb(x); \
        ints[0] = isequal(x, y); \
        ints[1] = isless(x, y); \
        ints[2] = isgreaterequal(x, y); \
        ints[3] = isnan(x); \
        ints[4] = isinf(y); \
        ints[5] = isunordered(x, y); \
        ints[6] = signbit(x); \
        ints[7] = isnormal(x); \
        ints[8] = (x != y) + 2 * (x > y); \
        ints[9] = isfinite(y); \
    }
EXACT(half, int)
EXACT(float, int)
EXACT(double, int)
EXACT(float4, int4)
// RUN exact_half bits:f16:96:seed=1 bits:f16:96:seed=2 zeros:f16:1920 zeros:i32:960 global=96 local=48
// RUN exact_float bits:f32:96:seed=1 bits:f32:96:seed=2 zeros:f32:1920 zeros:i32:960 global=96 local=48
// RUN exact_double bits:f64:96:seed=1 bits:f64:96:seed=2 zeros:f64:1920 zeros:i32:960 global=96 local=48
// RUN exact_float4 randn:f32:128:seed=1 randn:f32:128:seed=2 zeros:f32:2560 zeros:i32:1280 global=32
kernel void extremes(global const float *a, global const float *b, global float *out) {
    int i = get_global_id(0);
    float x = a[i], y = b[i];
    out[4 * i] = fmin(x, y) == 0 ? 0 : fmin(x, y);
    out[4 * i + 1] = fmax(x, y) == 0 ? 0 : fmax(x, y);
    out[4 * i + 2] = maxmag(x, y) == 0 ? 0 : maxmag(x, y);
    out[4 * i + 3] = ilogb(x);
}
// RUN extremes randn:f32:96:seed=5 randn:f32:96:seed=6 zeros:f32:384 global=96
#define NEAR(T) \
    kernel void near_##T(global const T *a, global const T *b, global T *out) { \
        int i = get_global_id(0); \
        T x = a[i], y = fabs(b[i]) + (T)(0.01); \
        out += 22 * i; \
        out[0] = x / y; \
        out[1] = sqrt(y); \
        out[2] = exp(x); \
        out[3] = log(y); \
        out[4] = exp2(x); \
        out[5] = log2(y); \
        out[6] = pow(y, x); \
        out[7] = sin(x); \
        out[8] = cos(x); \
        out[9] = tan(x); \
        out[10] = atan(x); \
        out[11] = asin(x / (fabs(x) + (T)(1))); \
        out[12] = sinh(x); \
        out[13] = tanh(x); \
        out[14] = expm1(x); \
        out[15] = log1p(y); \
        out[16] = cbrt(x); \
        out[17] = hypot(x, y); \
        out[18] = rsqrt(y); \
        out[19] = atan2(x, y); \
        out[20] = erf(x); \
        out[21] = pown(x, 3); \
    }
NEAR(float)
// RUN near_float randn:f32:96:seed=1 randn:f32:96:seed=2 zeros:f32:2112 global=96 ulp=20
kernel void near_double(global const double *a, global const double *b, global double *out) {
    int i = get_global_id(0);
    double x = a[i], y = fabs(b[i]) + 0.01;
    out[3 * i] = x / y;
    out[3 * i + 1] = sqrt(y);
    out[3 * i + 2] = exp(x);
}
// RUN near_double randn:f64:32:seed=1 randn:f64:32:seed=2 zeros:f64:96 global=32 ulp=3
kernel void near_half(global const half *a, global const half *b, global half *out) {
    int i = get_global_id(0);
    half x = a[i], y = fabs(b[i]) + (half)0.25;
    out += 8 * i;
    out[0] = x / y;
    out[1] = sqrt(y);
    out[2] = exp(x);
    out[3] = log(y + (half)1.5);
    out[4] = sin(x);
    out[5] = rsqrt(y);
    out[6] = tanh(x);
    out[7] = exp2(x);
}
// RUN near_half randn:f16:96:seed=1 randn:f16:96:seed=2 zeros:f16:768 global=96 ulp=3
kernel void geometry(global const float4 *a, global const float4 *b, global float4 *out) {
    int i = get_global_id(0);
    float4 x = a[i], y = b[i];
    out[4 * i] = cross(x, y);
    out[4 * i + 1] = normalize(x);
    out[4 * i + 2] = (float4)(dot(x, x), length(y), distance(x, y), fast_length(x));
    out[4 * i + 3] = smoothstep(x - 1.0f, x + 1.0f, x + 0.25f) + mix(x, x, 0.25f) + degrees(y) + radians(x);
}
// RUN geometry rand:f32:128:seed=1 rand:f32:128:seed=2 zeros:f32:512 global=32 close=1e-5
kernel void parts(global const float *a, global float *out, global int *ints) {
    int i = get_global_id(0), e;
    float whole;
    out[4 * i] = fract(a[i], &whole);
    out[4 * i + 1] = whole;
    out[4 * i + 2] = frexp(a[i], &e);
    ints[2 * i] = e;
    out[4 * i + 3] = modf(a[i], &whole);
    ints[2 * i + 1] = whole;
}
// RUN parts randn:f32:96 zeros:f32:384 zeros:i32:192 global=96
