kernel void swap_bytes(global const char16 *in, global char16 *out) {
    int i = get_global_id(0);
    char16 v = in[i];
    out[i] = v.sfedcba9876543210 + (char16)(3);
}
kernel void matrix_row(global const float4 *m, global const float4 *v, global float4 *out) {
    int i = get_global_id(0);
    float4 a = v[i];
    out[i] = (float4)(dot(m[0], a), dot(m[1], a), dot(m[2], a), dot(m[3], a));
}
kernel void shuffle_vectors(global const int8 *in, global int8 *out, global const uint8 *masks) {
    int i = get_global_id(0);
    out[i] = shuffle(in[i], masks[i]);
}
kernel void three(global const short *in, global short *out) {
    int i = get_global_id(0);
    short3 v = vload3(i, in);
    vstore3(v.zxy * (short)5, i, out);
}
