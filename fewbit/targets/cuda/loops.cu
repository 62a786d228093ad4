// What generated loops use. They are plain C++ but for `i`, the number of a thread, and for sums that
// the lanes of a warp share: LANES is 1 where there are no warps, and nothing is left to share.
typedef signed char i8;
typedef short i16;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
struct half_bits { u16 bits; };
struct brain_bits { u16 bits; };

#ifdef __CUDACC_RTC__
#define DEVICE __device__ __forceinline__
#define LANES 32
#define THREAD ((u64)blockIdx.x * blockDim.x + threadIdx.x)
#define TURN threadIdx.x
#ifndef WIDTH
#define WIDTH blockDim.x  // of a block that is alone
#endif
#define BARRIER __syncthreads()
#define FROM(first) ((TURN + WIDTH - (first)) % WIDTH)  // threads by turns, from one on
#if __CUDA_ARCH__ >= 900
// A launch begins while the one before ends; then it lets the next one begin.
#define WAIT asm volatile("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;" ::: "memory")
#else
#define WAIT
#endif
DEVICE float widened(half_bits value) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
  return wide;
}
DEVICE half_bits narrowed_half_bits(float value) {
  half_bits narrow;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(value));
  return narrow;
}
template <class T> DEVICE T from_lane(T value, int other) { return __shfl_xor_sync(0xffffffff, value, other); }
#else
#include <cmath>
#define DEVICE static inline
#define LANES 1
#define TURN THREAD
#define WIDTH 1
#define BARRIER
#define FROM(first) THREAD
#define WAIT
#define __global__
extern thread_local u64 THREAD;
DEVICE float widened(half_bits value) {
  _Float16 half;
  __builtin_memcpy(&half, &value, 2);
  return (float)half;
}
DEVICE half_bits narrowed_half_bits(float value) {
  _Float16 half = (_Float16)value;
  half_bits narrow;
  __builtin_memcpy(&narrow, &half, 2);
  return narrow;
}
template <class T> DEVICE T from_lane(T value, int) { return value; }
#endif

template <class To, class From> DEVICE To same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "");
  union { From from; To to; } both{from};
  return both.to;
}
DEVICE float as_float(u32 bits) { return same_bits<float>(bits); }
DEVICE double as_double(u64 bits) { return same_bits<double>(bits); }
DEVICE float widened(brain_bits value) { return as_float((u32)value.bits << 16); }
DEVICE double widened(float value) { return value; }
DEVICE brain_bits narrowed_brain_bits(float value) {
  u32 bits = same_bits<u32>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return brain_bits{0x7fff};
  return brain_bits{(u16)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

// NaN wins; of zeros, which one does not matter.
template <class T> DEVICE T larger(T a, T b) { return a > b || a != a ? a : b; }
template <class T> DEVICE T smaller(T a, T b) { return a < b || a != a ? a : b; }
// NaN loses.
template <class T> DEVICE T larger_number(T a, T b) { return a > b || b != b ? a : b; }
template <class T> DEVICE T smaller_number(T a, T b) { return a < b || b != b ? a : b; }
template <class T> DEVICE T larger_integer(T a, T b) { return a > b ? a : b; }
template <class T> DEVICE T smaller_integer(T a, T b) { return a < b ? a : b; }
template <class T> DEVICE T absolute(T a) { return a < 0 ? -a : a; }
template <class T> DEVICE T floor_divide(T a, T b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
template <class T> DEVICE T ceil_divide(T a, T b) { return a / b + (a % b != 0 && (a < 0) == (b < 0)); }
template <class T> DEVICE T sum_of(T a, T b) { return a + b; }

#ifndef WARPS
#define WARPS 32
#endif
#ifndef AT_ONCE
#define AT_ONCE 16
#endif
constexpr int UNROLLED = AT_ONCE;  // terms of a sum that a lane asks for at once

// The lanes of a warp combine what each has, in any order; all get the result.
template <class T, T combine(T, T)> DEVICE T of_warp(T value) {
#pragma unroll
  for (int other = LANES / 2; other; other /= 2) value = combine(value, from_lane(value, other));
  return value;
}
#if defined(__CUDACC_RTC__) && __CUDA_ARCH__ >= 800
// Floats in the order of integers, with NaN above all.
template <> DEVICE float of_warp<float, larger<float>>(float value) {
  u32 bits = same_bits<u32>(value), key = bits >> 31 ? ~bits : bits | 0x80000000u;
  if (value != value) key = 0xffffffffu;
  asm volatile("redux.sync.max.u32 %0, %0, 0xffffffff;" : "+r"(key));
  return as_float(key >> 31 ? key ^ 0x80000000u : ~key);
}
#endif
// All threads of a block do so; `neutral` changes nothing.
template <class T, T combine(T, T)> DEVICE T of_block(T value, T neutral) {
#ifdef __CUDACC_RTC__
  __shared__ T parts[WARPS];
  value = of_warp<T, combine>(value);
  if (TURN % LANES == 0) parts[TURN / LANES] = value;
  BARRIER;
  value = of_warp<T, combine>(TURN % LANES < WARPS ? parts[TURN % LANES] : neutral);
#endif
  return value;
}

// All threads of a block copy numbers of 16 bytes, or what is less of 4; the last ones begin.
struct alignas(16) Sixteen { u32 words[4]; };
DEVICE void copy_block(void* to, const void* from, u32 bytes) {
#pragma unroll 1
  for (u32 i = WIDTH - 1 - TURN; i < bytes / 16; i += WIDTH) ((Sixteen*)to)[i] = ((const Sixteen*)from)[i];
  if (bytes % 16)
    for (u32 i = bytes / 16 * 4 + TURN; i < bytes / 4; i += WIDTH) ((u32*)to)[i] = ((const u32*)from)[i];
}

