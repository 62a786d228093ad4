// The largest value of each window, NHWC. A thread has VEC neighbouring channels of one output; what
// lies outside of the image is smaller than everything.
struct alignas(VEC * sizeof(element)) Piece {
  element at[VEC];
};
extern "C" __global__ void __launch_bounds__(THREADS)
    max_pool(const element* __restrict__ x, element* __restrict__ y) {
  constexpr int PARTS = CHANNELS / VEC;
  u32 i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= (u32)BATCH * OH * OW * PARTS) return;
  int c = i % PARTS * VEC, ow = i / PARTS % OW, oh = i / PARTS / OW % OH, n = i / PARTS / OW / OH;
  float largest[VEC];
#pragma unroll
  for (int v = 0; v < VEC; v++) largest[v] = -__int_as_float(0x7f800000);
#pragma unroll
  for (int kh = 0; kh < KH; kh++)
#pragma unroll
    for (int kw = 0; kw < KW; kw++) {
      int h = oh * STRIDE_H - PAD_H + kh, w = ow * STRIDE_W - PAD_W + kw;
      if ((u32)h >= HEIGHT || (u32)w >= WIDTH) continue;
      Piece piece = *(const Piece*)(x + (((u64)n * HEIGHT + h) * WIDTH + w) * CHANNELS + c);
#pragma unroll
      for (int v = 0; v < VEC; v++) {
        float value = widen(piece.at[v]);
        largest[v] = value > largest[v] || value != value ? value : largest[v];
      }
    }
  Piece piece;
#pragma unroll
  for (int v = 0; v < VEC; v++) piece.at[v] = narrow(largest[v]);
  *(Piece*)(y + (u64)i * VEC) = piece;
}
