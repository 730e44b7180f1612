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
// RUN swap_bytes rand:i8:512 zeros:i8:512 global=32
// RUN matrix_row small:f32:16 small:f32:128 zeros:f32:128 global=32
// RUN shuffle_vectors rand:i32:256 zeros:i32:256 rand:ui32:256 global=32
// RUN three rand:i16:96 zeros:i16:96 global=32
