// y = x (s q)^T with few-bit q, from a ring: a lane copies its weights and activations itself, STAGES units ahead. K is
// whole units; a row of x has K_GIVEN values, and what it lacks is zeros.
constexpr int SCALES = KU > GROUP ? KU / GROUP : 1;  // scales in a unit
// What a warp has in shared memory for one unit: rows of 16 bytes a lane, then scales.
constexpr int PIECES = ROWS * (QW / 4) + LOADS * MT, STAGE = PIECES * 512 + ROWS * SCALES * 64;

extern "C" __global__ void __launch_bounds__(THREADS)
    few_bit(const element* __restrict__ x, const uint4* __restrict__ q, const float* __restrict__ scale,
            const float* __restrict__ row_scale, output* __restrict__ y) {
  extern __shared__ __align__(128) u8 memory[];
  float(*sums)[BN][MT * 8 + 1] = (float(*)[BN][MT * 8 + 1])memory;  // where the ring was
  int t = threadIdx.x, lane = t % 32, warp = t / 32, wn = warp % WARPS_N, wk = warp / WARPS_N;
  int rank = blockIdx.x % CLUSTER, n0 = blockIdx.x / CLUSTER * BN, m0 = blockIdx.y * BM;
  int begin = min((rank * WARPS_K + wk) * PER_SHARE, UNITS), end = min(begin + PER_SHARE, UNITS);
  int block = n0 / 16 + wn * ROWS;

#if M <= 8  // Weights are on their way while the launch before ends; for more rows that was slower.
  for (int u = begin; u < end; u++)
#pragma unroll
    for (int r = 0; r < ROWS; r++)
      for (int line = lane; line < QW; line += 32)
        prefetch(q + ((u64)min(block + r, BLOCKS_N - 1) * UNITS + u) * (QW / 4) * 32 + line * 8);
#endif
  wait_for_previous();

  // A lane copies its weights and activations itself, STAGES units ahead; four lanes copy 16 scales.
  u32 ours = shared_address(memory) + warp * STAGES * STAGE, mine = ours + lane * 16;
  u32 scales = ours + PIECES * 512;
#pragma unroll
  for (int s = 0; s < STAGES; s++)
#pragma unroll
    for (int i = 0; i < LOADS * MT; i++)
      if (m0 + i % MT * 8 + lane / 4 >= M)
        asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(mine + s * STAGE + (ROWS * (QW / 4) + i) * 512), "r"(0) : "memory");
  auto fetch = [&](int u) {
    int s = (u - begin) % STAGES * STAGE;
    if (u < end) {
#pragma unroll
      for (int r = 0; r < ROWS; r++) {
        int at = min(block + r, BLOCKS_N - 1);
        const uint4* from = q + ((u64)at * UNITS + u) * (QW / 4) * 32 + lane;
#pragma unroll
        for (int e = 0; e < QW / 4; e++) copy16_once(mine + s + (r * (QW / 4) + e) * 512, from + e * 32);
        if (lane < SCALES * 4)
          copy16(scales + s + r * SCALES * 64 + lane * 16,
                 scale + (u * KU / GROUP + lane / 4) * (BLOCKS_N * 16) + at * 16 + lane % 4 * 4);
      }
#pragma unroll
      for (int load = 0; load < LOADS; load++)
#pragma unroll
        for (int j = 0; j < MT; j++) {
          int m = m0 + j * 8 + lane / 4, at = u * KU + load * 2 * STEP + lane % 4 * (16 / UNIT);
          u32 to = mine + s + (ROWS * (QW / 4) + load * MT + j) * 512;
          if (m >= M) continue;
          if (K == K_GIVEN)
            copy16(to, x + (u64)m * K + at);
          else
            copy16_or_zeros(to, x + (u64)m * K_GIVEN + at, at < K_GIVEN ? 16 : 0);
        }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  u32 magic = magic_of();
  float total[ROWS][MT][4] = {};
#pragma unroll
  for (int i = 0; i < STAGES - 1; i++) fetch(begin + i);
  for (int u = begin; u < end; u++) {
    __syncwarp();
    fetch(u + STAGES - 1);
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
    __syncwarp();
    int s = (u - begin) % STAGES * STAGE;
    Words words[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int e = 0; e < QW / 4; e++) read16(&words[r].at[e * 4], mine + s + (r * (QW / 4) + e) * 512);
    partial part[ROWS][MT][4] = {};
#pragma unroll
    for (int load = 0; load < LOADS; load++) {
      u32 b[MT][4];
#pragma unroll
      for (int j = 0; j < MT; j++)
        read_steps(b[j], ours + s + (ROWS * (QW / 4) + load * MT + j) * 512 + lane / 4 * 64, lane % 4);
#pragma unroll
      for (int half = 0; half < 2; half++) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
          u32 a[4];
          expand(a, words[r], load * 2 + half, magic);
#pragma unroll
          for (int j = 0; j < MT; j++) mma(part[r][j], a, b[j][half * 2], b[j][half * 2 + 1]);
        }
        int step = load * 2 + half;
        if ((step + 1) % (LOADS * 2 / SCALES)) continue;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
          u32 at = scales + s + (r * SCALES + step / (LOADS * 2 / SCALES)) * 64 + lane / 4 * 4;
          float low = read4(at), high = read4(at + 32);
#pragma unroll
          for (int j = 0; j < MT; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
              total[r][j][e] += (e < 2 ? low : high) * (float)part[r][j][e];
              part[r][j][e] = 0;
            }
        }
      }
    }
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();

#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int j = 0; j < MT; j++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        sums[wk][(wn * ROWS + r) * 16 + lane / 4 + e / 2 * 8][j * 8 + lane % 4 * 2 + e % 2] = total[r][j][e];
#if CLUSTER > 1
  cluster_sync();
#else
  __syncthreads();
#endif
  for (int i = t + rank * THREADS; i < BN * BM; i += THREADS * CLUSTER) {
    int n = i % BN, m = i / BN;
    if (n0 + n >= N || m0 + m >= M) continue;
    float value = 0;
#if CLUSTER > 1
    for (int r = 0; r < CLUSTER; r++)
#pragma unroll
      for (int k = 0; k < WARPS_K; k++) value += cluster_load(shared_address(&sums[k][n][m]), r);
#else
#pragma unroll
    for (int k = 0; k < WARPS_K; k++) value += sums[k][n][m];
#endif
#if defined(ELEMENT_I8)
    value *= row_scale[m0 + m] * (1.0f / (1 << (8 - BITS)));
#endif
    y[(u64)(m0 + m) * N + n0 + n] = to_output(value);
  }
#if CLUSTER > 1
  cluster_sync();
#endif
}
