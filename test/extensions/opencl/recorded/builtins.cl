// Built-in functions of every integer type.
#define BUILTINS(T, U) \
    kernel void builtins_##T(global const T *a, global const T *b, global T *out, global U *other) { \
        int i = get_global_id(0); \
        T x = a[i], y = b[i], z = x ^ (y << (T)(1)); \
        out += 18 * i; \
        out[0] = clz(x); \
        out[1] = popcount(x); \
        out[2] = rotate(x, y); \
        out[3] = mul_hi(x, y); \
        out[4] = mad_hi(z, y, x); \
        out[5] = add_sat(x, y); \
        out[6] = sub_sat(x, y); \
        out[7] = hadd(x, y); \
        out[8] = rhadd(x, y); \
        out[9] = bitselect(x, y, z); \
        out[10] = clamp(z, min(x, y), max(x, y)); \
        out[11] = x * y + z; \
        out[12] = max(x, z); \
        out[13] = min(x, z); \
        out[14] = ctz(x); \
        out[15] = select(x, y, as_##U(z)); \
        out[16] = x / (y == (T)(0) ? (T)(3) : y == (T)(-1) ? (T)(5) : y); \
        out[17] = (x << (T)(3)) | (y >> (T)(2)); \
        other[2 * i] = abs(x); \
        other[2 * i + 1] = abs_diff(x, y); \
    }
BUILTINS(char, uchar)
BUILTINS(uchar, uchar)
BUILTINS(short, ushort)
BUILTINS(ushort, ushort)
BUILTINS(int, uint)
BUILTINS(uint, uint)
BUILTINS(long, ulong)
BUILTINS(ulong, ulong)
BUILTINS(short4, ushort4)
BUILTINS(uint2, uint2)
// RUN builtins_char bits:i8:96:seed=3 bits:i8:96:seed=4 zeros:i8:1728 zeros:ui8:192 global=96 local=48
// RUN builtins_uchar bits:ui8:96:seed=3 bits:ui8:96:seed=4 zeros:ui8:1728 zeros:ui8:192 global=96 local=48
// RUN builtins_short bits:i16:96:seed=3 bits:i16:96:seed=4 zeros:i16:1728 zeros:ui16:192 global=96 local=48
// RUN builtins_ushort bits:ui16:96:seed=3 bits:ui16:96:seed=4 zeros:ui16:1728 zeros:ui16:192 global=96 local=48
// RUN builtins_int bits:i32:96:seed=3 bits:i32:96:seed=4 zeros:i32:1728 zeros:ui32:192 global=96 local=48
// RUN builtins_uint bits:ui32:96:seed=3 bits:ui32:96:seed=4 zeros:ui32:1728 zeros:ui32:192 global=96 local=48
// RUN builtins_long bits:i64:96:seed=3 bits:i64:96:seed=4 zeros:i64:1728 zeros:ui64:192 global=96 local=48
// RUN builtins_ulong bits:ui64:96:seed=3 bits:ui64:96:seed=4 zeros:ui64:1728 zeros:ui64:192 global=96 local=48
// RUN builtins_short4 bits:i16:128:seed=3 bits:i16:128:seed=4 zeros:i16:2304 zeros:ui16:256 global=32 local=16
// RUN builtins_uint2 bits:ui32:64:seed=3 bits:ui32:64:seed=4 zeros:ui32:1152 zeros:ui32:128 global=32 local=16
kernel void products_of_24_bits(global const int *a, global const int *b, global int *out) {
    int i = get_global_id(0), x = a[i] >> 8, y = b[i] >> 8;
    out[2 * i] = mul24(x, y);
    out[2 * i + 1] = mad24(x, y, b[i]);
}
// RUN products_of_24_bits rand:i32:64:seed=1 rand:i32:64:seed=2 zeros:i32:128 global=64
kernel void upsampled(global const uchar *a, global const ushort *b, global const uint *c, global ulong *out) {
    int i = get_global_id(0);
    out[3 * i] = upsample(a[i], a[i + 1]);
    out[3 * i + 1] = upsample((short)b[i], b[i + 1]);
    out[3 * i + 2] = upsample(c[i], c[i + 1]);
}
// RUN upsampled rand:ui8:65 rand:ui16:65 rand:ui32:65 zeros:ui64:192 global=64
#define SATURATED(T) \
    kernel void saturated_##T(global const T *a, global const T *b, global T *out) { \
        int i = get_global_id(0); \
        out[i] = mad_sat(a[i], b[i], (T)(b[i] << 1)); \
    }
SATURATED(char)
SATURATED(ushort)
SATURATED(int)
SATURATED(uint)
// RUN saturated_char bits:i8:96:seed=3 bits:i8:96:seed=4 zeros:i8:96 global=96
// RUN saturated_ushort bits:ui16:96:seed=3 bits:ui16:96:seed=4 zeros:ui16:96 global=96
// RUN saturated_int bits:i32:96:seed=3 bits:i32:96:seed=4 zeros:i32:96 global=96
// RUN saturated_uint bits:ui32:96:seed=3 bits:ui32:96:seed=4 zeros:ui32:96 global=96
