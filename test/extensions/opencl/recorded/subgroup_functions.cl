// Functions of subgroups, of every type.
#define FUNCTIONS(T) \
    __attribute__((intel_reqd_sub_group_size(16))) kernel void group_##T(global const T *in, global T *out) { \
        int i = get_global_id(0); \
        T x = in[i]; \
        uint l = get_sub_group_local_id(); \
        out += 9 * i; \
        out[0] = sub_group_reduce_add(x); \
        out[1] = sub_group_reduce_min(x); \
        out[2] = sub_group_scan_exclusive_add(x); \
        out[3] = sub_group_scan_inclusive_max(x); \
        out[4] = sub_group_broadcast(x, 5); \
        out[5] = sub_group_shuffle(x, 15 - l); \
        out[6] = sub_group_shuffle_xor(x, 3); \
        out[7] = sub_group_shuffle_down(x, 0); \
        out[8] = l < 11 ? sub_group_non_uniform_reduce_add(x) : x; \
    }
FUNCTIONS(char)
FUNCTIONS(short)
FUNCTIONS(uint)
FUNCTIONS(long)
FUNCTIONS(float)
FUNCTIONS(half)
FUNCTIONS(double)
// RUN group_char small:i8:64 zeros:i8:576 global=64 local=32
// RUN group_short small:i16:64 zeros:i16:576 global=64 local=32
// RUN group_uint rand:ui32:64 zeros:ui32:576 global=64 local=32
// RUN group_long rand:i64:64 zeros:i64:576 global=64 local=32
// RUN group_float small:f32:64 zeros:f32:576 global=64 local=32
// RUN group_half small:f16:64 zeros:f16:576 global=64 local=32
// RUN group_double small:f64:64 zeros:f64:576 global=64 local=32
__attribute__((intel_reqd_sub_group_size(16))) kernel void ballots(global const int *in, global uint *out) {
    int i = get_global_id(0);
    uint4 b = sub_group_ballot(in[i] > 0);
    out += 7 * i;
    out[0] = b.x & 0xffff;
    out[1] = sub_group_ballot_bit_count(b);
    out[2] = sub_group_ballot_exclusive_scan(b);
    out[3] = sub_group_inverse_ballot(b);
    out[4] = in[i] > 0 ? sub_group_ballot_find_lsb(b) : 99;
    out[5] = sub_group_clustered_reduce_add(in[i], 4);
    out[6] = sub_group_elect();
}
// RUN ballots small:i32:64 zeros:ui32:448 global=64 local=32
#define BLOCKS(T, S) \
    __attribute__((intel_reqd_sub_group_size(16))) kernel void blocks_##T(global T *in, global T *out) { \
        int at = 128 * get_group_id(0); \
        T##8 v = intel_sub_group_block_read##S##8(in + at); \
        intel_sub_group_block_write##S##8(out + at, v + (T##8)(get_sub_group_local_id())); \
    }
BLOCKS(uchar, _uc)
BLOCKS(ushort, _us)
BLOCKS(ulong, _ul)
// RUN blocks_uchar rand:ui8:256 zeros:ui8:256 global=32 local=16
// RUN blocks_ushort rand:ui16:256 zeros:ui16:256 global=32 local=16
// RUN blocks_ulong rand:ui64:256 zeros:ui64:256 global=32 local=16
