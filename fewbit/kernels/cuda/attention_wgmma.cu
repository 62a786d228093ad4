// softmax(q k^T) v in one kernel, for Hopper. One warp has the copy engine fetch q once and tiles of k
// and v through rings; each of CONSUMERS warpgroups has 64 rows of q, whose accumulators never leave
// its registers. Matmuls of the next tile's scores and of this tile's values are issued together, and
// the exponentials of one are computed while the tensor cores work on the other. Two warpgroups take
// turns (PINGPONG), so that one's exponentials hide behind the other's matmuls. Tiles of keys are
// taken from the last to the first: those that need a mask come first. A block takes q tile after q
// tile; with Q_STAGES > 1 the next one's operands arrive while this one's result is stored.
constexpr int HALVES = ceil_div(D, 64), DP = HALVES * 64, BM = 64 * CONSUMERS;
constexpr int TILE = BN * 128 * HALVES, Q_BYTES = BM * 128 * HALVES, PITCH = DP * 2 + 16;
constexpr int TILES_Q = ceil_div(SQ, BM), ITEMS = TILES_Q * BATCH * HEADS;
constexpr int THREADS = CONSUMERS * 128 + (BLOCKS == 1 ? 128 : 32);
constexpr float LOG2E = 1.4426950408889634f;

struct Item {
  int first, batch, head, keys, tiles;
  __device__ int kv_head() const { return head / (HEADS / KV_HEADS); }
};
__device__ __forceinline__ Item item_at(int i, const int* lengths) {
  int batch = i / TILES_Q / HEADS, head = i / TILES_Q % HEADS, tile = CAUSAL ? TILES_Q - 1 - i % TILES_Q : i % TILES_Q;
  int keys = RAGGED ? min(lengths[batch], SK) : SK;
  int needed = CAUSAL ? min(keys, tile * BM + BM + SK - SQ) : keys;
  return Item{tile * BM, batch, head, keys, max(1, (needed + BN - 1) / BN)};
}

__device__ __forceinline__ u64 matrix_of_columns(u32 address) {
  return (u64)((address & 0x3ffff) >> 4) | (u64)(BN * 128 >> 4) << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ u32 pack(float low, float high) {
  Pair pair = narrow2(low, high);
  return (u32)pair.first | (u32)pair.second << 16;
}
__device__ __forceinline__ void arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    attention_wgmma(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
                    const __grid_constant__ TensorMap v, const int* lengths, result* y, float scale) {
  extern __shared__ __align__(1024) u8 memory[];
  __shared__ alignas(8) u64 barriers[2 * Q_STAGES + 4 * STAGES];
  u32 base = (shared_address(memory) + 1023) & ~1023u, ks = base + Q_STAGES * Q_BYTES, vs = ks + STAGES * TILE;
  u8* staging = memory + (base - shared_address(memory)) + Q_STAGES * Q_BYTES + 2 * STAGES * TILE;
  u32 q_full = shared_address(barriers), q_empty = q_full + 8 * Q_STAGES;
  u32 k_full = q_empty + 8 * Q_STAGES, k_empty = k_full + 8 * STAGES;
  u32 v_full = k_empty + 8 * STAGES, v_empty = v_full + 8 * STAGES;
  int t = threadIdx.x, group = t / 128;

  if (t == 0) {
    for (int s = 0; s < Q_STAGES; s++) {
      barrier_init(q_full + 8 * s, 1);
      barrier_init(q_empty + 8 * s, 4 * CONSUMERS);
    }
    for (int s = 0; s < STAGES; s++) {
      barrier_init(k_full + 8 * s, 1);
      barrier_init(v_full + 8 * s, 1);
      barrier_init(k_empty + 8 * s, 4 * CONSUMERS);
      barrier_init(v_empty + 8 * s, 4 * CONSUMERS);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();

  if (group == CONSUMERS) {
    if (BLOCKS == 1) fewer_registers<24>();
    if (t == CONSUMERS * 128) {
      int step = 0, turn = 0;
      for (int w = blockIdx.x; w < ITEMS; w += gridDim.x, turn++) {
        Item item = item_at(w, lengths);
        int qs = turn % Q_STAGES;
        barrier_wait(q_empty + 8 * qs, (turn / Q_STAGES + 1) & 1);
        barrier_expect(q_full + 8 * qs, Q_BYTES);
#pragma unroll
        for (int half = 0; half < HALVES; half++)
          copy_4d(base + qs * Q_BYTES + half * BM * 128, &q, q_full + 8 * qs, half * 64, item.first, item.head, item.batch);
        for (int i = 0; i < item.tiles; i++, step++) {
          int s = step % STAGES, at = (item.tiles - 1 - i) * BN;
          u32 parity = (step / STAGES + 1) & 1;
          barrier_wait(k_empty + 8 * s, parity);
          barrier_expect(k_full + 8 * s, TILE);
#pragma unroll
          for (int half = 0; half < HALVES; half++)
            copy_4d(ks + s * TILE + half * BN * 128, &k, k_full + 8 * s, half * 64, at, item.kv_head(), item.batch);
          barrier_wait(v_empty + 8 * s, parity);
          barrier_expect(v_full + 8 * s, TILE);
#pragma unroll
          for (int half = 0; half < HALVES; half++)
            copy_4d(vs + s * TILE + half * BN * 128, &v, v_full + 8 * s, half * 64, at, item.kv_head(), item.batch);
        }
      }
    }
    return;
  }

  if (BLOCKS == 1) more_registers<CONSUMERS == 1 ? 240 : CONSUMERS == 2 ? 240 : 160>();
  int warp = t / 32 % 4, lane = t % 32;
  float c = scale * LOG2E;
  float scores[BN / 2], out[DP / 2];
  u32 weights[BN / 16][4];
  float most[2], total[2], fix[2];
  int first, row, keys;

  auto multiply_keys = [&](int qs, int s) {
#pragma unroll
    for (int half = 0; half < HALVES; half++)
#pragma unroll
      for (int part = 0; part < 4; part++)
        wgmma_keys(scores, matrix(base + qs * Q_BYTES + half * BM * 128 + group * 64 * 128) + part * 2,
                     matrix(ks + s * TILE + half * BN * 128) + part * 2, half | part);
  };
  auto multiply_values = [&](int s) {
#pragma unroll
    for (int i = 0; i < BN / 16; i++) wgmma_values(out, weights[i], matrix_of_columns(vs + s * TILE) + i * (16 * 128 >> 4), 1);
  };
  // Replaces scores by softmax weights, and returns what older accumulators must be multiplied by.
  auto exponentials = [&](int tile, float (&fix)[2]) {
    int at = tile * BN;
    if (at + BN > keys || (CAUSAL && at + BN > first + group * 64 + SK - SQ)) {
#pragma unroll
      for (int j = 0; j < BN / 2; j++) {
        int key = at + j / 4 * 8 + lane % 4 * 2 + j % 2;
        if (key >= keys || (CAUSAL && key > row + j / 2 % 2 * 8 + SK - SQ)) scores[j] = -INFINITY;
      }
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
      float high = most[r];
#pragma unroll
      for (int j = 0; j < BN / 2; j++)
        if (j / 2 % 2 == r) high = fmaxf(high, scores[j]);
      high = fmaxf(high, __shfl_xor_sync(0xffffffff, high, 1));
      high = fmaxf(high, __shfl_xor_sync(0xffffffff, high, 2));
      float shift = high == -INFINITY ? 0.0f : high * c;
      fix[r] = exp2_fast(most[r] * c - shift);
      most[r] = high;
      float sum = 0;
#pragma unroll
      for (int j = 0; j < BN / 2; j++)
        if (j / 2 % 2 == r) {
          scores[j] = exp2_fast(scores[j] * c - shift);
          sum += scores[j];
        }
      total[r] = total[r] * fix[r] + sum;
    }
  };
  auto keep_weights = [&]() {
#pragma unroll
    for (int i = 0; i < BN / 16; i++)
#pragma unroll
      for (int e = 0; e < 4; e++) weights[i][e] = pack(scores[8 * i + 2 * e], scores[8 * i + 2 * e + 1]);
  };
  auto release = [&](u32 barrier) {
    if (lane == 0) barrier_arrive(barrier);
  };

  if (PINGPONG && group == 1) arrive(1, 256);
  int step = 0, turn = 0;
  for (int w = blockIdx.x; w < ITEMS; w += gridDim.x, turn++) {
    Item item = item_at(w, lengths);
    first = item.first;
    keys = item.keys;
    row = first + group * 64 + warp * 16 + lane / 4;
    most[0] = most[1] = -INFINITY;
    total[0] = total[1] = 0;
    int qs = turn % Q_STAGES, tiles = item.tiles;
    barrier_wait(q_full + 8 * qs, turn / Q_STAGES & 1);
    barrier_wait(k_full + 8 * (step % STAGES), step / STAGES & 1);
    if (PINGPONG) named_barrier(1 + group, 256);
    warpgroup_begin();
    multiply_keys(qs, step % STAGES);
    warpgroup_commit();
    if (PINGPONG) arrive(1 + (group ^ 1), 256);
#pragma unroll
    for (int i = 0; i < DP / 2; i++) out[i] = 0;
    warpgroup_wait<0>();
    release(k_empty + 8 * (step % STAGES));
    exponentials(tiles - 1, fix);
    keep_weights();
    step++;
    for (int i = 1; i < tiles; i++, step++) {
      int s = step % STAGES, before = (step - 1) % STAGES;
      barrier_wait(k_full + 8 * s, step / STAGES & 1);
      if (PINGPONG) named_barrier(1 + group, 256);
      warpgroup_begin();
      multiply_keys(qs, s);
      warpgroup_commit();
      barrier_wait(v_full + 8 * before, (step - 1) / STAGES & 1);
      multiply_values(before);
      warpgroup_commit();
      if (PINGPONG) arrive(1 + (group ^ 1), 256);
      warpgroup_wait<1>();
      release(k_empty + 8 * s);
      exponentials(tiles - 1 - i, fix);
      warpgroup_wait<0>();
      release(v_empty + 8 * before);
#pragma unroll
      for (int j = 0; j < DP / 2; j++) out[j] *= fix[j / 2 % 2];
      keep_weights();
    }
    release(q_empty + 8 * qs);
    int last = (step - 1) % STAGES;
    barrier_wait(v_full + 8 * last, (step - 1) / STAGES & 1);
    warpgroup_begin();
    multiply_values(last);
    warpgroup_commit();
#pragma unroll
    for (int r = 0; r < 2; r++) {
      total[r] += __shfl_xor_sync(0xffffffff, total[r], 1);
      total[r] += __shfl_xor_sync(0xffffffff, total[r], 2);
      total[r] = total[r] > 0 ? 1 / total[r] : 0;
    }
    warpgroup_wait<0>();
    release(v_empty + 8 * last);

    u8* mine = staging + (group * 4 + warp) * 16 * PITCH;
#pragma unroll
    for (int j = 0; j < DP / 2; j += 2)
      *(u32*)(mine + (lane / 4 + j / 2 % 2 * 8) * PITCH + (j / 4 * 8 + lane % 4 * 2) * 2) =
          pack(out[j] * total[j / 2 % 2], out[j + 1] * total[j / 2 % 2]);
    __syncwarp();
    for (int e = lane; e < 16 * (D / 8); e += 32) {
      int at = first + group * 64 + warp * 16 + e / (D / 8);
      if (at < SQ)
        *(uint4*)(y + (u64)item.batch * Y_BATCH + (u64)item.head * Y_HEAD + (u64)at * Y_ROW + e % (D / 8) * 8) = *(uint4*)(mine + e / (D / 8) * PITCH + e % (D / 8) * 16);
    }
    __syncwarp();
  }
  if (PINGPONG && group == 0) named_barrier(1, 256);
}
