// Hopper's convolution that fetches every pixel once for all taps. x is walked as a line of padded
// pixels, image after image; a tile is BM neighbours on that line, and a tap is the same line, shifted.
// So one patch of BM + HALO pixels in shared memory serves all taps: a matmul reads it from a row
// further on. Outputs that fall on padding are computed and not stored. Filters stream through a ring
// of their own, or stay if they fit (RESIDENT); CLUSTER blocks fetch a part of them each, for all.
constexpr int UNIT = sizeof(element), BK = 128 / UNIT, BM = 64 * MI * CONSUMERS;
constexpr int WP = WIDTH + 2 * PAD_W, HP = HEIGHT + 2 * PAD_H, LINE = BATCH * HP * WP;
constexpr int HALO = (KH - 1) * DILATION_H * WP + (KW - 1) * DILATION_W;
constexpr int PIECES_X = ceil_div(BM + HALO, 256), PIECE = ceil_div(ceil_div(BM + HALO, PIECES_X), 8) * 8;
constexpr int PATCH = PIECES_X * PIECE * 128, STAGE_W = BN * 128, SHARE = BN / CLUSTER;
constexpr int CHUNKS = ceil_div(CHANNELS, BK), STEPS = TAPS * CHUNKS;
constexpr int TILES_F = ceil_div(FILTERS, BN), TILES_M = ceil_div(LINE, BM);
constexpr int PITCH = BN * sizeof(result) + 16;
constexpr int RING = RESIDENT ? STEPS : STAGES_W;
constexpr int THREADS = CONSUMERS * 128 + (BLOCKS == 1 ? 128 : 32);

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    conv2d_patch(const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap w, result* y EPILOGUE_PARAMETERS) {
  extern __shared__ __align__(1024) u8 memory[];
  __shared__ alignas(8) u64 barriers[2 * (STAGES_X + RING)];
  u32 start = shared_address(memory), patches = (start + 1023) & ~1023u;
  u32 filters = patches + STAGES_X * PATCH;
  u8* staging = memory + (filters - start) + RING * STAGE_W;
  u32 full_x = shared_address(barriers), empty_x = full_x + 8 * STAGES_X;
  u32 full_w = empty_x + 8 * STAGES_X, empty_w = full_w + 8 * RING;
  int t = threadIdx.x, group = t / 128;
  // Blocks of a cluster have the same filters and, side by side, different pixels.
  int rank = CLUSTER > 1 ? cluster_rank() : 0, cluster = blockIdx.x / CLUSTER;
  int f = cluster % TILES_F * BN, first = cluster / TILES_F * CLUSTER + rank;
  int stride = gridDim.x / TILES_F, rounds = ceil_div(TILES_M - (first - rank), stride);

  if (t == 0) {
    for (int s = 0; s < STAGES_X; s++) {
      barrier_init(full_x + 8 * s, 1);
      barrier_init(empty_x + 8 * s, 4 * CONSUMERS);
    }
    for (int s = 0; s < RING; s++) {
      barrier_init(full_w + 8 * s, 1);
      barrier_init(empty_w + 8 * s, 4 * CONSUMERS * CLUSTER);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (CLUSTER > 1) cluster_sync();
  __syncthreads();

  if (group == CONSUMERS) {
    if (BLOCKS == 1) fewer_registers<40>();
    if (t == CONSUMERS * 128) {
      int step_x = 0, step_w = 0;
      for (int i = 0; i < rounds; i++) {
        int q = (first + i * stride) * BM;
        for (int chunk = 0; chunk < CHUNKS; chunk++, step_x++) {
          int s = step_x % STAGES_X;
          barrier_wait(empty_x + 8 * s, (step_x / STAGES_X + 1) & 1);
          barrier_expect(full_x + 8 * s, PATCH);
#pragma unroll
          for (int piece = 0; piece < PIECES_X; piece++) {
            int at = q + piece * PIECE;
            copy_pixels(patches + s * PATCH + piece * PIECE * 128, &x, full_x + 8 * s, chunk * BK,
                        at % WP - PAD_W, at / WP % HP - PAD_H, at / WP / HP, 0, 0);
          }
          if (RESIDENT && i > 0) continue;
          for (int d = 0; d < TAPS; d++, step_w++) {
            int r = step_w % RING;
            u32 to = filters + r * STAGE_W;
            barrier_wait(empty_w + 8 * r, (step_w / RING + 1) & 1);
            barrier_expect(full_w + 8 * r, STAGE_W);
            if (CLUSTER == 1)
              copy_3d(to, &w, full_w + 8 * r, chunk * BK, d, f);
            else
              copy_3d_all(to + rank * SHARE * 128, &w, full_w + 8 * r, chunk * BK, d, f + rank * SHARE, (1 << CLUSTER) - 1);
          }
        }
      }
    }
    __syncwarp();
    if (CLUSTER > 1) cluster_sync();
    return;
  }

  if (BLOCKS == 1) more_registers<CONSUMERS < 3 ? 232 : 152>();
  int warp = t / 32 % 4, lane = t % 32, step_x = 0, step_w = 0;
  u8* mine = staging + (group * 4 + warp) * 16 * PITCH;
  constexpr int PIECES = BN * sizeof(result) / 16, PER = 16 / sizeof(result);
  auto release_w = [&](int r) {
    if (RESIDENT) return;
    if (CLUSTER == 1) {
      if (lane == 0) barrier_arrive(empty_w + 8 * r);
    } else if (lane < CLUSTER) {
      barrier_arrive_at(empty_w + 8 * r, lane);
    }
  };
  for (int i = 0; i < rounds; i++) {
    int q = (first + i * stride) * BM;
    sum total[MI][BN / 2];
    int before = 0;
    for (int chunk = 0; chunk < CHUNKS; chunk++, step_x++) {
      int s = step_x % STAGES_X;
      barrier_wait(full_x + 8 * s, step_x / STAGES_X & 1);
      u64 patch = matrix(patches + s * PATCH + group * MI * 64 * 128);
#pragma unroll 1
      for (int d = 0; d < TAPS; d++, step_w++) {
        int r = RESIDENT ? chunk * TAPS + d : step_w % RING;
        barrier_wait(full_w + 8 * r, RESIDENT ? 0 : step_w / RING & 1);
        u64 a = patch + (d / KW * DILATION_H * WP + d % KW * DILATION_W) * 8, b = matrix(filters + r * STAGE_W);
        warpgroup_begin();
#pragma unroll
        for (int part = 0; part < 4; part++)
#pragma unroll
          for (int m = 0; m < MI; m++)
            multiply(total[m], a + m * (64 * 128 >> 4) + part * 2, b + part * 2, chunk | d | part);
        warpgroup_commit();
        warpgroup_wait<1>();
        if (chunk | d) release_w(before);
        if (chunk && d == 0 && lane == 0) barrier_arrive(empty_x + 8 * ((step_x - 1) % STAGES_X));
        before = r;
      }
    }
    warpgroup_wait<0>();
    release_w(before);
    if (lane == 0) barrier_arrive(empty_x + 8 * ((step_x - 1) % STAGES_X));

#pragma unroll
    for (int m = 0; m < MI; m++) {
#pragma unroll
      for (int j = 0; j < BN / 2; j += 2)
        *(Pair*)(mine + (lane / 4 + j / 2 % 2 * 8) * PITCH + (j / 4 * 8 + lane % 4 * 2) * sizeof(result)) =
            narrow2(FINISH_FIRST(total[m][j], f + j / 4 * 8 + lane % 4 * 2),
                    FINISH_FIRST(total[m][j + 1], f + j / 4 * 8 + lane % 4 * 2 + 1));
      __syncwarp();
#pragma unroll 4
      for (int e = lane; e < 16 * PIECES; e += 32) {
        int at = q + (group * MI + m) * 64 + warp * 16 + e / PIECES, channel = f + e % PIECES * PER;
        int n = at / WP / HP, h = at / WP % HP, v = at % WP;
        if (n < BATCH && h < OH && v < OW && channel < FILTERS) {
          u64 to = (u64)((n * OH + h) * OW + v) * FILTERS + channel;
          *(uint4*)(y + to) = FINISH_REST(*(uint4*)(mine + e / PIECES * PITCH + e % PIECES * 16), to);
        }
      }
      __syncwarp();
    }
  }
  if (CLUSTER > 1) cluster_sync();
}
