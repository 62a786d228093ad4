// y = x (s q)^T with few-bit q, all at once: what a warp needs of the weights is asked for before anything is
// waited for, and comes straight into its registers, so that the wait for memory is paid once. Activations of the
// block's share of k come to shared memory meanwhile, in rows that lie 64 bytes apart modulo the banks. Blocks of
// a cluster send their sums to the block that stores them, whose barrier counts the bytes.
constexpr int SHARE = PER_SHARE * KU, SPAN = WARPS_K * SHARE;  // values of k of a warp, of a block
constexpr int X_ROWS = M < BM ? M : BM, X_PIECES = SPAN * UNIT / 16, X_PITCH = ceil_div(SPAN * UNIT, 128) * 128 + 64;
constexpr int SCALES = SHARE > GROUP ? SHARE / GROUP : 1, STEPS = PER_SHARE * LOADS * 2, EVERY = STEPS / SCALES;
constexpr int SUM_PITCH = BN + 4, SLICE = BN / CLUSTER;
static_assert(UNITS % SHARES == 0 && (SHARE % GROUP == 0 || GROUP % SHARE == 0), "shares are whole groups, or parts of one");

__device__ __forceinline__ void load16(u32* to, const void* from) {
  asm volatile("ld.global.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "l"(from) : "memory");
}
__device__ __forceinline__ float load4(const float* from) {
  float value;
  asm volatile("ld.global.f32 %0, [%1];" : "=f"(value) : "l"(from) : "memory");
  return value;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    few_bit(const element* __restrict__ x, const uint4* __restrict__ q, const float* __restrict__ scale,
            const float* __restrict__ row_scale, output* __restrict__ y) {
  extern __shared__ __align__(128) u8 memory[];
  float* sums = (float*)(memory + X_ROWS * X_PITCH);
  float* received = sums + WARPS_K * X_ROWS * SUM_PITCH;
  float* row_scales = received + (CLUSTER > 1 ? X_ROWS * BN : 0);
  u32 t = threadIdx.x, lane = t % 32, warp = t / 32, wn = warp % WARPS_N, wk = warp / WARPS_N;
  u32 rank = blockIdx.x % CLUSTER, n0 = blockIdx.x / CLUSTER * BN, m0 = blockIdx.y * BM;
  u32 share = rank * WARPS_K + wk, block = n0 / 16 + wn * ROWS;
  auto block_of = [&](u32 r) { return BLOCKS_N % (WARPS_N * ROWS) ? min(block + r, (u32)BLOCKS_N - 1) : block + r; };
#if CLUSTER > 1
  __shared__ alignas(8) u64 arrived;
  u32 barrier = (u32)__cvta_generic_to_shared(&arrived);
  if (t == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                 "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n"
                 "fence.mbarrier_init.release.cluster;" ::"r"(barrier), "n"(X_ROWS * BN * 4) : "memory");
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif

  u32 words_of[ROWS][PER_SHARE][QW];
  float scale_of[ROWS][SCALES][2];
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const uint4* from = q + (block_of(r) * (UNITS * QW / 4) + share * (PER_SHARE * QW / 4)) * 32 + lane;
#pragma unroll
    for (int i = 0; i < PER_SHARE * QW / 4; i++) load16(&words_of[r][i * 4 / QW][i * 4 % QW], from + i * 32);
  }
  u32 x_at = (u32)__cvta_generic_to_shared(memory);
#pragma unroll
  for (int i = 0; i < ceil_div(X_ROWS * X_PIECES, THREADS); i++) {
    u32 at = i * THREADS + t, m = at / X_PIECES, piece = at % X_PIECES;
    if (m < X_ROWS && m0 + m < M)
      copy16_once(x_at + m * X_PITCH + piece * 16, x + (m0 + m) * (u64)K + rank * SPAN + piece * (16 / UNIT));
  }
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const float* from = scale + share * SHARE / GROUP * (BLOCKS_N * 16) + block_of(r) * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < SCALES * 2; i++) scale_of[r][i / 2][i % 2] = load4(from + i / 2 * (BLOCKS_N * 16) + i % 2 * 8);
  }
#if defined(ELEMENT_I8)
  if (t < X_ROWS && m0 + t < M) row_scales[t] = load4(row_scale + m0 + t);
#endif
  __syncwarp();  // which keeps the compiler from asking for some of it only after the wait
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();

  u32 magic = magic_of();
  float total[ROWS][MT][4] = {};
  partial part[ROWS][MT][4] = {};
  u32 b[MT][4];
#pragma unroll
  for (int step = 0; step < STEPS; step++) {
    if (step % 2 == 0)
#pragma unroll
      for (int j = 0; j < MT; j++)
        read_steps(b[j], x_at + min(j * 8 + lane / 4, (u32)X_ROWS - 1) * X_PITCH + wk * SHARE * UNIT + step * 32, lane % 4);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      u32 a[4];
      expand(a, *(const Words*)words_of[r][step / (LOADS * 2)], step % (LOADS * 2), magic);
#pragma unroll
      for (int j = 0; j < MT; j++) mma(part[r][j], a, b[j][step % 2 * 2], b[j][step % 2 * 2 + 1]);
    }
    if ((step + 1) % EVERY) continue;
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int j = 0; j < MT; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
          total[r][j][e] += scale_of[r][step / EVERY][e / 2] * (float)part[r][j][e];
          part[r][j][e] = 0;
        }
  }

#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int j = 0; j < MT; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        u32 m = j * 8 + lane % 4 * 2 + e % 2;
        if (m < X_ROWS) sums[(wk * X_ROWS + m) * SUM_PITCH + (wn * ROWS + r) * 16 + lane / 4 + e / 2 * 8] = total[r][j][e];
      }
  __syncthreads();
#if CLUSTER > 1
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
  auto store = [&](u32 m, u32 n, float value) {
    if (n0 + n >= N || m0 + m >= M) return;
#if defined(ELEMENT_I8)
    value *= row_scales[m] * (1.0f / (1 << (8 - BITS)));
#endif
    y[(u64)(m0 + m) * N + n0 + n] = to_output(value);
  };
  for (u32 i = t; i < X_ROWS * BN; i += THREADS) {
    u32 n = i % BN, m = i / BN;
    float value = 0;
#pragma unroll
    for (int k = 0; k < WARPS_K; k++) value += sums[(k * X_ROWS + m) * SUM_PITCH + n];
#if CLUSTER > 1
    u32 to = (u32)__cvta_generic_to_shared(received + (rank * X_ROWS + m) * SLICE + n % SLICE);
    asm volatile("{\n.reg .u32 there, barrier;\nmapa.shared::cluster.u32 there, %0, %3;\nmapa.shared::cluster.u32 barrier, %1, %3;\n"
                 "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [there], %2, [barrier];\n}"
                 ::"r"(to), "r"(barrier), "f"(value), "r"(n / SLICE) : "memory");
#else
    store(m, n, value);
#endif
  }
#if CLUSTER > 1
  asm volatile("{\n.reg .pred done;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
               "@done bra.uni DONE;\nbra.uni WAIT;\nDONE:\n}" ::"r"(barrier) : "memory");
  for (u32 i = t; i < X_ROWS * SLICE; i += THREADS) {
    float value = 0;
#pragma unroll
    for (int r = 0; r < CLUSTER; r++) value += received[r * X_ROWS * SLICE + i];
    store(i / SLICE, rank * SLICE + i % SLICE, value);
  }
#endif
}
