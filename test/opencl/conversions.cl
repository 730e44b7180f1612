#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void convert_float(global const float *in, global int *i32, global uchar *u8, global half *h, global double *d) {
    int i = get_global_id(0);
    float x = in[i];
    i32[4 * i] = convert_int_rte(x);
    i32[4 * i + 1] = convert_int_rtz(x);
    i32[4 * i + 2] = convert_int_rtp(x);
    i32[4 * i + 3] = convert_int_sat_rtn(x);
    u8[i] = convert_uchar_sat(x);
    h[4 * i] = convert_half_rte(x);
    h[4 * i + 1] = convert_half_rtz(x);
    h[4 * i + 2] = convert_half_rtp(x);
    h[4 * i + 3] = convert_half_rtn(x);
    d[i] = x;
}
kernel void convert_int(global const int *in, global float *f, global char *c, global short *s, global long *l) {
    int i = get_global_id(0);
    int x = in[i];
    f[4 * i] = convert_float_rte(x);
    f[4 * i + 1] = convert_float_rtz(x);
    f[4 * i + 2] = convert_float_rtp(x);
    f[4 * i + 3] = convert_float_rtn(x);
    c[i] = convert_char_sat(x);
    s[i] = convert_short_sat(x);
    l[i] = x;
}
kernel void convert_double(global const double *in, global float *f, global long *l, global ulong *u) {
    int i = get_global_id(0);
    double x = in[i];
    f[2 * i] = convert_float_rte(x);
    f[2 * i + 1] = convert_float_rtz(x);
    l[i] = convert_long_rte(x);
    u[i] = convert_ulong_sat(x);
}
