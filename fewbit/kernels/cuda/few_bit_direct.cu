// y = x (s q)^T with few-bit q, all at once: what a warp needs of the weights is asked for before anything is
// waited for, and comes straight into its registers, so that the wait for memory is paid once. Activations come to
// shared memory at the same time, so that the first weights are multiplied while the last are on their way. Blocks
// of a cluster send their sums to the block that stores them, whose barrier counts the bytes.
constexpr int SHARE = PER_SHARE * KU;  // values of k of a warp
// Activations come in groups of X_UNITS units, in rows that fall into other banks than their neighbours. Warps that have
// the same share of k copy a part each, and meet.
constexpr int X_ROWS = M < BM ? M : BM, X_PITCH = ceil_div(SHARE * UNIT, 128) * 128 + 64, ROW_PIECES = KU * UNIT / 16;
constexpr int COPIERS = WARPS_N * 32, ENOUGH = ceil_div(COPIERS, X_ROWS * ROW_PIECES), X_UNITS = PER_SHARE % ENOUGH ? PER_SHARE : ENOUGH;
constexpr int X_GROUPS = PER_SHARE / X_UNITS, X_PIECES = ROW_PIECES * X_UNITS;
constexpr bool EVEN = COPIERS % X_PIECES == 0;  // a copier's pieces are below each other
constexpr int SCALES = SHARE > GROUP ? SHARE / GROUP : 1, STEPS = PER_SHARE * LOADS * 2, EVERY = STEPS / SCALES;
constexpr int SUM_PITCH = BN + 4, SCALE_LOADS = ceil_div(SCALES * ROWS, 2), SLICE = BN / CLUSTER;
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

// Waits for all copies but those of so many groups, or fewer; the number is known once the loop around it is unrolled.
template <int GROUPS>
__device__ __forceinline__ void wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
}
__device__ __forceinline__ void arrived_but(int groups) {
  switch (groups) {
    case 0: return wait_group<0>();
    case 1: return wait_group<1>();
    case 2: return wait_group<2>();
    case 3: return wait_group<3>();
    default: return wait_group<4>();
  }
}
// The barrier of warps that have a share of k, or one of two neighbouring shares, where there are more shares than barriers.
constexpr int MEETING = WARPS_K > 8 && WARPS_K % 2 == 0 ? 2 : 1;
static_assert(WARPS_N == 1 || WARPS_K / MEETING <= 15, "there are 15 barriers");
__device__ __forceinline__ void meet(u32 share) {
  if (WARPS_N == 1) return __syncwarp();
  asm volatile("bar.sync %0, %1;" ::"r"(share / MEETING + 1), "n"(WARPS_N * MEETING * 32) : "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS)
    few_bit(const element* __restrict__ x, const uint4* __restrict__ q, const float* __restrict__ scale,
            const float* __restrict__ row_scale, output* __restrict__ y) {
  extern __shared__ __align__(128) u8 memory[];
  float* sums = (float*)(memory + WARPS_K * X_ROWS * X_PITCH);
  float* received = sums + WARPS_K * X_ROWS * SUM_PITCH;
  float* row_scales = received + (CLUSTER > 1 ? X_ROWS * BN : 0);
  u32 t = threadIdx.x, lane = t % 32, warp = t / 32, wn = warp % WARPS_N, wk = warp / WARPS_N;
  u32 rank = blockIdx.x % CLUSTER, n0 = blockIdx.x / CLUSTER * BN, m0 = blockIdx.y * BM;
  u32 share = rank * WARPS_K + wk, block = n0 / 16 + wn * ROWS;
  auto block_of = [&](u32 r) { return BLOCKS_N % (WARPS_N * ROWS) ? min(block + r, (u32)BLOCKS_N - 1) : block + r; };
#if CLUSTER > 1
  __shared__ alignas(8) u64 arrived;
  u32 barrier = shared_address(&arrived);
  if (t == 0) {
    barrier_init(barrier, 1);
    barrier_expect(barrier, X_ROWS * BN * 4);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif

  wait_for_previous();

  float scales[SCALE_LOADS];  // [group][row][16], a lane each
#pragma unroll
  for (int i = 0; i < SCALE_LOADS; i++) {
    u32 at = i * 32 + lane, g = at / (ROWS * 16), n = min(block * 16 + at % (ROWS * 16), BLOCKS_N * 16u - 1);
    if (SCALES * ROWS % 2 == 0 || at < SCALES * ROWS * 16) scales[i] = load4(scale + (share * SHARE / GROUP + g) * (BLOCKS_N * 16) + n);
  }
  u32 words_of[ROWS][PER_SHARE][QW];
  u32 x_at = shared_address(memory) + wk * X_ROWS * X_PITCH;
  u32 copier = wn * 32 + lane;
  const element* x_from = x + m0 * (u64)K + share * SHARE + (EVEN ? copier / X_PIECES * K + copier % X_PIECES * (16 / UNIT) : 0);
  u32 x_to = x_at + (EVEN ? copier / X_PIECES * X_PITCH + copier % X_PIECES * 16 : 0);
#pragma unroll
  for (int g = 0; g < X_GROUPS; g++) {
#pragma unroll
    for (int i = 0; i < ceil_div(X_ROWS * X_PIECES, COPIERS); i++) {
      u32 at = i * COPIERS + copier, row = EVEN ? i * (COPIERS / X_PIECES) : at / X_PIECES;
      u32 piece = g * X_PIECES + (EVEN ? 0 : at % X_PIECES), m = EVEN ? row + copier / X_PIECES : row;
      if (m < X_ROWS && (M <= BM || M % BM == 0 || m0 + m < M))
        copy16_once(x_to + row * X_PITCH + piece * 16, x_from + row * K + piece * (16 / UNIT));
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      const uint4* from = q + (block_of(r) * UNITS + share * PER_SHARE) * (QW / 4 * 32) + lane;
#pragma unroll
      for (int i = g * X_UNITS * QW / 4; i < (g + 1) * X_UNITS * QW / 4; i++)
        load16(&words_of[r][i * 4 / QW][i * 4 % QW], from + i * 32);
    }
    __syncwarp();  // which keeps the compiler from asking in another order
  }
#if defined(ELEMENT_I8)
  if (t < X_ROWS && m0 + t < M) row_scales[t] = load4(row_scale + m0 + t);
#endif
  __syncwarp();  // … and from asking for some of it only after a wait

  u32 magic = magic_of();
  float total[ROWS][MT][4] = {};
  partial part[ROWS][MT][4] = {};
  u32 b[MT][4];
#pragma unroll
  for (int step = 0; step < STEPS; step++) {
    if (step % (STEPS / X_GROUPS) == 0) {
      arrived_but(X_GROUPS - 1 - step / (STEPS / X_GROUPS));
      meet(wk);
    }
    if (step % 2 == 0)
#pragma unroll
      for (int j = 0; j < MT; j++)
        read_steps(b[j], x_at + min(j * 8 + lane / 4, (u32)X_ROWS - 1) * X_PITCH + step * 32, lane % 4);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      u32 a[4];
      expand(a, *(const Words*)words_of[r][step / (LOADS * 2)], step % (LOADS * 2), magic);
#pragma unroll
      for (int j = 0; j < MT; j++) mma(part[r][j], a, b[j][step % 2 * 2], b[j][step % 2 * 2 + 1]);
    }
    if ((step + 1) % EVERY) continue;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      int at = (step / EVERY * ROWS + r) * 16;
      float low = __shfl_sync(~0u, scales[at / 32], at % 32 + lane / 4), high = __shfl_sync(~0u, scales[at / 32], at % 32 + 8 + lane / 4);
#pragma unroll
      for (int j = 0; j < MT; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
          total[r][j][e] += (e < 2 ? low : high) * (float)part[r][j][e];
          part[r][j][e] = 0;
        }
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
    cluster_send(shared_address(received + (rank * X_ROWS + m) * SLICE + n % SLICE), barrier, n / SLICE, value);
#else
    store(m, n, value);
#endif
  }
#if CLUSTER > 1
  barrier_wait(barrier, 0);
  for (u32 i = t; i < X_ROWS * SLICE; i += THREADS) {
    float value = 0;
#pragma unroll
    for (int r = 0; r < CLUSTER; r++) value += received[r * X_ROWS * SLICE + i];
    store(i / SLICE, rank * SLICE + i % SLICE, value);
  }
#endif
}
