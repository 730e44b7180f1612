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
#define WIDE(type) type
#else
#define JOINED(type, n) type##n
#define JOIN(type, n) JOINED(type, n)
#define WIDE(type) JOIN(type, VECTOR)
#endif
#define NUMBERS WIDE(half)
#define SUMS WIDE(float)
#define WIDENED WIDE(convert_float)
#define NARROWED WIDE(convert_half)

kernel void embedding_bag(global const NUMBERS* table, global const long* indices, global const long* bags, global NUMBERS* y) {
  const uint item = get_global_id(0), columns = WIDTH / VECTOR, bag = item / columns;
  SUMS sum = 0.0f;
  for (long n = bags[bag]; n < bags[bag + 1]; n++) sum += WIDENED(table[indices[n] * columns + item % columns]);
  y[item] = NARROWED(sum);
}

// OpenCL-Benchmark's products of four bytes.

kernel void byte_products(global int* x) {
  const uint item = get_global_id(0);
  uint a = x[item], b = item;
  for (uint turn = 0; turn < TURNS; turn++) {

    for (uint i = 0; i < 16; i++) {
      a += dot_4x8packed_ss_int(b, a);
    }
  }
  x[item] = a;
}

// Maximum of windows of 3 x 3, two apart, of images whose channels are adjacent, and its gradient; an item has VECTOR
// channels.

kernel void max_pool(global const WIDE(half)* x, global WIDE(half)* y, global WIDE(long)* places) {
  const ulong item = get_global_id(0);
  const uint columns = WIDTH / VECTOR, c = item % columns;
  const uint ox = item / columns % OUT, oy = item / columns / OUT % OUT, image = item / columns / OUT / OUT;
  WIDE(half) most = (WIDE(half))(-65504.0h);
  WIDE(long) place = (WIDE(long))(0);
  for (uint dy = 0; dy < 3; dy++)
    for (uint dx = 0; dx < 3; dx++) {
      const uint iy = 2 * oy + dy, ix = 2 * ox + dx;
      const WIDE(half) found = x[((ulong)image * IN * IN + iy * IN + ix) * columns + c];
      const WIDE(short) more = (WIDE(short))(found > most);
      place = select(place, (WIDE(long))(iy * IN + ix), WIDE(convert_long)(more));
      most = fmax(most, found);
    }
  y[item] = most;
  places[item] = place;
}

kernel void max_pool_gradient(global const WIDE(half)* dy, global const WIDE(long)* places, global WIDE(half)* dx) {
  const ulong item = get_global_id(0);
  const uint columns = WIDTH / VECTOR, c = item % columns;
  const uint ix = item / columns % IN, iy = item / columns / IN % IN, image = item / columns / IN / IN;
  const uint top = iy < 3 ? 0 : (iy - 3) / 2 + 1, left = ix < 3 ? 0 : (ix - 3) / 2 + 1;
  const uint bottom = min(iy / 2 + 1, (uint)OUT), right = min(ix / 2 + 1, (uint)OUT);
  SUMS sum = 0.0f;
  for (uint oy = top; oy < bottom; oy++)
    for (uint ox = left; ox < right; ox++) {
      const ulong at = ((ulong)image * OUT * OUT + oy * OUT + ox) * columns + c;
      const WIDE(long) mine = places[at] == (WIDE(long))(iy * IN + ix);
      sum += WIDENED(select((WIDE(half))(0.0h), dy[at], WIDE(convert_short)(mine)));
    }
  dx[item] = NARROWED(sum);
}

// A product of matrices of bytes by tiles of 16 x 16 in shared local memory.

kernel void tiled_bytes(global const char* a, global const char* b, global int* c) {
  local char tile_a[16][16], tile_b[16][16];
  const uint x = get_local_id(0), y = get_local_id(1), column = get_global_id(0), row = get_global_id(1);
  int sum = 0;
  for (uint k = 0; k < WIDTH; k += 16) {
    tile_a[y][x] = a[row * WIDTH + k + x];
    tile_b[y][x] = b[(k + y) * WIDTH + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < 16; i++) sum += tile_a[y][i] * tile_b[i][x];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[row * WIDTH + column] = sum;
}

// Rows of a matrix of bfloat16 times VECTOR columns of floats; a subgroup has a row.

float of_bf16(ushort bits) { return as_float((uint)bits << 16); }

__attribute__((intel_reqd_sub_group_size(32)))
kernel void rows_times_columns(global const ushort4* w, global const float4* x, global float* y) {
  const uint row = get_global_id(0) / 32, lane = get_sub_group_local_id();
  float sums[VECTOR];
  for (uint n = 0; n < VECTOR; n++) sums[n] = 0.0f;
  for (uint k = lane; k < WIDTH / 4; k += 32) {
    const ushort4 bits = w[row * (WIDTH / 4) + k];
    const float4 value = (float4)(of_bf16(bits.x), of_bf16(bits.y), of_bf16(bits.z), of_bf16(bits.w));
    for (uint n = 0; n < VECTOR; n++) sums[n] += dot(value, x[n * (WIDTH / 4) + k]);
  }
  for (uint n = 0; n < VECTOR; n++) {
    const float sum = sub_group_reduce_add(sums[n]);
    if (lane == 0) y[row * VECTOR + n] = sum;
  }
}

// The scores of experts for tokens: a subgroup has one expert and all tokens, or SLICES of them a part of the sum each.

__attribute__((intel_reqd_sub_group_size(16)))
kernel void route(global const float* x, global const float* w, global float* y) {
  const uint expert = get_group_id(0), lane = get_sub_group_local_id();
  for (uint token = 0; token < TOKENS; token++) {
    float sum = 0.0f;
    for (uint k = lane; k < WIDTH; k += 16) sum += x[token * WIDTH + k] * w[expert * WIDTH + k];
    sum = sub_group_reduce_add(sum);
    if (lane == 0) y[token * EXPERTS + expert] = sum;
  }
}

__attribute__((intel_reqd_sub_group_size(16)))
kernel void route_in_slices(global const float4* x, global const float4* w, global float* y) {
  local float parts[TOKENS][SLICES];
  const uint expert = get_group_id(0), lane = get_sub_group_local_id(), slice = get_local_id(0) / 16;
  const uint length = WIDTH / 4 / SLICES;
  for (uint token = 0; token < TOKENS; token++) {
    float sum = 0.0f;
    for (uint k = slice * length + lane; k < (slice + 1) * length; k += 16) sum += dot(x[token * (WIDTH / 4) + k], w[expert * (WIDTH / 4) + k]);
    sum = sub_group_reduce_add(sum);
    if (lane == 0) parts[token][slice] = sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (slice == 0)
    for (uint token = lane; token < TOKENS; token += 16) {
      float sum = 0.0f;
      for (uint n = 0; n < SLICES; n++) sum += parts[token][n];
      y[token * EXPERTS + expert] = sum;
    }
}
