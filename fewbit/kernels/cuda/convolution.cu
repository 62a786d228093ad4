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

// What is done to a sum before it is stored: clamp(sum + bias + add, LOW, HIGH), as far as there is any.
#if HAS_EPILOGUE
#define EPILOGUE_PARAMETERS , const float* __restrict__ bias, const result* __restrict__ add
#define FINISH(value, f, at) finish(value, f, at, bias, add)
#define FINISH_FIRST(value, f) finish_first(value, f, bias)
__device__ __forceinline__ sum bounded(sum value) {
#ifdef LOW
  value = value > LOW ? value : LOW;
#endif
#ifdef HIGH
  value = value < HIGH ? value : HIGH;
#endif
  return value;
}
__device__ __forceinline__ sum finish(sum value, int f, u64 at, const float* bias, const result* add) {
  if (HAS_BIAS) value += bias[f];
  if (HAS_ADD) value += widen(add[at]);
  return bounded(value);
}
// In two steps, where sums are transposed in shared memory between them: first what depends on
// the filter alone, then what is added, 16 bytes at a time.
__device__ __forceinline__ sum finish_first(sum value, int f, const float* bias) {
  if (HAS_BIAS && f < FILTERS) value += bias[f];
  return HAS_ADD ? value : bounded(value);
}
__device__ __forceinline__ uint4 finish_rest(uint4 piece, const result* add) {
  if (!HAS_ADD) return piece;
  constexpr int COUNT = 16 / sizeof(result);
  uint4 other = *(const uint4*)add;
  result *values = (result*)&piece, *terms = (result*)&other;
  sum all[COUNT];
#pragma unroll
  for (int i = 0; i < COUNT; i++) all[i] = bounded(widen(values[i]) + widen(terms[i]));
  alignas(16) result narrow[COUNT];
  narrow_all(narrow, all);
  return *(uint4*)narrow;
}
#define FINISH_REST(piece, at) finish_rest(piece, add + (at))
#else
#define EPILOGUE_PARAMETERS
#define FINISH(value, f, at) (value)
#define FINISH_FIRST(value, f) (value)
#define FINISH_REST(piece, at) (piece)
#endif
