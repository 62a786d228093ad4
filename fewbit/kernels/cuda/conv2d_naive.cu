// One thread, one output: every operand comes from global memory each time it is used.
extern "C" __global__ void conv2d_naive(const element* x, const element* w, result* y) {
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (u64)M * FILTERS) return;
#if NHWC
  int m = i / FILTERS, f = i % FILTERS;
#else
  int m = i / FILTERS / PLANE * PLANE + i % PLANE, f = i / PLANE % FILTERS;
#endif
  Pixel p = pixel(m);
  int c0 = f / FG * CG;
  sum total = 0;
  for (int kh = 0; kh < KH; kh++)
    for (int kw = 0; kw < KW; kw++) {
      int h = p.h + kh * DILATION_H, v = p.w + kw * DILATION_W;
      if (!inside(p.n, h, v)) continue;
      for (int c = 0; c < CG; c++) {
#if NHWC
        element weight = w[(u64)(f * TAPS + kh * KW + kw) * CG + c];
#else
        element weight = w[(u64)(f * CG + c) * TAPS + kh * KW + kw];
#endif
        total += widen(x[x_at(p.n, h, v, c0 + c)]) * widen(weight);
      }
    }
  y[y_at(m, f)] = narrow(total);
}
