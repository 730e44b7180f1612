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
// RUN divide rand:i32:64:seed=1 rand:i32:64:seed=5 zeros:i32:64 zeros:i32:64 global=64
// RUN divide_unsigned bits:ui32:64:seed=1 rand:ui32:64:seed=2 zeros:ui32:64 zeros:ui32:64 global=64
// RUN divide_long bits:i64:64:seed=1 rand:i64:64:seed=2 zeros:i64:64 zeros:i64:64 global=64
