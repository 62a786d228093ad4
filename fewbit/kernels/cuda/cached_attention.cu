// y = softmax(q kᵀ, where it is seen) v: a few queries of each head, and all that a cache has room for. Keys lie
// transposed, in pieces of 64 tokens; a thread computes the scores of one token, and neighbours read neighbours. Pieces
// of which no query sees a token are not read, so a step costs what was kept; of others, all keys and values are asked
// for at once. Loops stay loops: code that runs once is fetched once, which takes longer than to execute it. Blocks of a
// cluster share a head's tokens, piece by piece in turn; the first one adds up their sums, in a fixed order.
constexpr int WARPS = THREADS / 32, LANES = WIDTH / 2, GROUPS = THREADS / LANES, PART = TOKENS / CLUSTER;
constexpr int AT_A_TIME = PIECES * 64, PIECE = 64 * WIDTH, PIECE_BYTES = PIECE * sizeof(element);
static_assert(PIECE_BYTES % 16 == 0 && PIECES <= WARPS / 2, "pieces are copied 16 bytes at a time");

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

// From the second-level cache, as another launch may just have written it.
__device__ __forceinline__ bool is_seen(const u8* place) {
  u32 bit;
  asm volatile("ld.global.cg.u8 %0, [%1];" : "=r"(bit) : "l"(place) : "memory");
  return bit;
}
// All threads of a block ask for a piece.
__device__ __forceinline__ void copy_piece(element* to, const element* from) {
  u32 at = (u32)__cvta_generic_to_shared(to);
#pragma unroll 1
  for (int i = threadIdx.x * 16; i < PIECE_BYTES; i += THREADS * 16)
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at + i), "l"((const u8*)from + i) : "memory");
#else
    *(uint4*)((u8*)to + i) = *(const uint4*)((const u8*)from + i);
#endif
}
template <int LEFT>
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}
__device__ __forceinline__ void end_of_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS)
#if defined(PROLOGUE)  // which makes queries, and keeps the keys and values of their tokens
    cached_attention(const element* k, const element* v, const u8* seen, float* y PARAMETERS) {
#else
    cached_attention(const float* __restrict__ q, const element* __restrict__ k, const element* __restrict__ v,
                     const u8* __restrict__ seen, float* __restrict__ y) {
#endif
  extern __shared__ __align__(128) u8 memory[];
  element *keys = (element*)(memory + TILES_AT), *values = keys + PIECES * PIECE;
  float(*parts)[ROWS][WIDTH] = (float(*)[ROWS][WIDTH])keys;  // when these have been used
  float* got = (float*)(memory + GOT_AT);  // [rank][row][channel], then the largest and the sum of weights
  __shared__ float query[ROWS][WIDTH], weight[ROWS][AT_A_TIME];
  __shared__ float largest[AT_A_TIME / 32][ROWS], added[AT_A_TIME / 32][ROWS], factors[CLUSTER][ROWS];
  __shared__ int seen_by[2][WARPS];
  int t = threadIdx.x, warp = t / 32, rank = blockIdx.x % CLUSTER, head = blockIdx.x / CLUSTER;
  int group = t / LANES, channel = t % LANES * 2;
  k += (u64)head * TOKENS * WIDTH, v += (u64)head * TOKENS * WIDTH, y += head * ROWS * WIDTH;
#if CLUSTER > 1
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
  auto piece_of = [&](int i) { return i / 64 * CLUSTER + rank; };
  bool sees[ROWS], any = false;
  u32 used = 0;  // a bit for each piece
  auto look = [&](int start) {
    int i = start + t, turn = start / AT_A_TIME % 2;  // A thread that is late reads of the turn before.
    any = false;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      sees[r] = t < AT_A_TIME && i < PART && is_seen(seen + r * TOKENS + piece_of(i) * 64 + i % 64);
      any |= sees[r];
    }
    any = __any_sync(0xffffffff, any);
    if (t % 32 == 0) seen_by[turn][warp] = any;
    __syncthreads();
    used = 0;
#pragma unroll
    for (int p = 0; p < PIECES; p++) used |= (seen_by[turn][2 * p] | seen_by[turn][2 * p + 1]) << p;
  };
  auto copy_pieces = [&](element* to, const element* from, int start) {
#pragma unroll 1
    for (int p = 0; p < PIECES; p++)
      if (used >> p & 1) copy_piece(to + p * PIECE, from + (u64)piece_of(start + p * 64) * PIECE);
    end_of_copies();
  };
#if defined(EARLY)  // What is seen was known two launches before, and the cache, too, but for its newest tokens: they
  look(0);          // come with another copy, which finds all else at hand.
  copy_pieces(keys, k, 0);
  copy_pieces(values, v, 0);
#endif
#if defined(PROLOGUE)
  PROLOGUE(memory, blockIdx.x == 0);
  const float* q = (const float*)(memory + Q_AT);
  wait_for_copies<0>();
#else
  wait_for_previous();
#endif
  q += head * ROWS * WIDTH;
  for (int i = t; i < ROWS * WIDTH; i += THREADS) query[i / WIDTH][i % WIDTH] = q[i];
  float sum[ROWS][2] = {}, highest[ROWS], share[ROWS] = {};
#pragma unroll
  for (int r = 0; r < ROWS; r++) highest[r] = -INFINITE;
#pragma unroll 1
  for (int start = 0; start < PART; start += AT_A_TIME) {
#if defined(EARLY)
    if (start)
#endif
      look(start);
    if (!used) continue;
    copy_pieces(keys, k, start);
    copy_pieces(values, v, start);
    wait_for_copies<1>();
    __syncthreads();
    float score[ROWS] = {};
    const element* column = keys + t / 64 * PIECE + t % 64;
    if (any)
#pragma unroll 16
      for (int d = 0; d < WIDTH; d++) {
        float key = widen(column[d * 64]);
#pragma unroll
        for (int r = 0; r < ROWS; r++) score[r] = __fmaf_rn(query[r][d], key, score[r]);
      }
    if (t < AT_A_TIME) {
      float high[ROWS];
#pragma unroll
      for (int r = 0; r < ROWS; r++) high[r] = score[r] = sees[r] ? score[r] * (SCALE) : -INFINITE;
#pragma unroll
      for (int other = 16; other; other /= 2)
#pragma unroll
        for (int r = 0; r < ROWS; r++) high[r] = fmaxf(high[r], __shfl_xor_sync(0xffffffff, high[r], other));
      if (t % 32 == 0)
#pragma unroll
        for (int r = 0; r < ROWS; r++) largest[warp][r] = high[r];
    }
    __syncthreads();
    float part[ROWS] = {};
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      float high = highest[r];
#pragma unroll
      for (int w = 0; w < AT_A_TIME / 32; w++) high = fmaxf(high, largest[w][r]);
      if (start) {
        float kept = highest[r] == high ? 1.0f : expf(highest[r] - high);
        share[r] *= kept, sum[r][0] *= kept, sum[r][1] *= kept;
      }
      highest[r] = high;
    }
    if (any)
#pragma unroll
      for (int r = 0; r < ROWS; r++) part[r] = sees[r] ? expf(score[r] - highest[r]) : 0.0f;
    if (t < AT_A_TIME) {
#pragma unroll
      for (int r = 0; r < ROWS; r++) weight[r][t] = part[r];
#pragma unroll
      for (int other = 16; other; other /= 2)
#pragma unroll
        for (int r = 0; r < ROWS; r++) part[r] += __shfl_xor_sync(0xffffffff, part[r], other);
      if (t % 32 == 0)
#pragma unroll
        for (int r = 0; r < ROWS; r++) added[warp][r] = part[r];
    }
    wait_for_copies<0>();
    __syncthreads();
    if (t == 0)
#pragma unroll
      for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int w = 0; w < AT_A_TIME / 32; w++) share[r] += added[w][r];
#pragma unroll 1
    for (int p = 0; p < PIECES; p++) {
      if (!(used >> p & 1) || group >= GROUPS) continue;
#pragma unroll 4
      for (int i = p * 64 + group; i < p * 64 + 64; i += GROUPS) {
        float by[ROWS], any_weight = 0;
#pragma unroll
        for (int r = 0; r < ROWS; r++) by[r] = weight[r][i], any_weight += by[r];
        two both = *(const two*)(values + i * WIDTH + channel);
        // What is behind the last token may be no number.
        float a = any_weight > 0 ? first(both) : 0, b = any_weight > 0 ? second(both) : 0;
#pragma unroll
        for (int r = 0; r < ROWS; r++) sum[r][0] = __fmaf_rn(by[r], a, sum[r][0]), sum[r][1] = __fmaf_rn(by[r], b, sum[r][1]);
      }
    }
    __syncthreads();
  }
  if (group < GROUPS)
#pragma unroll
    for (int r = 0; r < ROWS; r++) parts[group][r][channel] = sum[r][0], parts[group][r][channel + 1] = sum[r][1];
  __syncthreads();
#if CLUSTER > 1
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");  // All blocks have begun.
#endif
  auto give = [&](int at, float value) {
#if CLUSTER > 1
    cluster_store((u32)__cvta_generic_to_shared(got + at), 0, value);
#else
    got[at] = value;
#endif
  };
  constexpr int SUMS = ROWS * WIDTH, MOST = CLUSTER * SUMS, TOTAL = MOST + CLUSTER * ROWS;
  for (int i = t; i < SUMS; i += THREADS) {
    float value = 0;
#pragma unroll
    for (int g = 0; g < GROUPS; g++) value += parts[g][i / WIDTH][i % WIDTH];
    give(rank * SUMS + i, value);
  }
  if (t == 0)
#pragma unroll
    for (int r = 0; r < ROWS; r++) give(MOST + rank * ROWS + r, highest[r]), give(TOTAL + rank * ROWS + r, share[r]);
#if CLUSTER > 1
  cluster_sync();
  if (rank) return;
#else
  __syncthreads();
#endif
  for (int i = t; i < CLUSTER * ROWS; i += THREADS) {
    float high = -INFINITE;
#pragma unroll
    for (int b = 0; b < CLUSTER; b++) high = fmaxf(high, got[MOST + b * ROWS + i % ROWS]);
    factors[i / ROWS][i % ROWS] = got[TOTAL + i] == 0 ? 0 : expf(got[MOST + i] - high);
  }
  __syncthreads();
  for (int i = t; i < SUMS; i += THREADS) {
    int r = i / WIDTH;
    float value = 0, whole = 0;
#pragma unroll
    for (int b = 0; b < CLUSTER; b++) {
      whole = __fmaf_rn(factors[b][r], got[TOTAL + b * ROWS + r], whole);
      value = __fmaf_rn(factors[b][r], got[b * SUMS + i], value);
    }
    y[i] = value / whole;
  }
}
