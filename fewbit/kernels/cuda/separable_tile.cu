// Depthwise and pointwise convolution in one kernel, for Hopper: a block has BH x BW pixels, at most 64, and asks for all
// of their channels and all pointwise filters before anything is waited for. A warp takes 64 channels, two a lane: it
// reads each pixel once, keeps the sums of the rows that need it, and writes them, rounded as they would be in global
// memory, over the pixels that it has left behind. Four more warps multiply what is ready by the pointwise filters.
// Filters lie as in separable.cu; there, 16 channels are permuted as lanes want them, so the warps permute theirs alike.
constexpr int IH = (BH - 1) * STRIDE_H + (KH - 1) * DILATION_H + 1, IW = (BW - 1) * STRIDE_W + (KW - 1) * DILATION_W + 1;
constexpr int BM = BH * BW, CHUNKS = CHANNELS / 64, NB = OUT / 8;
constexpr int PATCH_BYTES = IH * IW * 128, PATCH = PATCH_BYTES > 8192 ? ceil_div(PATCH_BYTES, 1024) * 1024 : 8192;
constexpr int POINT_BYTES = OUT * 128, POINTS_AT = CHUNKS * PATCH;
constexpr int TILES_H = ceil_div(OH, BH), TILES_W = ceil_div(OW, BW);
static_assert(BM <= 64, "one matmul of four warps has all pixels");

// Filters of eight outputs and 16 channels, 32 bytes each, halves of the last four exchanged.
__device__ __forceinline__ u64 filters(u32 address) {
  return (u64)((address & 0x3ffff) >> 4) | (u64)1 << 16 | (u64)(256 >> 4) << 32 | (u64)3 << 62;
}

__device__ __forceinline__ float2 widen2(u32 both) { return make_float2(widen((element)both), widen((element)(both >> 16))); }

extern "C" __global__ void __launch_bounds__(128 + PRODUCERS * 32, 1)
    separable(const __grid_constant__ TensorMap x, const float* __restrict__ w, const u8* __restrict__ p, result* __restrict__ y) {
  extern __shared__ __align__(1024) u8 memory[];
  __shared__ alignas(8) u64 barriers[3 * CHUNKS];
  u32 base = (shared_address(memory) + 1023) / 1024 * 1024;
  u8* patches = memory + (base - shared_address(memory));
  u32 fetched = shared_address(barriers), ready = fetched + 8 * CHUNKS, points = ready + 8 * CHUNKS;
  u32 t = threadIdx.x, warp = t / 32, lane = t % 32, tile = blockIdx.x;
  u32 image = tile / (TILES_W * TILES_H), top = tile / TILES_W % TILES_H * BH, left = tile % TILES_W * BW;
  if (t == 0) {
    for (int i = 0; i < 3 * CHUNKS; i++) barrier_init(fetched + 8 * i, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    for (int c = 0; c < CHUNKS; c++) {
      barrier_expect(fetched + 8 * c, PATCH_BYTES);
      copy_4d(base + c * PATCH, &x, fetched + 8 * c, c * 64, left * STRIDE_W - PAD_W, top * STRIDE_H - PAD_H, image);
    }
    for (int c = 0; c < CHUNKS; c++) {
      barrier_expect(points + 8 * c, POINT_BYTES);
      copy_bytes(base + POINTS_AT + c * POINT_BYTES, p + c * POINT_BYTES, points + 8 * c, POINT_BYTES);
    }
  }
  __syncthreads();

  if (warp >= 4) {
    for (u32 c = warp - 4; c < CHUNKS; c += PRODUCERS) {
      float2 by[TAPS];
#pragma unroll
      for (int d = 0; d < TAPS; d++) by[d] = *(const float2*)(w + d * CHANNELS + c * 64 + lane * 2);
      u8* patch = patches + c * PATCH;
      u32 place = lane % 8 < 4 ? lane % 8 * 2 : lane % 8 * 2 - 7, piece = lane / 8 * 2 + place / 4, within = place % 4 * 4;
      barrier_wait(fetched + 8 * c, 0);
      float2 sum_of[BH][BW] = {};
      u32 next[IW];  // a row ahead, which the compiler may not read before the sums are written
#pragma unroll
      for (int iw = 0; iw < IW; iw++) next[iw] = *(const u32*)(patch + iw * 128 + lane * 4);
#pragma unroll
      for (int ih = 0; ih < IH; ih++) {
        float2 line[IW];
#pragma unroll
        for (int iw = 0; iw < IW; iw++) line[iw] = widen2(next[iw]);
#pragma unroll
        for (int iw = 0; iw < IW && ih + 1 < IH; iw++) next[iw] = *(const u32*)(patch + ((ih + 1) * IW + iw) * 128 + lane * 4);
#pragma unroll
        for (int oh = 0; oh < BH; oh++)
#pragma unroll
          for (int kh = 0; kh < KH; kh++) {
            if (oh * STRIDE_H + kh * DILATION_H != ih) continue;
#pragma unroll
            for (int ow = 0; ow < BW; ow++)
#pragma unroll
              for (int kw = 0; kw < KW; kw++) {
                sum_of[oh][ow].x += line[ow * STRIDE_W + kw * DILATION_W].x * by[kh * KW + kw].x;
                sum_of[oh][ow].y += line[ow * STRIDE_W + kw * DILATION_W].y * by[kh * KW + kw].y;
              }
          }
#pragma unroll
        for (int oh = 0; oh < BH; oh++) {
          if (oh * STRIDE_H + (KH - 1) * DILATION_H != ih) continue;
          __syncwarp();
#pragma unroll
          for (int ow = 0; ow < BW; ow++) {
            int m = oh * BW + ow;
            *(u32*)(patch + m * 128 + (piece ^ m % 8) * 16 + within) = narrow_bits(sum_of[oh][ow].x, sum_of[oh][ow].y);
          }
        }
      }
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      __syncwarp();
      if (lane == 0) barrier_arrive(ready + 8 * c);
    }
    return;
  }

  float total[OUT / 2];
  for (int c = 0; c < CHUNKS; c++) {
    barrier_wait(points + 8 * c, 0);
    barrier_wait(ready + 8 * c, 0);
    warpgroup_begin();
#pragma unroll
    for (int k = 0; k < 4; k++)
      multiply(total, matrix(base + c * PATCH) + k * 2, filters(base + POINTS_AT + c * POINT_BYTES + k * NB * 256), c | k);
    warpgroup_commit();
  }
  warpgroup_wait<0>();
#pragma unroll
  for (int j = 0; j < NB; j++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      u32 m = warp * 16 + half * 8 + lane / 4, h = top + m / BW, v = left + m % BW;
      if (m < BM && h < OH && v < OW)
        *(u32*)(y + (u64)((image * OH + h) * OW + v) * OUT + j * 8 + lane % 4 * 2) = narrow_bits(total[j * 4 + half * 2], total[j * 4 + half * 2 + 1]);
    }
}
