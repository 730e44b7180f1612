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

// Sizes are arguments, as in torch, and divisions by them take long; CHECKED kernels assert that indices are in range.

kernel void embedding_bag(global const NUMBERS* table, global const long* indices, global const long* bags, global NUMBERS* y, global long* bag_of, global long* lengths, global int* failed, long rows, long columns, long padding) {
  const ulong item = get_global_id(0);
  const long bag = item / columns, column = item % columns;
  const long first = bags[bag], last = bags[bag + 1];
  long padded = 0;
  SUMS sum = 0.0f;
  for (long n = first; n < last; n++) {
    const long index = indices[n];
#if CHECKED
    if (index >= rows) failed[0] = 1;
#endif
    if (column == 0) bag_of[n] = bag;
    if (VECTOR > 1 || index != padding) sum += WIDENED(table[index * columns + column]);
    else padded++;
  }
  if (column == 0) lengths[bag] = last - first - padded;
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
// channels. Items are counted by 32 bits if they have one channel, and by 64 if they have more.

#if VECTOR == 1
#define COUNT int
#else
#define COUNT ulong
#endif

kernel void max_pool(global const WIDE(half)* x, global WIDE(half)* y, global WIDE(long)* places, int planes, int in, int out, int size, int stride) {
  const COUNT item = get_global_id(0);
  const int columns = planes / VECTOR, c = item % columns, image = item / (out * out * columns);
  const int oy = item / columns / out % out, ox = item / columns % out;
  const int bottom = min(oy * stride + size, in), right = min(ox * stride + size, in);
  WIDE(half) most = (WIDE(half))(-65504.0h);
  WIDE(long) place = (WIDE(long))(-1);
#if VECTOR == 1
#pragma unroll
#endif
  for (int iy = oy * stride; iy < bottom; iy++)
#if VECTOR == 1
#pragma unroll
#endif
    for (int ix = ox * stride; ix < right; ix++) {
      const WIDE(half) found = x[image * in * in * columns + c + iy * in * columns + ix * columns];
      const WIDE(short) more = (WIDE(short))((found > most) | isnan(found));
      place = select(place, (WIDE(long))(iy * in + ix), WIDE(convert_long)(more));
      most = select(most, found, more);
    }
  y[item] = most;
  places[item] = place;
}

kernel void max_pool_gradient(global const WIDE(half)* dy, global const long* places, global WIDE(half)* dx, int planes, int in, int out, int size, int stride) {
  const COUNT item = get_global_id(0);
  const int columns = planes / VECTOR, each = in * in * columns, image = item / each, c = item % columns;
  const long place = (long)((item % each) - c) / columns;
  const int ix = place % in, iy = place / in;
  const int top = iy < size ? 0 : (iy - size) / stride + 1, left = ix < size ? 0 : (ix - size) / stride + 1;
  const int bottom = min(iy / stride + 1, out), right = min(ix / stride + 1, out);
  WIDE(half) sum = (WIDE(half))(0.0h);
  for (int oy = top; oy < bottom; oy++)
    for (int ox = left; ox < right; ox++) {
      const int at = image * out * out * columns + c + oy * out * columns + ox * columns;
#if VECTOR == 1
      if (places[at] == place) sum += dy[at];
#else
      const WIDE(half) found = dy[at];
#pragma unroll
      for (int i = 0; i < VECTOR; i++)
        if (places[(long)at * VECTOR + i] == place) ((half*)&sum)[i] += ((const half*)&found)[i];
#endif
    }
  dx[item] = sum;
}

// Sums over rows of `(x - mean) * scale * d` and `d` by one group of 32 x 32 items, which has a row for each subgroup.

kernel void column_sums_alone(global const float* x, global const float* d, global const float* means, global const float* scales, global float* y, int rows, int columns) {
  local float gammas[32][32], betas[32][32];
  const int lane = get_local_id(0), part = get_local_id(1);
  float gamma = 0.0f, beta = 0.0f;
  for (int row = part; row < rows; row += 32) {
    const float mean = means[row], scale = scales[row];
    if (lane < columns) {
      const float value = d[row * columns + lane];
      gamma += value * (x[row * columns + lane] - mean) * scale;
      beta += value;
    }
  }
  gammas[part][lane] = gamma;
  betas[part][lane] = beta;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 1; step < 32; step *= 2) {
    if (part % (2 * step) == 0) {
      gammas[part][lane] += gammas[part + step][lane];
      betas[part][lane] += betas[part + step][lane];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (part == 0 && lane < columns) {
    y[lane] = gammas[0][lane];
    y[columns + lane] = betas[0][lane];
  }
}

// The same of 1024 rows by each group of 32 x 8 items; an item adds up `each` rows after the other.

kernel void column_sums_of_tiles(global const float* x, global const float* d, global const float* means, global const float* scales, global float* y, int rows, int columns, int each) {
  local float gammas[64][32], betas[64][32];
  const int lane = get_local_id(0), part = get_local_id(1), tile = get_group_id(1);
  if (lane < columns) {
    for (int first = 0; first < 1024 / each; first += 8) {
      float gamma = 0.0f, beta = 0.0f;
      for (int i = 0; i < each; i++) {
        const int row = tile * 1024 + first * each + i * 8 + part;
        if (row < rows) {
          const float value = d[row * columns + lane];
          beta += value;
          gamma += value * (x[row * columns + lane] - means[row]) * scales[row];
        }
      }
      gammas[first + part][lane] = gamma;
      betas[first + part][lane] = beta;
    }
    for (int i = 8; i < 1024 / each; i += 8) {
      gammas[part][lane] += gammas[i + part][lane];
      betas[part][lane] += betas[i + part][lane];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (part == 0 && lane < columns) {
    float gamma = 0.0f, beta = 0.0f;
    for (int i = 0; i < 8; i++) {
      gamma += gammas[i][lane];
      beta += betas[i][lane];
    }
    y[tile * columns + lane] = gamma;
    y[rows / 1024 * columns + tile * columns + lane] = beta;
  }
}

// A row of bytes times a matrix of them; an item has a column.

kernel void row_times_bytes(global const char* a, global const char* b, global int* c, int k, int n) {
  const int column = get_global_id(0);
  int sum = 0;
  for (int i = 0; i < k; i++) sum += a[i] * b[i * n + column];
  c[column] = sum;
}

// Rows of halves divided by their norms, as bytes whose scale is the greatest of a row: an item has a row, or a group of
// 256 items.

char quantised(float x, float scale) { return (char)clamp(rint(x / scale), -127.0f, 127.0f); }

kernel void quantise_alone(global const half* x, global char* y, global float* scales, int n) {
  const int row = get_global_id(0);
  global const half* own = x + row * n;
  float sum = 0.0f, most = 0.0f;
  for (int i = 0; i < n; i++) { const float value = own[i]; sum += value * value; }
  const float inverse = rsqrt(sum / n + 1e-6f);
  for (int i = 0; i < n; i++) { const float value = fabs((float)own[i] * inverse); if (value > most) most = value; }
  const float scale = most <= 0.0f ? 1.0f : most / 127.0f;
  scales[row] = scale;
  for (int i = 0; i < n; i++) y[row * n + i] = quantised((float)own[i] * inverse, scale);
}

kernel void quantise_by_group(global const half* x, global char* y, global float* scales, int n) {
  const int row = get_group_id(0), item = get_local_id(0);
  global const half* own = x + row * n;
  float sum = 0.0f, most = 0.0f;
  for (int i = item; i < n; i += 256) { const float value = own[i]; sum += value * value; }
  const float inverse = rsqrt(work_group_reduce_add(sum) / n + 1e-6f);
  for (int i = item; i < n; i += 256) { const float value = fabs((float)own[i] * inverse); if (value > most) most = value; }
  most = work_group_reduce_max(most);
  const float scale = most <= 0.0f ? 1.0f : most / 127.0f;
  if (item == 0) scales[row] = scale;
  for (int i = item; i < n; i += 256) y[row * n + i] = quantised((float)own[i] * inverse, scale);
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

// The eight greatest numbers of rows, each by one subgroup: every item keeps those of its share in order, and subgroups
// join them by a bitonic merge. BYTES is 2 for bfloat16, 4 for floats.

#if BYTES == 2
#define KEYS ushort8
#define KEY(keys, n) as_float((uint)(keys)[n] << 16)
#define SHARE 8
#else
#define KEYS float4
#define KEY(keys, n) (keys)[n]
#define SHARE 4
#endif

bool better(float a, int at_a, float b, int at_b) {
  if (at_a == -1) return false;
  if (at_b == -1) return true;
  if (isnan(a) != isnan(b)) return isnan(a);
  return isnan(a) ? at_a < at_b : a > b;
}

__attribute__((intel_reqd_sub_group_size(32)))
kernel void greatest(global const KEYS* x, global float* y, global long* places) {
  const uint row = get_global_id(0) / 32, lane = get_sub_group_local_id();
  float top[8];
  int at[8], count = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) { top[i] = -INFINITY; at[i] = -1; }
  for (int base = lane; base < WIDTH / SHARE; base += 32) {
    const KEYS keys = x[(ulong)row * (WIDTH / SHARE) + base];
#pragma unroll
    for (int n = 0; n < SHARE; n++) {
      const float key = KEY(keys, n);
      const int place = base * SHARE + n;
      if (count < 8 || better(key, place, top[7], at[7])) {
        bool done = false;
#pragma unroll
        for (int i = 7; i >= 0; i--) {
          const bool stop = i == 0 || (i <= count && !better(key, place, top[i - 1], at[i - 1]));
          if (!done) {
            top[i] = stop ? key : top[i - 1];
            at[i] = stop ? place : at[i - 1];
          }
          done |= stop;
        }
      }
      if (count < 8) count++;
    }
  }
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    float others[8];
    int places_of_others[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
      others[i] = intel_sub_group_shuffle_xor(top[i], step);
      places_of_others[i] = intel_sub_group_shuffle_xor(at[i], step);
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
      if (better(others[7 - i], places_of_others[7 - i], top[i], at[i])) {
        top[i] = others[7 - i];
        at[i] = places_of_others[7 - i];
      }
#pragma unroll
    for (int stride = 4; stride >= 1; stride /= 2)
#pragma unroll
      for (int i = 0; i < 8; i++) {
        const int j = i ^ stride;
        if (j > i && better(top[j], at[j], top[i], at[i])) {
          const float key = top[i];
          top[i] = top[j];
          top[j] = key;
          const int place = at[i];
          at[i] = at[j];
          at[j] = place;
        }
      }
  }
  if (lane == 0)
    for (int i = 0; i < 8; i++) { y[row * 8 + i] = top[i]; places[row * 8 + i] = at[i]; }
}

// A causal convolution of four tokens over 16 heads of 256 numbers of q and k and 256 of v, of bfloat16, and its silu; a
// token's numbers include 256 of z for each head, which are copied. An item has four numbers; SEQUENCES follow each other.

#define HEADS 16
#define EACH 512
#define TOKEN 768

uint sequence_of(global const int* starts, int token) {
  for (uint i = 0; i < SEQUENCES; i++)
    if (token < starts[i + 1]) return i;
  return SEQUENCES - 1;
}

uint place_of(uint head, uint feature) {
  return feature < 128 ? head * 128 + feature
                       : feature < 256 ? HEADS * 128 + head * 128 + feature - 128
                                       : HEADS * 256 + head * 256 + feature - 256;
}

void put_token(global ushort4* q, global ushort4* k, global ushort4* v, uint token, uint head, uint feature, float4 sum) {
  const float4 value = sum / (1.0f + exp(-sum));
  const ushort4 found = (ushort4)(intel_convert_bfloat16_as_ushort(value.x), intel_convert_bfloat16_as_ushort(value.y),
                                  intel_convert_bfloat16_as_ushort(value.z), intel_convert_bfloat16_as_ushort(value.w));
  if (feature < 128) q[(token * HEADS * 128 + head * 128 + feature) / 4] = found;
  else if (feature < 256) k[(token * HEADS * 128 + head * 128 + feature - 128) / 4] = found;
  else v[(token * HEADS * 256 + head * 256 + feature - 256) / 4] = found;
}

float4 floats_of(ushort4 bits) { return (float4)(as_float((uint)bits.x << 16), as_float((uint)bits.y << 16), as_float((uint)bits.z << 16), as_float((uint)bits.w << 16)); }

__attribute__((intel_reqd_sub_group_size(32)))
kernel void convolve(global const ushort4* x, global const ushort* weights, global const int* starts, global ushort4* q, global ushort4* k, global ushort4* v) {
  const int token = get_group_id(1);
  const uint head = get_group_id(0), feature = get_local_id(0) * 4;
  const uint place = place_of(head, feature);
  const int first = starts[sequence_of(starts, token)];
  ushort own[16];
#pragma unroll
  for (uint i = 0; i < 16; i++) own[i] = weights[place * 4 + i];
  float4 sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int source = token - 3 + i;
    const ushort4 bits = source >= first ? x[(source * HEADS * TOKEN + head * TOKEN + feature) / 4] : (ushort4)(0);
    sum += floats_of(bits) * floats_of((ushort4)(own[i], own[4 + i], own[8 + i], own[12 + i]));
  }
  put_token(q, k, v, token, head, feature, sum);
}

__attribute__((intel_reqd_sub_group_size(32)))
kernel void copy_gates(global const ushort4* x, global ushort4* z) {
  const uint token = get_group_id(1), head = get_group_id(0), feature = get_local_id(0);
  z[(token * HEADS + head) * 64 + feature] = x[(token * HEADS * TOKEN + head * TOKEN + EACH) / 4 + feature];
}

// The same by groups of 64 items: eight tokens and the three before them in shared local memory.

__attribute__((intel_reqd_sub_group_size(16)))
kernel void convolve_tiles(global const ushort4* x, global const ushort* weights, global const int* starts, global ushort4* q, global ushort4* k, global ushort4* v, global ushort4* z) {
  local int found[3];
  local ushort4 tokens[11][64];
  const uint head = get_group_id(0), tile = get_group_id(1) / 2, part = get_group_id(1) % 2, item = get_local_id(0);
  if (item == 0) {
    int before = 0;
    for (uint i = 0; i < SEQUENCES; i++) {
      const int length = starts[i + 1] - starts[i], tiles = (length + 7) / 8;
      if (tile < before + tiles) {
        found[0] = (tile - before) * 8;
        found[1] = starts[i];
        found[2] = starts[i + 1];
        break;
      }
      before += tiles;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int tile_first = found[0], first = found[1], length = found[2] - first;
  const uint feature = part * 256 + item * 4, place = place_of(head, feature);
  for (int slot = 0; slot < 11; slot++) {
    const int token = tile_first + slot - 3;
    if (slot + 2 < 11 && token + 2 >= 0 && token + 2 < length)
      prefetch(x + ((first + token + 2) * HEADS * TOKEN + head * TOKEN + feature) / 4, 1);
    tokens[slot][item] = token >= 0 && token < length ? x[((first + token) * HEADS * TOKEN + head * TOKEN + feature) / 4] : (ushort4)(0);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  ushort own[16];
#pragma unroll
  for (uint i = 0; i < 16; i++) own[i] = weights[place * 4 + i];
  for (int t = 0; t < min(8, length - tile_first); t++) {
    float4 sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; i++) sum += floats_of(tokens[t + i][item]) * floats_of((ushort4)(own[i], own[4 + i], own[8 + i], own[12 + i]));
    const uint token = first + tile_first + t;
    put_token(q, k, v, token, head, feature, sum);
    if (part == 1) z[(token * HEADS + head) * 64 + item] = x[(token * HEADS * TOKEN + head * TOKEN + EACH) / 4 + item];
  }
}
