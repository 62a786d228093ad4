// y = softmax(q kᵀ, where it is seen) v: a few queries of each head, and all that a cache has room for. Keys lie
// transposed, in blocks of 64 tokens; a thread computes the scores of one token, and neighbours read neighbours. Pieces
// of which no query sees a token are not read, so a step costs what was kept; of others, all keys and values are asked
// for before anything is waited for. Blocks of a cluster share a head's tokens,
// and add up their sums through each other's shared memory, in a fixed order.
constexpr int WARPS = THREADS / 32, LANES = WIDTH / 2, GROUPS = THREADS / LANES, PART = TOKENS / CLUSTER;
constexpr int EACH = (THREADS + GROUPS - 1) / GROUPS;  // tokens of a group, whose values it adds up

// Two neighbouring channels.
#if defined(ELEMENT_F16)
typedef u32 two;
__device__ __forceinline__ float first(two both) { return from_f16(both & 0xffff); }
__device__ __forceinline__ float second(two both) { return from_f16(both >> 16); }
#else
typedef float2 two;
__device__ __forceinline__ float first(two both) { return both.x; }
__device__ __forceinline__ float second(two both) { return both.y; }
#endif

__device__ __forceinline__ float of_cluster(float* place, int rank) {
#if CLUSTER > 1
  return cluster_load((u32)__cvta_generic_to_shared(place), rank);
#else
  return *place;
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS)
#if defined(PROLOGUE)  // which makes queries, and keeps the keys and values of their tokens
    cached_attention(const element* k, const element* v, const u8* seen, float* y PARAMETERS) {
  extern __shared__ __align__(128) u8 memory[];
  const float* q = (const float*)(memory + Q_AT);
#else
    cached_attention(const float* __restrict__ q, const element* __restrict__ k, const element* __restrict__ v,
                     const u8* __restrict__ seen, float* __restrict__ y) {
#endif
  __shared__ float query[ROWS][WIDTH], weight[ROWS][THREADS], parts[GROUPS][ROWS][WIDTH];
  __shared__ float largest[WARPS][ROWS], added[WARPS][ROWS], sums[ROWS][WIDTH], most[ROWS], total[ROWS];
  int t = threadIdx.x, warp = t / 32, rank = blockIdx.x % CLUSTER, head = blockIdx.x / CLUSTER;
  int group = t / LANES, channel = t % LANES * 2, begin = rank * PART;
#if defined(PROLOGUE)
  PROLOGUE(memory, blockIdx.x == 0);
#else
  wait_for_previous();
#endif
  k += (u64)head * TOKENS * WIDTH, v += (u64)head * TOKENS * WIDTH, q += head * ROWS * WIDTH, y += head * ROWS * WIDTH;
  for (int i = t; i < ROWS * WIDTH; i += THREADS) query[i / WIDTH][i % WIDTH] = q[i];
  float sum[ROWS][2] = {}, highest[ROWS], share[ROWS] = {};
#pragma unroll
  for (int r = 0; r < ROWS; r++) highest[r] = -INFINITE;
  for (int start = begin; start < begin + PART; start += THREADS) {
    int token = start + t, count = min(THREADS, begin + PART - start);
    bool sees[ROWS], any = false;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      sees[r] = t < count && seen[r * TOKENS + token];
      any |= sees[r];
    }
    if (!__syncthreads_or(any)) continue;
    // Beyond the last token it is the first one of the piece, which nothing is made of.
    const element* column = k + (u64)((t < count ? token : start) / 64) * WIDTH * 64 + (t < count ? token : start) % 64;
    element keys[WIDTH];
    two values[EACH];
#pragma unroll
    for (int d = 0; d < WIDTH; d++) keys[d] = column[d * 64];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      int i = group + e * GROUPS;
      values[e] = *(const two*)(v + (u64)(start + (i < count ? i : 0)) * WIDTH + channel);
    }
    float score[ROWS] = {};
#pragma unroll
    for (int d = 0; d < WIDTH; d++) {
      float key = widen(keys[d]);
#pragma unroll
      for (int r = 0; r < ROWS; r++) score[r] = __fmaf_rn(query[r][d], key, score[r]);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      score[r] = sees[r] ? score[r] * (SCALE) : -INFINITE;
      float high = score[r];
      for (int other = 16; other; other /= 2) high = fmaxf(high, __shfl_xor_sync(0xffffffff, high, other));
      if (t % 32 == 0) largest[warp][r] = high;
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      float high = highest[r];
      for (int w = 0; w < WARPS; w++) high = fmaxf(high, largest[w][r]);
      float kept = highest[r] == high ? 1.0f : expf(highest[r] - high);
      highest[r] = high, share[r] *= kept, sum[r][0] *= kept, sum[r][1] *= kept;
      float part = sees[r] ? expf(score[r] - high) : 0.0f;
      weight[r][t] = part;
      for (int other = 16; other; other /= 2) part += __shfl_xor_sync(0xffffffff, part, other);
      if (t % 32 == 0) added[warp][r] = part;
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < ROWS; r++)
      for (int w = 0; w < WARPS; w++) share[r] += added[w][r];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      int i = group + e * GROUPS;
      float by[ROWS], any_weight = 0;
#pragma unroll
      for (int r = 0; r < ROWS; r++) by[r] = i < count ? weight[r][i] : 0, any_weight += by[r];
      // What is behind the last token may be no number.
      float a = any_weight > 0 ? first(values[e]) : 0, b = any_weight > 0 ? second(values[e]) : 0;
#pragma unroll
      for (int r = 0; r < ROWS; r++) sum[r][0] = __fmaf_rn(by[r], a, sum[r][0]), sum[r][1] = __fmaf_rn(by[r], b, sum[r][1]);
    }
    __syncthreads();
  }
  if (group < GROUPS)
#pragma unroll
    for (int r = 0; r < ROWS; r++) parts[group][r][channel] = sum[r][0], parts[group][r][channel + 1] = sum[r][1];
  if (t == 0)
#pragma unroll
    for (int r = 0; r < ROWS; r++) most[r] = highest[r], total[r] = share[r];
  __syncthreads();
  for (int i = t; i < ROWS * WIDTH; i += THREADS) {
    float value = 0;
    for (int g = 0; g < GROUPS; g++) value += parts[g][i / WIDTH][i % WIDTH];
    sums[i / WIDTH][i % WIDTH] = value;
  }
#if CLUSTER > 1
  cluster_sync();
#else
  __syncthreads();
#endif
  for (int i = t + rank * THREADS; i < ROWS * WIDTH; i += THREADS * CLUSTER) {
    int r = i / WIDTH;
    float high = -INFINITE, value = 0, whole = 0;
    for (int b = 0; b < CLUSTER; b++) high = fmaxf(high, of_cluster(&most[r], b));
    for (int b = 0; b < CLUSTER; b++) {
      float own = of_cluster(&total[r], b), factor = own == 0 ? 0 : expf(of_cluster(&most[r], b) - high);
      whole = __fmaf_rn(factor, own, whole);
      value = __fmaf_rn(factor, of_cluster(&sums[r][i % WIDTH], b), value);
    }
    y[i] = value / whole;
  }
#if CLUSTER > 1
  cluster_sync();
#endif
}
