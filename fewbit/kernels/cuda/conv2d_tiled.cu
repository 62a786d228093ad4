// A block computes a tile of BM pixels x BN filters. Its threads fetch BK columns of both operands
// into shared memory together, and each of them computes TM x TN outputs in registers. VX, VW and VY
// are how many neighbours are loaded or stored at once. With TM = TN = 1 and no vectors this is
// plain tiling; the rest are ablations. No two threads write one output, so nothing is atomic.
constexpr int THREADS = (BM / TM) * (BN / TN), PART_M = TM < 4 ? TM : 4, PART_N = TN < 4 ? TN : 4;

template <int SIZE>
struct alignas(SIZE * sizeof(element)) Piece {
  element at[SIZE];
};
struct alignas(VY * sizeof(result)) Results {
  result at[VY];
};

extern "C" __global__ void __launch_bounds__(THREADS)
    conv2d_tiled(const element* __restrict__ x, const element* __restrict__ w, result* y EPILOGUE_PARAMETERS) {
  __shared__ alignas(16) sum a[BK][BM + 4];
  __shared__ alignas(16) sum b[BK][BN + 4];
  int t = threadIdx.x, tx = t % (BN / TN), ty = t / (BN / TN);
  int m0 = blockIdx.x * BM, f0 = blockIdx.y * BN, g = blockIdx.z;
  sum total[TM][TN] = {};

  for (int k0 = 0; k0 < K; k0 += BK) {
    for (int i = t; i < BM * BK / VX; i += THREADS) {
#if NHWC
      int row = i / (BK / VX), column = i % (BK / VX) * VX;
#else
      int row = i % BM, column = i / BM;
#endif
      Piece<VX> piece = {};
      if (m0 + row < M && k0 + column < K) {
        Pixel p = pixel(m0 + row);
        Tap d = tap(k0 + column);
        if (inside(p.n, p.h + d.h, p.w + d.w))
          piece = *(const Piece<VX>*)(x + x_at(p.n, p.h + d.h, p.w + d.w, g * CG + d.c));
      }
#pragma unroll
      for (int j = 0; j < VX; j++) a[column + j][row] = widen(piece.at[j]);
    }
    for (int i = t; i < BN * BK / VW; i += THREADS) {
      int row = i / (BK / VW), column = i % (BK / VW) * VW;
      Piece<VW> piece = {};
      if (f0 + row < FG && k0 + column < K)
        piece = *(const Piece<VW>*)(w + (u64)(g * FG + f0 + row) * K + k0 + column);
#pragma unroll
      for (int j = 0; j < VW; j++) b[column + j][row] = widen(piece.at[j]);
    }
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < BK; k++) {
      sum left[TM], right[TN];
#pragma unroll
      for (int i = 0; i < TM; i++)
        left[i] = a[k][i / PART_M * (BM / TM * PART_M) + ty * PART_M + i % PART_M];
#pragma unroll
      for (int j = 0; j < TN; j++)
        right[j] = b[k][j / PART_N * (BN / TN * PART_N) + tx * PART_N + j % PART_N];
#pragma unroll
      for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) total[i][j] += left[i] * right[j];
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < TM; i++) {
    int m = m0 + i / PART_M * (BM / TM * PART_M) + ty * PART_M + i % PART_M;
#pragma unroll
    for (int j = 0; j < TN; j += VY) {
      int f = f0 + j / PART_N * (BN / TN * PART_N) + tx * PART_N + j % PART_N;
      if (m >= M || f >= FG) continue;
      Results results;
#pragma unroll
      for (int e = 0; e < VY; e++) results.at[e] = narrow(FINISH(total[i][j + e], g * FG + f + e, y_at(m, g * FG + f + e)));
      *(Results*)(y + y_at(m, g * FG + f)) = results;
    }
  }
}
