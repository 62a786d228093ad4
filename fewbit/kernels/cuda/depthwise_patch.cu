// Depthwise convolution on Hopper. The copy engine brings patches of BH x BW outputs' inputs, CB channels
// deep, zeros where the image ends; threads compute from shared memory, with no bounds to look at, while
// the next patches are on their way. Filters are [taps][channels], as wide as sums.
constexpr int IH = (BH - 1) * STRIDE_H + (KH - 1) * DILATION_H + 1, IW = (BW - 1) * STRIDE_W + (KW - 1) * DILATION_W + 1;
constexpr int BYTES = IH * IW * CB * sizeof(element), STAGE = ceil_div(BYTES, 128) * 128, PARTS = CB / VEC;
constexpr int TILES_H = ceil_div(OH, BH), TILES_W = ceil_div(OW, BW), BLOCKS_C = CHANNELS / CB;
constexpr int TILES = BATCH * TILES_H * TILES_W * BLOCKS_C, ITEMS = (BH / TH) * (BW / TW) * PARTS;
constexpr int ROWS = (TH - 1) * STRIDE_H + (KH - 1) * DILATION_H + 1;
constexpr int COLUMNS = (TW - 1) * STRIDE_W + (KW - 1) * DILATION_W + 1;
static_assert(THREADS % PARTS == 0, "a thread keeps its channels");

struct alignas(VEC * sizeof(element)) Piece {
  element at[VEC];
};
struct alignas(VEC * sizeof(sum) < 16 ? VEC * sizeof(sum) : 16) Weights {
  sum at[VEC];
};
struct alignas(VEC * sizeof(result) < 16 ? VEC * sizeof(result) : 16) Results {
  result at[VEC];
};

extern "C" __global__ void __launch_bounds__(THREADS)
    depthwise_patch(const __grid_constant__ TensorMap x, const sum* __restrict__ w, result* __restrict__ y) {
  extern __shared__ __align__(128) u8 memory[];
  __shared__ alignas(8) u64 barriers[STAGES];
  u32 full = shared_address(barriers), base = shared_address(memory);
  int t = threadIdx.x;
  if (t == 0) {
    for (int s = 0; s < STAGES; s++) barrier_init(full + 8 * s, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  auto fetch = [&](int turn) {
    int i = blockIdx.x + turn * gridDim.x, s = turn % STAGES;
    if (t != 0 || i >= TILES) return;
    int c = i % BLOCKS_C * CB, tw = i / BLOCKS_C % TILES_W, th = i / BLOCKS_C / TILES_W % TILES_H;
    barrier_expect(full + 8 * s, BYTES);
    copy_4d(base + s * STAGE, &x, full + 8 * s, c, tw * BW * STRIDE_W - PAD_W, th * BH * STRIDE_H - PAD_H,
            i / BLOCKS_C / TILES_W / TILES_H);
  };
  for (int turn = 0; turn < STAGES - 1; turn++) fetch(turn);
  int part = t % PARTS * VEC;
  for (int turn = 0, i = blockIdx.x; i < TILES; turn++, i += gridDim.x) {
    fetch(turn + STAGES - 1);
    int c = i % BLOCKS_C * CB + part, tw = i / BLOCKS_C % TILES_W, th = i / BLOCKS_C / TILES_W % TILES_H;
    int n = i / BLOCKS_C / TILES_W / TILES_H;
    Weights taps[TAPS];
#pragma unroll
    for (int d = 0; d < TAPS; d++) taps[d] = *(const Weights*)(w + d * CHANNELS + c);
    barrier_wait(full + 8 * (turn % STAGES), turn / STAGES & 1);
    const u8* patch = memory + turn % STAGES * STAGE;
    for (int item = t / PARTS; item < ITEMS / PARTS; item += THREADS / PARTS) {
      int ow0 = item % (BW / TW) * TW, oh0 = item / (BW / TW) * TH;
      sum total[TH][TW][VEC] = {};
#pragma unroll
      for (int row = 0; row < ROWS; row++) {
        Piece line[COLUMNS];
#pragma unroll
        for (int column = 0; column < COLUMNS; column++)
          line[column] = *(const Piece*)(patch + (((oh0 * STRIDE_H + row) * IW + ow0 * STRIDE_W + column) * CB + part) * sizeof(element));
#pragma unroll
        for (int oh = 0; oh < TH; oh++) {
          int down = row - oh * STRIDE_H;
          if (down < 0 || down % DILATION_H || down / DILATION_H >= KH) continue;
#pragma unroll
          for (int ow = 0; ow < TW; ow++)
#pragma unroll
            for (int kw = 0; kw < KW; kw++)
#pragma unroll
              for (int v = 0; v < VEC; v++)
                total[oh][ow][v] += widen(line[ow * STRIDE_W + kw * DILATION_W].at[v]) * taps[down / DILATION_H * KW + kw].at[v];
        }
      }
#pragma unroll
      for (int oh = 0; oh < TH; oh++)
#pragma unroll
        for (int ow = 0; ow < TW; ow++) {
          int h = th * BH + oh0 + oh, v = tw * BW + ow0 + ow;
          if (h >= OH || v >= OW) continue;
          Results results;
          narrow_all(results.at, total[oh][ow]);
#pragma unroll
      for (int e = 0; e + 1 < VEC; e += 2) *(Pair*)&results.at[e] = narrow2(total[oh][ow][e], total[oh][ow][e + 1]);
          *(Results*)(y + (u64)((n * OH + h) * OW + v) * CHANNELS + c) = results;
        }
    }
    __syncthreads();
  }
}
