// Sizes of one convolution as constants, and where its elements lie. The macros are its sizes.
constexpr int CG = CHANNELS / GROUPS, FG = FILTERS / GROUPS, TAPS = KH * KW;
constexpr int PLANE = OH * OW, M = BATCH * PLANE, K = TAPS * CG;

struct Pixel {
  int n, h, w;  // of the input, at the filter's first tap
};
__device__ __forceinline__ Pixel pixel(int m) {
  return Pixel{m / PLANE, m % PLANE / OW * STRIDE_H - PAD_H, m % OW * STRIDE_W - PAD_W};
}

// The order of k is that of the weights in memory: taps, channels (NHWC); channels, taps (NCHW).
struct Tap {
  int h, w, c;
};
__device__ __forceinline__ Tap tap(int k) {
#if NHWC
  return Tap{k / CG / KW * DILATION_H, k / CG % KW * DILATION_W, k % CG};
#else
  return Tap{k % TAPS / KW * DILATION_H, k % KW * DILATION_W, k / TAPS};
#endif
}
__device__ __forceinline__ bool inside(int n, int h, int w) {
  return n < BATCH && (u32)h < HEIGHT && (u32)w < WIDTH;
}
__device__ __forceinline__ u64 x_at(int n, int h, int w, int c) {
#if NHWC
  return (((u64)n * HEIGHT + h) * WIDTH + w) * CHANNELS + c;
#else
  return (((u64)n * CHANNELS + c) * HEIGHT + h) * WIDTH + w;
#endif
}
__device__ __forceinline__ u64 y_at(int m, int f) {
#if NHWC
  return (u64)m * FILTERS + f;
#else
  return ((u64)(m / PLANE) * FILTERS + f) * PLANE + m % PLANE;
#endif
}
