kernel void divide(global const int *a, global const int *b, global int *q, global int *r) {
    int i = get_global_id(0);
    q[i] = a[i] / b[i];
    r[i] = a[i] % b[i];
}
kernel void divide_unsigned(global const uint *a, global const uint *b, global uint *q, global uint *r) {
    int i = get_global_id(0);
    q[i] = a[i] / b[i];
    r[i] = a[i] % b[i];
}
kernel void divide_long(global const long *a, global const long *b, global long *q, global long *r) {
    int i = get_global_id(0);
    q[i] = a[i] / b[i];
    r[i] = a[i] % b[i];
}
kernel void builtins_int(global const int *a, global const int *b, global int *out) {
    int i = get_global_id(0), x = a[i], y = b[i];
    out += 16 * i;
    out[0] = clz(x);
    out[1] = ctz(x);
    out[2] = popcount(x);
    out[3] = rotate(x, y);
    out[4] = mul_hi(x, y);
    out[5] = mad_hi(x, y, x);
    out[6] = add_sat(x, y);
    out[7] = sub_sat(x, y);
    out[8] = hadd(x, y);
    out[9] = rhadd(x, y);
    out[10] = abs_diff(x, y);
    out[11] = bitselect(x, y, 0x0f0f0f0f);
    out[12] = mad24(x, y, 3);
    out[13] = clamp(x, -100, 100);
    out[14] = (x & y) | (~x & 0x1234) | (y ^ x);
    out[15] = x + y + 77;
}
kernel void builtins_ulong(global const ulong *a, global const ulong *b, global ulong *out) {
    int i = get_global_id(0);
    ulong x = a[i], y = b[i];
    out += 12 * i;
    out[0] = x + y;
    out[1] = x * y;
    out[2] = mul_hi(x, y);
    out[3] = x >> (y & 63);
    out[4] = clz(x);
    out[5] = popcount(x);
    out[6] = rotate(x, y);
    out[7] = min(x, y);
    out[8] = x - y;
    out[9] = add_sat(x, y);
    out[10] = upsample((uint)x, (uint)y);
    out[11] = x < y ? x : y * 3;
}
kernel void builtins_short(global const short *a, global const short *b, global short *out) {
    int i = get_global_id(0);
    short x = a[i], y = b[i];
    out += 8 * i;
    out[0] = rotate(x, y);
    out[1] = add_sat(x, y);
    out[2] = mul_hi(x, y);
    out[3] = x / (short)(y | 1);
    out[4] = clz(x);
    out[5] = rhadd(x, y);
    out[6] = x * y;
    out[7] = x >> 3;
}
