// Hopper's implicit GEMM. One warp has the copy engine fetch slices of 128 bytes along k, through a
// ring of STAGES; GROUPS_OF_WARPS warpgroups multiply them, MI times 64 pixels by BN filters each.
// The copy engine finds the pixels of a tap itself, padding, stride and dilation included, so there is
// no address arithmetic. Blocks are persistent: the next tile is being fetched while
// this one is stored. With SPLIT > 1, a cluster of blocks shares a tile's k and adds up its sums
// through their shared memories, always in the same order; such a cluster has one tile.
constexpr int UNIT = sizeof(element), BK = 128 / UNIT, BM = 64 * MI * CONSUMERS;
constexpr int CHUNKS = ceil_div(CG, BK), STEPS = TAPS * CHUNKS, SHARE = ceil_div(STEPS, SPLIT);
constexpr int TILES_M = ceil_div(M, BM), TILES_F = ceil_div(FG, BN), TILES = TILES_M * TILES_F * GROUPS;
constexpr int STAGE_A = BM * 128, STAGE_B = BN * 128, STAGE = STAGE_A + STAGE_B;
constexpr int PITCH = BN * sizeof(result) + 16;
constexpr int THREADS = CONSUMERS * 128 + (BLOCKS == 1 ? 128 : 32);

struct Tile {
  int m, f, g;
};
// Neighbouring blocks share filters and pixels: RASTER tiles of pixels before the next filters.
__device__ __forceinline__ Tile tile_at(int i) {
  int g = i / (TILES_M * TILES_F), r = i % (TILES_M * TILES_F);
  int band = r / (RASTER * TILES_F), height = min(RASTER, TILES_M - band * RASTER);
  r -= band * RASTER * TILES_F;
  return Tile{(band * RASTER + r % height) * BM, r / height * BN, g};
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    conv2d_wgmma(const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap w, result* y EPILOGUE_PARAMETERS) {
  extern __shared__ __align__(1024) u8 memory[];
  __shared__ alignas(8) u64 barriers[2 * STAGES];
  u32 base = (shared_address(memory) + 1023) & ~1023u;
  u32 full = shared_address(barriers), empty = full + 8 * STAGES;
  u8* staging = memory + (base - shared_address(memory)) + STAGES * STAGE;
  int t = threadIdx.x, group = t / 128;
  int rank = SPLIT > 1 ? cluster_rank() : 0;
  int begin = rank * SHARE, count = min(SHARE, STEPS - begin);

  if (t == 0) {
    for (int s = 0; s < STAGES; s++) {
      barrier_init(full + 8 * s, 1);
      barrier_init(empty + 8 * s, 4 * CONSUMERS);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();

  if (group == CONSUMERS) {
    if (BLOCKS == 1) fewer_registers<40>();
    if (t == CONSUMERS * 128) {
      prefetch(&x);
      prefetch(&w);
      int step = 0;
      for (int i = blockIdx.x / SPLIT; i < TILES; i += gridDim.x / SPLIT) {
        Tile tile = tile_at(i);
        Pixel p = pixel(tile.m);
        for (int k = begin; k < begin + count; k++, step++) {
          int s = step % STAGES, d = k / CHUNKS, c = k % CHUNKS * BK;
          barrier_wait(empty + 8 * s, (step / STAGES + 1) & 1);
          barrier_expect(full + 8 * s, STAGE);
          u32 to = base + s * STAGE;
          copy_pixels(to, &x, full + 8 * s, tile.g * CG + c, p.w, p.h, p.n, d % KW * DILATION_W, d / KW * DILATION_H);
          copy_3d(to + STAGE_A, &w, full + 8 * s, c, d, tile.g * FG + tile.f);
        }
      }
    }
#if SPLIT > 1
    __syncwarp();
    cluster_sync();
    cluster_sync();
#endif
    return;
  }

  if (BLOCKS == 1) more_registers<CONSUMERS < 3 ? 232 : 152>();
  int warp = t / 32 % 4, lane = t % 32, step = 0;
  for (int i = blockIdx.x / SPLIT; i < TILES; i += gridDim.x / SPLIT) {
    Tile tile = tile_at(i);
    sum total[MI][BN / 2];
    for (int k = 0; k < count; k++, step++) {
      int s = step % STAGES;
      barrier_wait(full + 8 * s, step / STAGES & 1);
      u64 a = matrix(base + s * STAGE + group * MI * 64 * 128), b = matrix(base + s * STAGE + STAGE_A);
      warpgroup_begin();
#pragma unroll
      for (int part = 0; part < 4; part++)
#pragma unroll
        for (int m = 0; m < MI; m++) multiply(total[m], a + m * (64 * 128 >> 4) + part * 2, b + part * 2, k | part);
      warpgroup_commit();
      warpgroup_wait<1>();
      if (k > 0 && lane == 0) barrier_arrive(empty + 8 * ((step - 1) % STAGES));
    }
    warpgroup_wait<0>();
    if (count > 0 && lane == 0) barrier_arrive(empty + 8 * ((step - 1) % STAGES));

#if SPLIT > 1
    // Sums [BM][BN + 4] of this block; then every block adds up and stores BM / SPLIT of the rows.
    sum* sums = (sum*)staging;
    constexpr int WIDE = BN + 4;
#pragma unroll
    for (int m = 0; m < MI; m++)
#pragma unroll
      for (int j = 0; j < BN / 2; j++) {
        int row = (group * MI + m) * 64 + warp * 16 + lane / 4 + j / 2 % 2 * 8;
        sums[row * WIDE + j / 4 * 8 + lane % 4 * 2 + j % 2] = count > 0 ? total[m][j] : sum(0);
      }
    cluster_sync();
    for (int e = t; e < BM / SPLIT * BN / 2; e += CONSUMERS * 128) {
      int row = rank * (BM / SPLIT) + e / (BN / 2), f = e % (BN / 2) * 2;
      if (tile.m + row >= M || tile.f + f >= FG) continue;
      u32 at = shared_address(sums + row * WIDE + f);
      sum first = 0, second = 0;
#pragma unroll
      for (int r = 0; r < SPLIT; r++) {
#if defined(ELEMENT_I8)
        first += __float_as_int(cluster_load(at, r));
        second += __float_as_int(cluster_load(at + 4, r));
#else
        first += cluster_load(at, r);
        second += cluster_load(at + 4, r);
#endif
      }
      int filter = tile.g * FG + tile.f + f;
      u64 to = (u64)(tile.m + row) * FILTERS + filter;
      *(Pair*)(y + to) = narrow2(FINISH(first, filter, to), FINISH(second, filter + 1, to + 1));
    }
    cluster_sync();
#else
    // Each warp transposes its 16 rows in memory of its own, and stores 16 bytes at a time.
    u8* mine = staging + (group * 4 + warp) * 16 * PITCH;
    constexpr int PIECES = BN * sizeof(result) / 16, PER = 16 / sizeof(result);
#pragma unroll
    for (int m = 0; m < MI; m++) {
#pragma unroll
      for (int j = 0; j < BN / 2; j += 2)
        *(Pair*)(mine + (lane / 4 + j / 2 % 2 * 8) * PITCH + (j / 4 * 8 + lane % 4 * 2) * sizeof(result)) =
            narrow2(FINISH_FIRST(total[m][j], tile.g * FG + tile.f + j / 4 * 8 + lane % 4 * 2),
                    FINISH_FIRST(total[m][j + 1], tile.g * FG + tile.f + j / 4 * 8 + lane % 4 * 2 + 1));
      __syncwarp();
#pragma unroll 4
      for (int e = lane; e < 16 * PIECES; e += 32) {
        int row = tile.m + (group * MI + m) * 64 + warp * 16 + e / PIECES, f = tile.f + e % PIECES * PER;
        if (row < M && f < FG) {
          u64 to = (u64)row * FILTERS + tile.g * FG + f;
          *(uint4*)(y + to) = FINISH_REST(*(uint4*)(mine + e / PIECES * PITCH + e % PIECES * 16), to);
        }
      }
      __syncwarp();
    }
#endif
  }
}
