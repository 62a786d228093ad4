// Depthwise and pointwise convolution in one kernel, for Hopper. A block has BH x BW pixels. Channels go
// through it CB at a time: the copy engine brings a patch and both convolutions' filters, all threads
// compute its depthwise sums into shared memory, rounded as they would be in global memory, and warps
// multiply those by the pointwise filters with tensor cores, into accumulators until the last
// channel. Depthwise filters are [taps][channels]; pointwise ones lie in the order in which the
// lanes of a warp want them, [k / 16][f / 8][lane][4], pairs of the upper 16 lanes exchanged.
constexpr int IH = (BH - 1) * STRIDE_H + (KH - 1) * DILATION_H + 1, IW = (BW - 1) * STRIDE_W + (KW - 1) * DILATION_W + 1;
constexpr int BYTES = IH * IW * CB * 2, PATCH = ceil_div(BYTES, 128) * 128, PARTS = CB / VEC, CHUNKS = CHANNELS / CB;
constexpr int TAP_BYTES = CB * 4, POINT_BYTES = CB / 16 * (OUT / 8) * 256;
constexpr int STAGE = PATCH + ceil_div(TAPS * TAP_BYTES, 128) * 128 + POINT_BYTES;
constexpr int BM = BH * BW, PITCH = CB * 2 + 16, NB = OUT / 8, MB = BM / 16, PARTS_N = THREADS / 32 / MB;
constexpr int BLOCK_N = ceil_div(NB, PARTS_N), COLUMNS = (TW - 1) * STRIDE_W + (KW - 1) * DILATION_W + 1;
constexpr int TILES_H = ceil_div(OH, BH), TILES_W = ceil_div(OW, BW), TILES = BATCH * TILES_H * TILES_W;
static_assert(THREADS / 32 % MB == 0 && CB % 16 == 0, "warps share pixels evenly");

struct alignas(VEC * 2) Piece {
  element at[VEC];
};

__device__ __forceinline__ void mma(float (&d)[4], const u32 (&a)[4], uint2 b) {
#if defined(ELEMENT_BF16)
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
#endif
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}

extern "C" __global__ void __launch_bounds__(THREADS)
    separable(const __grid_constant__ TensorMap x, const float* __restrict__ w, const u8* __restrict__ p, result* __restrict__ y) {
  extern __shared__ __align__(128) u8 memory[];
  __shared__ alignas(8) u64 barriers[STAGES];
  u32 full = shared_address(barriers), base = shared_address(memory);
  u8* sums = memory + STAGES * STAGE;  // two of them, so that one is filled while one is read
  int t = threadIdx.x, warp = t / 32, lane = t % 32, mb = warp % MB, first = warp / MB * BLOCK_N;
  if (t == 0) {
    for (int s = 0; s < STAGES; s++) barrier_init(full + 8 * s, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  auto fetch = [&](int turn) {
    int i = blockIdx.x + turn / CHUNKS * gridDim.x, s = turn % STAGES;
    if (t != 0 || i >= TILES) return;
    int c = turn % CHUNKS * CB;
    barrier_expect(full + 8 * s, BYTES + TAPS * TAP_BYTES + POINT_BYTES);
    for (int d = 0; d < TAPS; d++)
      copy_bytes(base + s * STAGE + PATCH + d * TAP_BYTES, w + d * CHANNELS + c, full + 8 * s, TAP_BYTES);
    copy_bytes(base + (s + 1) * STAGE - POINT_BYTES, p + turn % CHUNKS * POINT_BYTES, full + 8 * s, POINT_BYTES);
    copy_4d(base + s * STAGE, &x, full + 8 * s, c, i % TILES_W * BW * STRIDE_W - PAD_W,
            i / TILES_W % TILES_H * BH * STRIDE_H - PAD_H, i / TILES_W / TILES_H);
  };
  for (int turn = 0; turn < STAGES - 1; turn++) fetch(turn);

  int turn = 0;
  for (int i = blockIdx.x; i < TILES; i += gridDim.x) {
    float total[BLOCK_N][4] = {};
    for (int chunk = 0; chunk < CHUNKS; chunk++, turn++) {
      u8* mine = sums + turn % 2 * BM * PITCH;
      barrier_wait(full + 8 * (turn % STAGES), turn / STAGES & 1);
      const u8* patch = memory + turn % STAGES * STAGE;
      const float* taps = (const float*)(patch + PATCH);
      const uint2* points = (const uint2*)(patch + STAGE - POINT_BYTES) + (lane ^ lane / 16 * 2);
      for (int item = t; item < BM / TW * PARTS; item += THREADS) {
        int part = item % PARTS * VEC, m = item / PARTS * TW;
        float sum_of[TW][VEC] = {};
#pragma unroll
        for (int kh = 0; kh < KH; kh++) {
          Piece line[COLUMNS];
#pragma unroll
          for (int column = 0; column < COLUMNS; column++)
            line[column] = *(const Piece*)(patch + (((m / BW * STRIDE_H + kh * DILATION_H) * IW + m % BW * STRIDE_W + column) * CB + part) * 2);
#pragma unroll
          for (int kw = 0; kw < KW; kw++) {
            const float* tap = taps + (kh * KW + kw) * CB + part;
#pragma unroll
            for (int v = 0; v < VEC; v += 4) {
              float4 by = *(const float4*)(tap + v);
#pragma unroll
              for (int ow = 0; ow < TW; ow++) {
                const Piece& from = line[ow * STRIDE_W + kw * DILATION_W];
                sum_of[ow][v] += widen(from.at[v]) * by.x;
                sum_of[ow][v + 1] += widen(from.at[v + 1]) * by.y;
                sum_of[ow][v + 2] += widen(from.at[v + 2]) * by.z;
                sum_of[ow][v + 3] += widen(from.at[v + 3]) * by.w;
              }
            }
          }
        }
#pragma unroll
        for (int ow = 0; ow < TW; ow++) {
          Piece piece;
          narrow_all(piece.at, sum_of[ow]);
          *(Piece*)(mine + (m + ow) * PITCH + part * 2) = piece;
        }
      }
      __syncthreads();
      fetch(turn + STAGES - 1);  // to where the turn before was, which all have left
      u32 rows = shared_address(mine) + (mb * 16 + lane % 16) * PITCH + lane / 16 * 16;
#pragma unroll
      for (int k = 0; k < CB / 16; k++) {
        u32 a[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(rows + k * 32) : "memory");
#pragma unroll
        for (int j = 0; j < BLOCK_N; j++)
          if (first + j < NB) mma(total[j], a, points[(k * NB + first + j) * 32]);
      }
    }
#pragma unroll
    for (int j = 0; j < BLOCK_N; j++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        int m = mb * 16 + half * 8 + lane / 4;
        int h = i / TILES_W % TILES_H * BH + m / BW, v = i % TILES_W * BW + m % BW, n = i / TILES_W / TILES_H;
        if (h < OH && v < OW && first + j < NB)
          *(Pair*)(y + (u64)((n * OH + h) * OW + v) * OUT + (first + j) * 8 + lane % 4 * 2) = narrow2(total[j][half * 2], total[j][half * 2 + 1]);
      }
  }
}
