constant int primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};
global int counter = 5;
global int *where = &counter;
kernel void table(global const int *in, global int *out) {
    int i = get_global_id(0);
    out[i] = primes[in[i] & 7];
}
kernel void globals(global int *out) {
    int i = get_global_id(0);
    atomic_add(&counter, 1);
    if (i == 0)
        out[0] = *where > 0;
}
// RUN table rand:i32:64 zeros:i32:64 global=64 local=32
// RUN globals zeros:i32:1 global=64 local=32
