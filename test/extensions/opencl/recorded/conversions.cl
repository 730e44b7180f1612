// Conversions from each type to all others, with all roundings, saturated.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define TO_INTEGER(n, T) \
    out[n] = (long)convert_##T##_sat(x); \
    out[n + 1] = (long)convert_##T##_sat_rte(x); \
    out[n + 2] = (long)convert_##T##_sat_rtp(x); \
    out[n + 3] = (long)convert_##T##_sat_rtn(x);
#define TO_FLOAT(out, n, T) \
    out[n] = convert_##T(x); \
    out[n + 1] = convert_##T##_rtz(x); \
    out[n + 2] = convert_##T##_rtp(x); \
    out[n + 3] = convert_##T##_rtn(x);
#define FROM(S) \
    kernel void from_##S(global const S *in, global long *out, global half *h, global float *f, global double *d) { \
        int i = get_global_id(0); \
        S x = in[i] == in[i] ? in[i] : (S)(1); \
        out += 32 * i; \
        h += 4 * i; \
        f += 4 * i; \
        d += 4 * i; \
        TO_INTEGER(0, char) TO_INTEGER(4, uchar) TO_INTEGER(8, short) TO_INTEGER(12, ushort) \
        TO_INTEGER(16, int) TO_INTEGER(20, uint) TO_INTEGER(24, long) TO_INTEGER(28, ulong) \
        TO_FLOAT(h, 0, half) TO_FLOAT(f, 0, float) TO_FLOAT(d, 0, double) \
    }
FROM(char)
FROM(uchar)
FROM(short)
FROM(ushort)
FROM(int)
FROM(uint)
FROM(long)
FROM(ulong)
FROM(half)
FROM(float)
FROM(double)
// RUN from_char bits:i8:64:seed=7 zeros:i64:2048 zeros:f16:256 zeros:f32:256 zeros:f64:256 global=64
// RUN from_uchar bits:ui8:64:seed=7 zeros:i64:2048 zeros:f16:256 zeros:f32:256 zeros:f64:256 global=64
// RUN from_short bits:i16:64:seed=7 zeros:i64:2048 zeros:f16:256 zeros:f32:256 zeros:f64:256 global=64
// RUN from_ushort bits:ui16:64:seed=7 zeros:i64:2048 zeros:f16:256 zeros:f32:256 zeros:f64:256 global=64
// RUN from_int bits:i32:64:seed=7 zeros:i64:2048 zeros:f16:256 zeros:f32:256 zeros:f64:256 global=64
// RUN from_uint bits:ui32:64:seed=7 zeros:i64:2048 zeros:f16:256 zeros:f32:256 zeros:f64:256 global=64
// RUN from_long bits:i64:64:seed=7 zeros:i64:2048 zeros:f16:256 zeros:f32:256 zeros:f64:256 global=64
// RUN from_ulong bits:ui64:64:seed=7 zeros:i64:2048 zeros:f16:256 zeros:f32:256 zeros:f64:256 global=64
// RUN from_half bits:f16:64:seed=7 zeros:i64:2048 zeros:f16:256 zeros:f32:256 zeros:f64:256 global=64
// RUN from_float bits:f32:64:seed=7 zeros:i64:2048 zeros:f16:256 zeros:f32:256 zeros:f64:256 global=64
// RUN from_double bits:f64:64:seed=7 zeros:i64:2048 zeros:f16:256 zeros:f32:256 zeros:f64:256 global=64
kernel void between_vectors(global const float4 *in, global uchar4 *bytes, global short4 *shorts, global float4 *out) {
    int i = get_global_id(0);
    bytes[i] = convert_uchar4_sat_rte(in[i] * 100.0f);
    shorts[i] = convert_short4_rtz(in[i] * 1000.0f);
    out[i] = convert_float4(bytes[i]) + as_float4(as_int4(in[i]) & (int4)(0x7fffffff));
}
// RUN between_vectors randn:f32:128 zeros:ui8:128 zeros:i16:128 zeros:f32:128 global=32
