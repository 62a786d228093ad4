// Rows of an image of few channels, spread so that a filter's columns lie side by side:
// y[n, row, ow, (a, kw, c)] = x[n, c, row * STRIDE_H + a - PAD_H, ow * STRIDE_W + kw - PAD_W]. A block
// has one row of y. It brings the STRIDE_H rows of x that are in it to shared memory,
// channels-last; there, what one output needs of a row is neighbouring elements.
constexpr int INNER = KW * CHANNELS, LINE = (COLUMNS - 1) * STRIDE_W + KW, VEC = 16 / sizeof(element);
constexpr int PARTS = SPREAD / VEC;
struct alignas(16) Piece {
  element at[VEC];
};
extern "C" __global__ void __launch_bounds__(THREADS)
    unfold(const float* __restrict__ x, element* __restrict__ y) {
  __shared__ element lines[STRIDE_H][LINE * CHANNELS];
  int n = blockIdx.x / ROWS, row = blockIdx.x % ROWS, t = threadIdx.x;
  for (int i = t; i < STRIDE_H * CHANNELS * LINE; i += THREADS) {
    int at = i % LINE, c = i / LINE % CHANNELS, a = i / LINE / CHANNELS;
    int h = row * STRIDE_H + a - PAD_H, w = at - PAD_W;
    bool inside = (u32)h < HEIGHT && (u32)w < WIDTH;
    lines[a][at * CHANNELS + c] = narrow(inside ? x[(((u64)n * CHANNELS + c) * HEIGHT + h) * WIDTH + w] : 0.0f);
  }
  __syncthreads();
  for (int i = t; i < COLUMNS * PARTS; i += THREADS) {
    int ow = i / PARTS, first = i % PARTS * VEC;
    Piece piece;
#pragma unroll
    for (int v = 0; v < VEC; v++) {
      int a = (first + v) / INNER, at = (first + v) % INNER;
      piece.at[v] = a < STRIDE_H ? lines[a][ow * STRIDE_W * CHANNELS + at] : narrow(0.0f);
    }
    *(Piece*)(y + (u64)blockIdx.x * COLUMNS * SPREAD + i * VEC) = piece;
  }
}
