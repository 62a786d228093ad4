// y = x (s q)^T with few-bit q, for few rows of x. Weights are the tensor cores' left operand: a warp has
// ROWS blocks of 16 outputs and a share of k, and reads their bits in the order in which its lanes
// use them, 16 bytes at a time. k is permuted in blocks so that a lane's activations are 16 neighbouring
// bytes. Fields become floats by writing them into the mantissa of 2^10 (f16) or 2^7 (bf16), and bytes,
// for integer activations, by leaving them in the byte's high bits, which the sums are divided by.
// WARPS_K warps of a block and CLUSTER blocks share k; sums are added in the same order always.
#if defined(OUTPUT_F32)
typedef float output;
#else
typedef u16 output;
#endif
constexpr int UNIT = sizeof(element), STEP = 32 / UNIT, PER_STEP = 16 / UNIT;
constexpr int QW = UNIT == 1 && BITS == 8 ? 8 : 4;  // words of a lane that make a unit
constexpr int KU = QW * 32 / BITS / PER_STEP * STEP;  // values of k in a unit
constexpr int UNITS = K / KU, SHARES = WARPS_K * CLUSTER, PER_SHARE = ceil_div(UNITS, SHARES);
constexpr int THREADS = WARPS_N * WARPS_K * 32, BN = WARPS_N * ROWS * 16, MT = ceil_div(BM, 8);
constexpr int GROUP = K / GROUPS_K, SCALES = KU > GROUP ? KU / GROUP : 1;  // scales in a unit
constexpr int BLOCKS_N = ceil_div(N, 16);
constexpr int LOADS = KU / (2 * STEP);  // 16-byte loads of x in one unit

// What a warp has in shared memory for one unit: rows of 16 bytes a lane, then scales.
constexpr int PIECES = ROWS * (QW / 4) + LOADS * MT, STAGE = PIECES * 512 + ROWS * SCALES * 64;

struct alignas(16) Words {
  u32 at[QW];
};

#if defined(ELEMENT_I8)
typedef int partial;
#else
typedef float partial;
#endif

__device__ __forceinline__ void mma(partial (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if defined(ELEMENT_I8)
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#elif defined(ELEMENT_BF16)
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// The four registers of one step's left operand.
__device__ __forceinline__ void expand(u32 (&a)[4], const Words& q, int step) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
#if defined(ELEMENT_I8)
    int at = step * 4 + i;  // of the unit's registers; 8 / BITS of them share a word
    u32 word = q.at[at * BITS / 8];
    a[i] = BITS == 8 ? word : (word << (8 - BITS - at % (8 / BITS) * BITS)) & MASK;
#elif BITS == 8
    u32 word = q.at[step * 2 + i / 2];
    u32 pair = __byte_perm(word, 0x64646464, i % 2 ? 0x4342 : 0x4140);
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(a[i]) : "r"(pair), "r"(MULTIPLY), "r"(ADD));
#else
    int at = step * 4 + i;
    u32 word = q.at[at * BITS / 16];
    u32 pair = ((word >> (at % (16 / BITS) * BITS)) & MASK) | MAGIC;
#if defined(ELEMENT_BF16)
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(a[i]) : "r"(pair), "r"(MULTIPLY), "r"(ADD));
#else
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(a[i]) : "r"(pair), "r"(MULTIPLY), "r"(ADD));
#endif
#endif
  }
}

__device__ __forceinline__ void copy16_once(u32 to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void copy16(u32 to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void read16(u32* to, u32 from) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(from) : "memory");
}
__device__ __forceinline__ float read4(u32 from) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(from) : "memory");
  return value;
}

#if CLUSTER > 1
__device__ __forceinline__ float remote(u32 address, u32 rank) {
  float value;
  asm volatile("{\n.reg .u32 there;\nmapa.shared::cluster.u32 there, %1, %2;\nld.shared::cluster.f32 %0, [there];\n}"
               : "=f"(value) : "r"(address), "r"(rank) : "memory");
  return value;
}
#endif

__device__ __forceinline__ output to_output(float value) {
#if defined(OUTPUT_F16)
  return to_f16(value);
#elif defined(OUTPUT_BF16)
  return to_bf16(value);
#else
  return value;
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS)
    few_bit(const element* __restrict__ x, const Words* __restrict__ q, const float* __restrict__ scale,
            const float* __restrict__ row_scale, output* __restrict__ y) {
  extern __shared__ __align__(128) u8 memory[];
  float(*sums)[BN][MT * 8 + 1] = (float(*)[BN][MT * 8 + 1])memory;  // where the ring was
  int t = threadIdx.x, lane = t % 32, warp = t / 32, wn = warp % WARPS_N, wk = warp / WARPS_N;
  int rank = blockIdx.x % CLUSTER, n0 = blockIdx.x / CLUSTER * BN, m0 = blockIdx.y * BM;
  int begin = min((rank * WARPS_K + wk) * PER_SHARE, UNITS), end = min(begin + PER_SHARE, UNITS);
  int block = n0 / 16 + wn * ROWS;

  // A lane copies its weights and activations itself, STAGES units ahead; four lanes copy 16 scales.
  u32 ours = (u32)__cvta_generic_to_shared(memory) + warp * STAGES * STAGE, mine = ours + lane * 16;
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
        const char* from = (const char*)(q + ((u64)at * UNITS + u) * 32 + lane);
#pragma unroll
        for (int e = 0; e < QW / 4; e++) copy16_once(mine + s + (r * (QW / 4) + e) * 512, from + e * 16);
        if (lane < SCALES * 4)
          copy16(scales + s + r * SCALES * 64 + lane * 16,
                 scale + (u * KU / GROUP + lane / 4) * (BLOCKS_N * 16) + at * 16 + lane % 4 * 4);
      }
#pragma unroll
      for (int load = 0; load < LOADS; load++)
#pragma unroll
        for (int j = 0; j < MT; j++) {
          int m = m0 + j * 8 + lane / 4;
          if (m < M)
            copy16(mine + s + (ROWS * (QW / 4) + load * MT + j) * 512,
                   x + (u64)m * K + u * KU + load * 2 * STEP + lane % 4 * (16 / UNIT));
        }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

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
      for (int j = 0; j < MT; j++) read16(b[j], mine + s + (ROWS * (QW / 4) + load * MT + j) * 512);
#pragma unroll
      for (int half = 0; half < 2; half++)
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
          u32 a[4];
          expand(a, words[r], load * 2 + half);
#pragma unroll
          for (int j = 0; j < MT; j++) mma(part[r][j], a, b[j][half * 2], b[j][half * 2 + 1]);
        }
      if ((load + 1) % (LOADS / SCALES)) continue;
#pragma unroll
      for (int r = 0; r < ROWS; r++) {
        u32 at = scales + s + (r * SCALES + load / (LOADS / SCALES)) * 64 + lane / 4 * 4;
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
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
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
      for (int k = 0; k < WARPS_K; k++) value += remote((u32)__cvta_generic_to_shared(&sums[k][n][m]), r);
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
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
#endif
}
