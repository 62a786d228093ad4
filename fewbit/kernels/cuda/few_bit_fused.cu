// y = x (s q)^T with few-bit q, where every block makes the few rows of x for itself, in shared memory. What a warp
// needs of the weights is asked for before anything is waited for, and comes straight into its registers, while the
// launch before ends and x is made. Units of k that do not come out even leave warps without a share; so are those warps
// that only help to make x.
constexpr int X_PITCH = K * UNIT, SCALES = KU > GROUP ? KU / GROUP : 1;  // scales in a unit
constexpr int EACH = SCALES * ROWS * 16, SCALE_LOADS = ceil_div(PER_SHARE * EACH, 32);
constexpr int SUM_PITCH = BN + 4, USED = ceil_div(UNITS, PER_SHARE);
static_assert(BM == 8 && M <= BM && CLUSTER == 1 && WARPS_N == 1, "one row of blocks");

__device__ __forceinline__ void load16(u32* to, const void* from) {
  asm volatile("ld.global.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "l"(from) : "memory");
}
__device__ __forceinline__ float load4(const float* from) {
  float value;
  asm volatile("ld.global.f32 %0, [%1];" : "=f"(value) : "l"(from) : "memory");
  return value;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    few_bit(const uint4* __restrict__ q, const float* __restrict__ scale, output* y,
            const float* row_scale PARAMETERS) {
  extern __shared__ __align__(128) u8 memory[];
  float* sums = (float*)(memory + SUMS_AT);
  u32 t = threadIdx.x, lane = t % 32, warp = t / 32, n0 = blockIdx.x * BN, block = blockIdx.x * ROWS;
  int begin = warp * PER_SHARE;
  u32 words_of[ROWS][PER_SHARE][QW];
  float scales[SCALE_LOADS];  // [unit][group][row][16], a lane each
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int u = 0; u < PER_SHARE; u++) {
      const uint4* from = q + (min(block + r, (u32)BLOCKS_N - 1) * UNITS + begin + u) * (QW / 4 * 32) + lane;
      if (begin + u < UNITS)
#pragma unroll
        for (int i = 0; i < QW / 4; i++) load16(&words_of[r][u][i * 4], from + i * 32);
    }
#pragma unroll
  for (int i = 0; i < SCALE_LOADS; i++) {
    u32 at = i * 32 + lane, u = begin + at / EACH, g = u * KU / GROUP + at / (ROWS * 16) % SCALES;
    u32 n = min(block * 16 + at % (ROWS * 16), BLOCKS_N * 16u - 1);
    if (u < UNITS && at < PER_SHARE * EACH) scales[i] = load4(scale + g * (BLOCKS_N * 16) + n);
  }

  PROLOGUE(memory, blockIdx.x == 0);

  u32 magic = magic_of(), x_at = (u32)__cvta_generic_to_shared(memory) + X_AT + min(lane / 4, M - 1u) * X_PITCH;
  float total[ROWS][4] = {};
#pragma unroll
  for (int u = 0; u < PER_SHARE; u++) {
    if (begin + u >= UNITS) break;
    partial part[ROWS][4] = {};
#pragma unroll
    for (int load = 0; load < LOADS; load++) {
      u32 b[4];
      read_steps(b, x_at + ((begin + u) * KU + load * 2 * STEP) * UNIT, lane % 4);
#pragma unroll
      for (int half = 0; half < 2; half++) {
        int step = load * 2 + half;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
          u32 a[4];
          expand(a, *(const Words*)words_of[r][u], step, magic);
          mma(part[r], a, b[half * 2], b[half * 2 + 1]);
        }
        if ((step + 1) % (LOADS * 2 / SCALES)) continue;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
          int at = ((u * SCALES + step / (LOADS * 2 / SCALES)) * ROWS + r) * 16;
          float low = __shfl_sync(~0u, scales[at / 32], at % 32 + lane / 4), high = __shfl_sync(~0u, scales[at / 32], at % 32 + 8 + lane / 4);
#pragma unroll
          for (int e = 0; e < 4; e++) {
            total[r][e] = __fmaf_rn(e < 2 ? low : high, (float)part[r][e], total[r][e]);
            part[r][e] = 0;
          }
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int e = 0; e < 4; e++) {
      u32 m = lane % 4 * 2 + e % 2;
      if (m < M && warp < USED) sums[(warp * M + m) * SUM_PITCH + r * 16 + lane / 4 + e / 2 * 8] = total[r][e];
    }
  __syncthreads();
  for (u32 i = t; i < M * BN; i += BLOCK) {
    u32 n = i % BN, m = i / BN;
    float value = 0;
#pragma unroll
    for (int k = 0; k < USED; k++) value += sums[(k * M + m) * SUM_PITCH + n];
#if defined(ELEMENT_I8)
#if defined(ROW_SCALE_AT)
    value *= ((const float*)(memory + ROW_SCALE_AT))[m] * (1.0f / (1 << (8 - BITS)));
#else
    value *= row_scale[m] * (1.0f / (1 << (8 - BITS)));
#endif
#endif
    if (n0 + n < N) y[(u64)m * N + n0 + n] = to_output(value);
  }
}
