// Depthwise and pointwise convolution in one kernel, for Hopper, all at once: a cluster has BH x BW pixels, and
// each of its blocks a part of the channels, which it asks for before anything is waited for. It computes their
// depthwise sums into shared memory, rounded as they would be in global memory, and multiplies those by its part of
// the pointwise filters. What that gives, for all filters, is sent to the blocks of the cluster, each of which
// adds up and stores a part of the filters. Filters lie as in separable.cu.
constexpr int CB = CHANNELS / CLUSTER, PARTS = CB / VEC, COLUMNS = (TW - 1) * STRIDE_W + (KW - 1) * DILATION_W + 1;
constexpr int IH = (BH - 1) * STRIDE_H + (KH - 1) * DILATION_H + 1, IW = (BW - 1) * STRIDE_W + (KW - 1) * DILATION_W + 1;
constexpr int BM = BH * BW, PITCH = CB * 2 + 16, NB = OUT / 8, SLICE = OUT / CLUSTER;
constexpr int PATCH_BYTES = IH * IW * CB * 2, TAP_BYTES = CB * 4, POINT_BYTES = CB * OUT * 2;
constexpr int TAPS_AT = ceil_div(PATCH_BYTES, 128) * 128, RECEIVED_BYTES = CLUSTER > 1 ? BM * OUT * 4 : 0;
constexpr int LOADED = ceil_div(TAPS_AT + TAPS * TAP_BYTES, 128) * 128;
constexpr int POINTS_AT = LOADED > RECEIVED_BYTES ? LOADED : ceil_div(RECEIVED_BYTES, 128) * 128;
constexpr int SUMS_AT = POINTS_AT + POINT_BYTES;
// Warps have WM blocks of 16 pixels and a part of the blocks of 8 filters; some may have nothing.
constexpr int WARPS_M = ceil_div(ceil_div(BM, 16), WM), PARTS_N = THREADS / 32 / WARPS_M, BLOCK_N = ceil_div(NB, PARTS_N);
constexpr int TILES_H = ceil_div(OH, BH), TILES_W = ceil_div(OW, BW);

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

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    separable(const __grid_constant__ TensorMap x, const float* __restrict__ w, const u8* __restrict__ p, result* __restrict__ y) {
  extern __shared__ __align__(128) u8 memory[];
  __shared__ alignas(8) u64 barriers[3];
  u32 base = shared_address(memory), full = shared_address(barriers), arrived = full + 16;
  u32 t = threadIdx.x, warp = t / 32, lane = t % 32, rank = blockIdx.x % CLUSTER, tile = blockIdx.x / CLUSTER;
  u32 image = tile / (TILES_W * TILES_H), top = tile / TILES_W % TILES_H * BH, left = tile % TILES_W * BW;
  if (t == 0) {
    for (int i = 0; i < 3; i++) barrier_init(full + 8 * i, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    barrier_expect(full, PATCH_BYTES + TAPS * TAP_BYTES);
    copy_4d(base, &x, full, rank * CB, left * STRIDE_W - PAD_W, top * STRIDE_H - PAD_H, image);
    for (int d = 0; d < TAPS; d++) copy_bytes(base + TAPS_AT + d * TAP_BYTES, w + d * CHANNELS + rank * CB, full, TAP_BYTES);
    barrier_expect(full + 8, POINT_BYTES);
    copy_bytes(base + POINTS_AT, p + rank * POINT_BYTES, full + 8, POINT_BYTES);
    if (CLUSTER > 1) barrier_expect(arrived, RECEIVED_BYTES);
  }
  __syncthreads();
  barrier_wait(full, 0);

  const float* taps = (const float*)(memory + TAPS_AT);
  for (u32 item = t; item < BM / TW * PARTS; item += THREADS) {
    u32 part = item % PARTS * VEC, m = item / PARTS * TW;
    const u8* from = memory + ((m / BW * STRIDE_H * IW + m % BW * STRIDE_W) * CB + part) * 2;
    float sum_of[TW][VEC] = {};
#pragma unroll
    for (int kh = 0; kh < KH; kh++) {
      Piece line[COLUMNS];
#pragma unroll
      for (int column = 0; column < COLUMNS; column++) line[column] = *(const Piece*)(from + (kh * DILATION_H * IW + column) * CB * 2);
#pragma unroll
      for (int kw = 0; kw < KW; kw++) {
        const float* tap = taps + (kh * KW + kw) * CB + part;
#pragma unroll
        for (int v = 0; v < VEC; v += 2) {
          float2 by = *(const float2*)(tap + v);
#pragma unroll
          for (int ow = 0; ow < TW; ow++) {
            const Piece& at = line[ow * STRIDE_W + kw * DILATION_W];
            sum_of[ow][v] += widen(at.at[v]) * by.x;
            sum_of[ow][v + 1] += widen(at.at[v + 1]) * by.y;
          }
        }
      }
    }
#pragma unroll
    for (int ow = 0; ow < TW; ow++) {
      Piece piece;
      narrow_all(piece.at, sum_of[ow]);
      *(Piece*)(memory + SUMS_AT + (m + ow) * PITCH + part * 2) = piece;
    }
  }
  __syncthreads();
#if CLUSTER > 1
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");  // others may write where the patch was
#endif
  barrier_wait(full + 8, 0);

  u32 wm = warp % WARPS_M * WM, first = warp / WARPS_M * BLOCK_N;
  float total[WM][BLOCK_N][4] = {};
  if (warp < WARPS_M * PARTS_N) {
    const uint2* points = (const uint2*)(memory + POINTS_AT) + first * 32 + lane;
    u32 rows = base + SUMS_AT + (wm * 16 + lane % 16) * PITCH + lane / 16 * 16;
#pragma unroll
    for (int k = 0; k < CB / 16; k++) {
      u32 a[WM][4];
#pragma unroll
      for (int i = 0; i < WM; i++)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a[i][0]), "=r"(a[i][1]), "=r"(a[i][2]), "=r"(a[i][3]) : "r"(rows + i * 16 * PITCH + k * 32) : "memory");
#pragma unroll
      for (int j = 0; j < BLOCK_N; j++) {
        if (NB % PARTS_N && first + j >= NB) break;
        uint2 b = points[(k * NB + j) * 32];
#pragma unroll
        for (int i = 0; i < WM; i++) mma(total[i][j], a[i], b);
      }
    }
  }
#if CLUSTER > 1
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
#pragma unroll
  for (int i = 0; i < WM; i++)
#pragma unroll
    for (int j = 0; j < BLOCK_N; j++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        u32 m = (wm + i) * 16 + half * 8 + lane / 4, f = (first + j) * 8 + lane % 4 * 2;
        float even = total[i][j][half * 2], odd = total[i][j][half * 2 + 1];
        if (warp >= WARPS_M * PARTS_N || m >= BM || first + j >= NB) continue;
#if CLUSTER > 1
        send(base + ((rank * BM + m) * SLICE + f % SLICE) * 4, arrived, f / SLICE, even, odd);
#else
        u32 h = top + m / BW, v = left + m % BW;
        if (h < OH && v < OW) *(Pair*)(y + (u64)((image * OH + h) * OW + v) * OUT + f) = narrow2(even, odd);
#endif
      }
#if CLUSTER > 1
  barrier_wait(arrived, 0);
  for (u32 item = t; item < BM * (SLICE / 8); item += THREADS) {
    u32 m = item / (SLICE / 8), f = item % (SLICE / 8) * 8, h = top + m / BW, v = left + m % BW;
    if (h >= OH || v >= OW) continue;
    float sum_of[8] = {};
#pragma unroll
    for (int r = 0; r < CLUSTER; r++)
#pragma unroll
      for (int e = 0; e < 8; e += 4) {
        float4 sent = *(const float4*)(memory + ((r * BM + m) * SLICE + f + e) * 4);
        sum_of[e] += sent.x, sum_of[e + 1] += sent.y, sum_of[e + 2] += sent.z, sum_of[e + 3] += sent.w;
      }
    struct alignas(16) Eight {
      result at[8];
    } eight;
    narrow_all(eight.at, sum_of);
    *(Eight*)(y + (u64)((image * OH + h) * OW + v) * OUT + rank * SLICE + f) = eight;
  }
#endif
}
