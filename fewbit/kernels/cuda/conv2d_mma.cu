// Tensor cores through mma.sync, one warp at a time. Operands are handled as bytes: 32 bytes along k
// are 16 f16 or bf16, 8 tf32 or 32 i8, and their fragments lie alike in registers. A block keeps
// STAGES slices of 64 bytes along k in shared memory; rows are 80 bytes apart, so that the eight
// rows of an ldmatrix fall into different banks. Where 16 bytes of x are neighbours (ALIGNED_X) they
// are copied asynchronously; where not, they are gathered one by one, so any convolution works.
constexpr int UNIT = sizeof(element), PIECE = 16 / UNIT, BK = 64 / UNIT, PITCH = 80;
constexpr int WARPS_M = BM / WM, WARPS_N = BN / WN, THREADS = WARPS_M * WARPS_N * 32;
constexpr int MI = WM / 16, NI = WN / 8, STEPS = ceil_div(K, BK);
constexpr int ROWS_A = BM * 4 / THREADS, ROWS_B = BN * 4 / THREADS;
constexpr int STAGE = (BM + BN) * PITCH;
static_assert(ROWS_A > 0 && ROWS_B > 0 && NI % 2 == 0, "tile too small");

__device__ __forceinline__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void copy16(u32 to, const void* from, bool valid) {
#if __CUDA_ARCH__ >= 800
  int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes));
#else
  uint4 v = valid ? *(const uint4*)from : make_uint4(0, 0, 0, 0);
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w));
#endif
}
__device__ __forceinline__ void commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;");
#endif
}
template <int LEFT>
__device__ __forceinline__ void wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(LEFT));
#endif
}
__device__ __forceinline__ void load_matrices(u32 (&r)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
}

__device__ __forceinline__ void mma(sum (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if defined(ELEMENT_I8) && __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#elif defined(ELEMENT_I8)
#pragma unroll
  for (int half = 0; half < 4; half++)
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+r"(d[half % 2 * 2]), "+r"(d[half % 2 * 2 + 1])
                 : "r"(a[half]), "r"(half < 2 ? b0 : b1));
#elif defined(ELEMENT_BF16)
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#elif defined(ELEMENT_F16) && __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#elif defined(ELEMENT_F16)
#pragma unroll
  for (int half = 0; half < 2; half++)
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[half * 2]), "r"(a[half * 2 + 1]), "r"(half ? b1 : b0));
#else
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}
__device__ __forceinline__ void round_operands(u32 (&r)[4]) {
#if !defined(ELEMENT_I8) && !defined(ELEMENT_F16) && !defined(ELEMENT_BF16)
#pragma unroll
  for (int i = 0; i < 4; i++) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r[i]) : "f"(__uint_as_float(r[i])));
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS)
    conv2d_mma(const element* __restrict__ x, const element* __restrict__ w, result* y EPILOGUE_PARAMETERS) {
  extern __shared__ __align__(128) u8 memory[];
  u32 base = shared_address(memory);
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  int m0 = blockIdx.x * BM, f0 = blockIdx.y * BN, g = blockIdx.z;
  int wm = warp % WARPS_M * WM, wn = warp / WARPS_M * WN;
  int column = t % 4 * PIECE, first = t / 4;

  Pixel pixels[ROWS_A];
#pragma unroll
  for (int i = 0; i < ROWS_A; i++) {
    int m = m0 + first + i * (THREADS / 4);
    pixels[i] = pixel(m);
    if (m >= M) pixels[i].n = BATCH;
  }

  auto fetch = [&](int step) {
    u32 stage = base + step % STAGES * STAGE;
    int k = step * BK + column;
#pragma unroll
    for (int i = 0; i < ROWS_A; i++) {
      u32 to = stage + (first + i * (THREADS / 4)) * PITCH + column * UNIT;
      Pixel p = pixels[i];
#if ALIGNED_X
      Tap d = tap(k);
      bool valid = k < K && inside(p.n, p.h + d.h, p.w + d.w);
      copy16(to, valid ? x + x_at(p.n, p.h + d.h, p.w + d.w, g * CG + d.c) : x, valid);
#else
      alignas(16) element values[PIECE];
#pragma unroll
      for (int e = 0; e < PIECE; e++) {
        Tap d = tap(k + e);
        bool valid = k + e < K && inside(p.n, p.h + d.h, p.w + d.w);
        values[e] = valid ? x[x_at(p.n, p.h + d.h, p.w + d.w, g * CG + d.c)] : element(0);
      }
      uint4 v = *(uint4*)values;
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w));
#endif
    }
#pragma unroll
    for (int i = 0; i < ROWS_B; i++) {
      int row = first + i * (THREADS / 4);
      u32 to = stage + (BM + row) * PITCH + column * UNIT;
      const element* from = w + (u64)(g * FG + f0 + row) * K + k;
#if ALIGNED_W
      bool valid = f0 + row < FG && k < K;
      copy16(to, valid ? from : w, valid);
#else
      alignas(16) element values[PIECE];
#pragma unroll
      for (int e = 0; e < PIECE; e++) values[e] = f0 + row < FG && k + e < K ? from[e] : element(0);
      uint4 v = *(uint4*)values;
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w));
#endif
    }
  };

  sum total[MI][NI][4] = {};
#pragma unroll
  for (int step = 0; step < STAGES - 1; step++) {
    if (step < STEPS) fetch(step);
    commit();
  }
  for (int step = 0; step < STEPS; step++) {
    wait<STAGES - 2>();
    __syncthreads();
    if (step + STAGES - 1 < STEPS) fetch(step + STAGES - 1);
    commit();
    u32 stage = base + step % STAGES * STAGE;
#pragma unroll
    for (int part = 0; part < 2; part++) {
      u32 a[MI][4], b[NI / 2][4];
#pragma unroll
      for (int i = 0; i < MI; i++) {
        load_matrices(a[i], stage + (wm + i * 16 + lane % 16) * PITCH + part * 32 + lane / 16 * 16);
        round_operands(a[i]);
      }
#pragma unroll
      for (int j = 0; j < NI / 2; j++) {
        load_matrices(b[j], stage + (BM + wn + j * 16 + lane % 8 + lane / 16 * 8) * PITCH + part * 32 + lane / 8 % 2 * 16);
        round_operands(b[j]);
      }
#pragma unroll
      for (int i = 0; i < MI; i++)
#pragma unroll
        for (int j = 0; j < NI; j++) mma(total[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
  }

#pragma unroll
  for (int i = 0; i < MI; i++)
#pragma unroll
    for (int j = 0; j < NI; j++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        int m = m0 + wm + i * 16 + half * 8 + lane / 4, f = f0 + wn + j * 8 + lane % 4 * 2;
        if (m >= M || f >= FG) continue;
        u64 at = y_at(m, g * FG + f);
        sum first = FINISH(total[i][j][half * 2], g * FG + f, at), second = total[i][j][half * 2 + 1];
        result* to = y + at;
#if NHWC
        if (FG % 2 == 0) {
          *(Pair*)to = narrow2(first, FINISH(second, g * FG + f + 1, at + 1));
          continue;
        }
#endif
        *to = narrow(first);
        at = y_at(m, g * FG + f + 1);
        if (f + 1 < FG) y[at] = narrow(FINISH(second, g * FG + f + 1, at));
      }
}
