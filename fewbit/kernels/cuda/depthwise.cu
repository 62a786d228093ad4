// Depthwise convolution: memory is all that counts. A thread has VEC neighbouring channels (NHWC) of
// TH x TW outputs; a column of the input is loaded once for all of them. Filters come as wide as sums,
// [taps][channels] for NHWC, [channels][taps] for NCHW, where neighbours have neighbouring outputs.
constexpr int TILES_W = ceil_div(OW, TW), TILES_H = ceil_div(OH, TH);
constexpr int ROWS = (TH - 1) * STRIDE_H + (KH - 1) * DILATION_H + 1;
constexpr int COLUMNS = (TW - 1) * STRIDE_W + (KW - 1) * DILATION_W + 1;
constexpr int PARTS = CHANNELS / VEC;

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
    depthwise(const element* __restrict__ x, const sum* __restrict__ w, result* __restrict__ y EPILOGUE_PARAMETERS) {
  u32 i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= (u32)BATCH * TILES_H * TILES_W * PARTS) return;
#if NHWC
  int c = i % PARTS * VEC, tw = i / PARTS % TILES_W, th = i / PARTS / TILES_W % TILES_H;
  int n = i / PARTS / TILES_W / TILES_H;
#else
  int tw = i % TILES_W, th = i / TILES_W % TILES_H, c = i / TILES_W / TILES_H % CHANNELS;
  int n = i / TILES_W / TILES_H / CHANNELS;
#endif
  Weights taps[TAPS];
#pragma unroll
  for (int d = 0; d < TAPS; d++)
    taps[d] = *(const Weights*)(w + (NHWC ? d * CHANNELS + c : c * TAPS + d));

  int h0 = th * TH * STRIDE_H - PAD_H, w0 = tw * TW * STRIDE_W - PAD_W;
  sum total[TH][TW][VEC] = {};
#pragma unroll
  for (int row = 0; row < ROWS; row++) {
    Piece line[COLUMNS];
#pragma unroll
    for (int column = 0; column < COLUMNS; column++) {
      line[column] = Piece{};
      if (inside(n, h0 + row, w0 + column))
        line[column] = *(const Piece*)(x + x_at(n, h0 + row, w0 + column, c));
    }
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
            total[oh][ow][v] += widen(line[ow * STRIDE_W + kw * DILATION_W].at[v]) *
                                taps[down / DILATION_H * KW + kw].at[v];
    }
  }
#pragma unroll
  for (int oh = 0; oh < TH; oh++)
#pragma unroll
    for (int ow = 0; ow < TW; ow++) {
      int h = th * TH + oh, v = tw * TW + ow;
      if (h >= OH || v >= OW) continue;
      Results results;
      u64 to = y_at((n * OH + h) * OW + v, c);
#pragma unroll
      for (int e = 0; e < VEC; e++) total[oh][ow][e] = FINISH(total[oh][ow][e], c + e, to + e);
      narrow_all(results.at, total[oh][ow]);
      *(Results*)(y + to) = results;
    }
}
