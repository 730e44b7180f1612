kernel void hello(global const int *in, float scale) {
    int i = get_global_id(0);
    if (in[i] > 2)
        printf("item %d: %d times %f is %s, %v4d\n", i, in[i], scale, in[i] & 1 ? "odd" : "even", (int4)(i, 1, 2, 3));
}
// RUN hello arange:i32:8 f32:1.5 global=8
