// Types and conversions, without CUDA's headers. ELEMENT_* names the type of inputs.
typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// A launch may begin while the one before ends. Here it waits for that, and only then lets the next one begin: so all
// but the one before have ended when a kernel starts.
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ __forceinline__ void prefetch(const void* from) { asm volatile("prefetch.global.L2 [%0];" ::"l"(from)); }

__device__ __forceinline__ float from_f16(u16 bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
__device__ __forceinline__ u16 to_f16(float value) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
__device__ __forceinline__ float from_bf16(u16 bits) { return __uint_as_float((u32)bits << 16); }
__device__ __forceinline__ u16 to_bf16(float value) {
  u32 bits = __float_as_uint(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

#if defined(ELEMENT_F16)
typedef u16 element;
typedef float sum;
typedef u16 result;
__device__ __forceinline__ sum widen(element value) { return from_f16(value); }
__device__ __forceinline__ result narrow(sum value) { return to_f16(value); }
#elif defined(ELEMENT_BF16)
typedef u16 element;
typedef float sum;
typedef u16 result;
__device__ __forceinline__ sum widen(element value) { return from_bf16(value); }
__device__ __forceinline__ result narrow(sum value) { return to_bf16(value); }
#elif defined(ELEMENT_I8)
typedef i8 element;
typedef int sum;
typedef int result;
__device__ __forceinline__ sum widen(element value) { return value; }
__device__ __forceinline__ result narrow(sum value) { return value; }
#else
typedef float element;
typedef float sum;
typedef float result;
__device__ __forceinline__ sum widen(element value) { return value; }
__device__ __forceinline__ result narrow(sum value) { return value; }
#endif

// Two neighbouring results as the bits that are stored together.
struct alignas(2 * sizeof(result)) Pair {
  result first, second;
};
#if __CUDA_ARCH__ >= 800 && (defined(ELEMENT_F16) || defined(ELEMENT_BF16))
__device__ __forceinline__ u32 narrow_bits(sum first, sum second) {
  u32 bits;
#if defined(ELEMENT_F16)
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
#else
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
#endif
  return bits;
}
__device__ __forceinline__ Pair narrow2(sum first, sum second) {
  u32 bits = narrow_bits(first, second);
  return Pair{(u16)bits, (u16)(bits >> 16)};
}
#else
__device__ __forceinline__ Pair narrow2(sum first, sum second) { return Pair{narrow(first), narrow(second)}; }
#endif
template <int COUNT>
__device__ __forceinline__ void narrow_all(result (&to)[COUNT], const sum (&from)[COUNT]) {
#pragma unroll
  for (int i = 0; i + 1 < COUNT; i += 2) {
    Pair pair = narrow2(from[i], from[i + 1]);
    to[i] = pair.first;
    to[i + 1] = pair.second;
  }
  if (COUNT % 2) to[COUNT - 1] = narrow(from[COUNT - 1]);
}

__host__ __device__ constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
