// Kernels of published measurements that were written for one work item, as their sources describe them. What matters
// here is what Intel's compiler makes of them: it joins loads, unrolls loops and chooses the lanes of a subgroup.

#pragma OPENCL EXTENSION cl_khr_fp16 : enable

// OpenCL-Benchmark's tests of bandwidth: items are STRIDE numbers apart, turns STEP.

kernel void read_numbers(global const float* x, global float* y) {
  const uint item = get_global_id(0);
  float sum = 0.0f;
  for (uint turn = 0; turn < TURNS; turn++) sum += x[item * STRIDE + turn * STEP];
  y[item] = sum;
}

kernel void write_numbers(global float* x) {
  const uint item = get_global_id(0);
  for (uint turn = 0; turn < TURNS; turn++) x[item * STRIDE + turn * STEP] = 0.0f;
}

// Sums of rows of a table of WIDTH numbers: an item has VECTOR of them.

#if VECTOR == 1
#define NUMBERS half
#define SUMS float
#define WIDENED convert_float
#define NARROWED convert_half
#else
#define NUMBERS half8
#define SUMS float8
#define WIDENED convert_float8
#define NARROWED convert_half8
#endif

kernel void embedding_bag(global const NUMBERS* table, global const long* indices, global const long* bags, global NUMBERS* y) {
  const uint item = get_global_id(0), columns = WIDTH / VECTOR, bag = item / columns;
  SUMS sum = 0.0f;
  for (long n = bags[bag]; n < bags[bag + 1]; n++) sum += WIDENED(table[indices[n] * columns + item % columns]);
  y[item] = NARROWED(sum);
}
