// What few-bit matmuls have in common. Weights are the tensor cores' left operand: a warp has
// ROWS blocks of 16 outputs and a share of k, and reads their bits in the order in which its lanes use them,
// 16 bytes at a time. k is permuted in blocks so that a lane's activations are 16 neighbouring bytes, or 8 where
// a group is one step of the tensor cores. Fields become floats by writing them into the mantissa of 2^10 (f16)
// or 2^7 (bf16), and bytes, for integer activations, by leaving them in the byte's high bits, which the sums
// are divided by. WARPS_K warps of a block and CLUSTER blocks share k; sums are added in the same order always.
#if defined(OUTPUT_F32)
typedef float output;
#else
typedef u16 output;
#endif
constexpr int UNIT = sizeof(element), STEP = 32 / UNIT, PER_STEP = 16 / UNIT;
constexpr int QW = UNIT == 1 && BITS == 8 ? 8 : 4;  // words of a lane that make a unit
constexpr int KU = QW * 32 / BITS / PER_STEP * STEP;  // values of k in a unit
constexpr int UNITS = K / KU, SHARES = WARPS_K * CLUSTER, PER_SHARE = ceil_div(UNITS, SHARES);
constexpr int THREADS = WARPS_N * WARPS_K * 32, BN = WARPS_N * ROWS * 16, MT = ceil_div(BM, 8);
constexpr int GROUP = K / GROUPS_K;
constexpr bool NARROW = GROUP == STEP;  // a scale for every step, so steps do not share a lane's bytes
constexpr int BLOCKS_N = ceil_div(N, 16);
constexpr int LOADS = KU / (2 * STEP);  // 16-byte loads of x in one unit

struct alignas(16) Words {
  u32 at[QW];
};

#if defined(ELEMENT_I8)
typedef int partial;
#else
typedef float partial;
#endif

__device__ __forceinline__ void mma(partial (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if defined(ELEMENT_I8)
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#elif defined(ELEMENT_BF16)
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// What fields are written into, as a register: an instruction has room for one constant, and that is the mask.
__device__ __forceinline__ u32 magic_of() {
  u32 magic = 0;
#if defined(MAGIC)
  asm volatile("mov.b32 %0, %1;" : "=r"(magic) : "n"(MAGIC));
#endif
  return magic;
}

// The four registers of one step's left operand.
__device__ __forceinline__ void expand(u32 (&a)[4], const Words& q, int step, u32 magic) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
#if defined(ELEMENT_I8)
    int at = step * 4 + i;  // of the unit's registers; 8 / BITS of them share a word
    u32 word = q.at[at * BITS / 8];
    a[i] = BITS == 8 ? word : (word << (8 - BITS - at % (8 / BITS) * BITS)) & MASK;
#elif BITS == 8
    u32 word = q.at[step * 2 + i / 2];
    u32 pair = __byte_perm(word, 0x64646464, i % 2 ? 0x4342 : 0x4140);
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(a[i]) : "r"(pair), "r"(MULTIPLY), "r"(ADD));
#else
    int at = step * 4 + i;
    u32 word = q.at[at * BITS / 16];
    u32 pair;  // (word & MASK) | MAGIC, with constants that the compiler would not keep in registers
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(pair) : "r"(word >> (at % (16 / BITS) * BITS)), "n"(MASK), "r"(magic));
#if defined(ELEMENT_BF16)
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(a[i]) : "r"(pair), "r"(MULTIPLY), "r"(ADD));
#else
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(a[i]) : "r"(pair), "r"(MULTIPLY), "r"(ADD));
#endif
#endif
  }
}

__device__ __forceinline__ void copy16_once(u32 to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void copy16(u32 to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
// Zeros where `bytes` is 0: then nothing is read.
__device__ __forceinline__ void copy16_or_zeros(u32 to, const void* from, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void read16(u32* to, u32 from) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(from) : "memory");
}
// A lane's right operands of two steps, from rows of 64 bytes that four lanes share.
__device__ __forceinline__ void read_steps(u32 (&to)[4], u32 row, int part) {
  if (!NARROW) return read16(to, row + part * 16);
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "r"(row + part * 8) : "memory");
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(to[2]), "=r"(to[3]) : "r"(row + part * 8 + 32) : "memory");
}
__device__ __forceinline__ float read4(u32 from) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(from) : "memory");
  return value;
}

__device__ __forceinline__ output to_output(float value) {
#if defined(OUTPUT_F16)
  return to_f16(value);
#elif defined(OUTPUT_BF16)
  return to_bf16(value);
#else
  return value;
#endif
}

