// Operators of every integer type, of scalars and of vectors.
#define OPERATORS(T) \
    kernel void operators_##T(global const T *a, global const T *b, global T *out) { \
        int i = get_global_id(0); \
        T x = a[i], y = b[i], d = (y & (T)(62)) | (T)(1); \
        out += 14 * i; \
        out[0] = x + y; \
        out[1] = x - y; \
        out[2] = x * y; \
        out[3] = x / d; \
        out[4] = x % d; \
        out[5] = x & y; \
        out[6] = x | ~y; \
        out[7] = x ^ y; \
        out[8] = x << (y & (T)(7)); \
        out[9] = x >> (y & (T)(7)); \
        out[10] = (x < y) ? x : y; \
        out[11] = -x; \
        out[12] = x * (T)(5) + y; \
        out[13] = (x == y) ? (T)(1) : (x >= y) ? (T)(2) : (T)(3); \
    }
OPERATORS(char)
OPERATORS(uchar)
OPERATORS(short)
OPERATORS(ushort)
OPERATORS(int)
OPERATORS(uint)
OPERATORS(long)
OPERATORS(ulong)
OPERATORS(char16)
OPERATORS(uchar2)
OPERATORS(short8)
OPERATORS(ushort2)
OPERATORS(int4)
OPERATORS(uint8)
OPERATORS(long2)
OPERATORS(ulong4)
// RUN operators_char bits:i8:96:seed=1 bits:i8:96:seed=2 zeros:i8:1344 global=96 local=48
// RUN operators_uchar bits:ui8:96:seed=1 bits:ui8:96:seed=2 zeros:ui8:1344 global=96 local=48
// RUN operators_short bits:i16:96:seed=1 bits:i16:96:seed=2 zeros:i16:1344 global=96 local=48
// RUN operators_ushort bits:ui16:96:seed=1 bits:ui16:96:seed=2 zeros:ui16:1344 global=96 local=48
// RUN operators_int bits:i32:96:seed=1 bits:i32:96:seed=2 zeros:i32:1344 global=96 local=48
// RUN operators_uint bits:ui32:96:seed=1 bits:ui32:96:seed=2 zeros:ui32:1344 global=96 local=48
// RUN operators_long bits:i64:96:seed=1 bits:i64:96:seed=2 zeros:i64:1344 global=96 local=48
// RUN operators_ulong bits:ui64:96:seed=1 bits:ui64:96:seed=2 zeros:ui64:1344 global=96 local=48
// RUN operators_char16 bits:i8:512:seed=1 bits:i8:512:seed=2 zeros:i8:7168 global=32
// RUN operators_uchar2 bits:ui8:64:seed=1 bits:ui8:64:seed=2 zeros:ui8:896 global=32
// RUN operators_short8 bits:i16:256:seed=1 bits:i16:256:seed=2 zeros:i16:3584 global=32
// RUN operators_ushort2 bits:ui16:64:seed=1 bits:ui16:64:seed=2 zeros:ui16:896 global=32
// RUN operators_int4 bits:i32:128:seed=1 bits:i32:128:seed=2 zeros:i32:1792 global=32
// RUN operators_uint8 bits:ui32:256:seed=1 bits:ui32:256:seed=2 zeros:ui32:3584 global=32
// RUN operators_long2 bits:i64:64:seed=1 bits:i64:64:seed=2 zeros:i64:896 global=32
// RUN operators_ulong4 bits:ui64:128:seed=1 bits:ui64:128:seed=2 zeros:ui64:1792 global=32
