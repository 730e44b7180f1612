#pragma OPENCL EXTENSION cl_ext_float_atomics : enable
kernel void sum_floats(global const float *in, global atomic_float *sum, global atomic_int *seen, global int *got) {
    int i = get_global_id(0);
    atomic_fetch_add_explicit(sum, in[i], memory_order_relaxed, memory_scope_device);
    atomic_fetch_max_explicit(sum + 1, in[i], memory_order_relaxed, memory_scope_device);
    int expected = i;
    atomic_compare_exchange_strong(seen, &expected, i + 1);
    atomic_store_explicit(seen + 1, 7, memory_order_release, memory_scope_device);
    got[i] = atomic_load_explicit(seen + 1, memory_order_acquire, memory_scope_device);
    atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, memory_scope_device);
}
// RUN sum_floats arange:f32:96 zeros:f32:2 full:i32:2:100 zeros:i32:96 global=96 local=32
