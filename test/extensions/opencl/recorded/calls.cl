int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }
kernel void factorials(global const int *in, global int *out) {
    int i = get_global_id(0);
    out[i] = factorial(in[i] & 15);
}
__attribute__((noinline)) int poly(int x, int y) { return (x * 3 + y) ^ (y << 2); }
kernel void subroutine(global const int *in, global int *out) {
    int i = get_global_id(0), x = in[i];
    int r = poly(x, i);
    if (x > 5)
        r += poly(r, x);
    out[i] = r;
}
int even(int n);
int odd(int n) { return n == 0 ? 0 : even(n - 1); }
int even(int n) { return n == 0 ? 1 : odd(n - 1); }
kernel void parity(global const int *in, global int *out) {
    int i = get_global_id(0);
    out[i] = even(in[i] & 31);
}
// RUN factorials arange:i32:150 zeros:i32:150 global=150 local=50
// RUN subroutine small:i32:96 zeros:i32:96 global=96 local=32
// RUN parity rand:i32:150 zeros:i32:150 global=150 local=50
