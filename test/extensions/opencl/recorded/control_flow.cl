kernel void collatz(global const int *in, global int *out) {
    int i = get_global_id(0);
    int n = in[i], steps = 0;
    while (n != 1) {
        if (n & 1)
            n = 3 * n + 1;
        else
            n >>= 1;
        if (++steps > 500)
            break;
    }
    out[i] = steps;
}
kernel void classify(global const int *in, global int *out) {
    int i = get_global_id(0), x = in[i], r;
    switch (x % 7) {
    case 0: r = x * 3; break;
    case 1: r = x - 100; // falls through
    case 2: r = x ^ 0x55; break;
    case 3: return;
    case 4:
        r = 0;
        for (int k = 0; k < x; k++) {
            if (k == 5) continue;
            if (k > 9) goto out;
            r += k * in[k];
        }
        break;
    default: r = -x;
    }
out:
    out[i] = r;
}
// RUN collatz arange:i32:96 zeros:i32:96 global=96
// RUN classify arange:i32:96 zeros:i32:96 global=96
