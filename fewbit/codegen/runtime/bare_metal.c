/* What compiled code may call that no library provides: copies; on RV32 also i64's divisions and
   conversions from and to floats. Those that nothing calls are dropped by the linker.

   It is compiled without builtins: a compiler would find that memcpy is a memcpy, and call it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t count) {
  for (size_t i = 0; i < count; i++)
    ((char *)to)[i] = ((const char *)from)[i];
  return to;
}

void *memmove(void *to, const void *from, size_t count) {
  const bool is_before = (uintptr_t)to < (uintptr_t)from;
  for (size_t done = 0; done < count; done++) {
    const size_t i = is_before ? done : count - 1 - done;
    ((char *)to)[i] = ((const char *)from)[i];
  }
  return to;
}

void *memset(void *to, int value, size_t count) {
  for (size_t i = 0; i < count; i++)
    ((char *)to)[i] = (char)value;
  return to;
}

#if __riscv_xlen == 32

typedef struct {
  uint64_t quotient, remainder;
} division;

/* Long division, a bit of the quotient at a time. */
static division divide(uint64_t a, uint64_t b) {
  division result = {0, 0};
  for (int i = 63; i >= 0; i--) {
    result.remainder = result.remainder << 1 | (a >> i & 1);
    if (result.remainder >= b) {
      result.remainder -= b;
      result.quotient |= (uint64_t)1 << i;
    }
  }
  return result;
}

static uint64_t magnitude(int64_t a) { return a < 0 ? -(uint64_t)a : (uint64_t)a; }

static int64_t with_sign(uint64_t magnitude, bool is_negative) {
  return (int64_t)(is_negative ? -magnitude : magnitude);
}

uint64_t __udivdi3(uint64_t a, uint64_t b) { return divide(a, b).quotient; }

uint64_t __umoddi3(uint64_t a, uint64_t b) { return divide(a, b).remainder; }

int64_t __divdi3(int64_t a, int64_t b) {
  return with_sign(divide(magnitude(a), magnitude(b)).quotient, (a ^ b) < 0);
}

int64_t __moddi3(int64_t a, int64_t b) {
  return with_sign(divide(magnitude(a), magnitude(b)).remainder, a < 0);
}

#define TWO_TO_32 4294967296.0

double __floatundidf(uint64_t a) {
  return (double)(uint32_t)(a >> 32) * TWO_TO_32 + (double)(uint32_t)a;
}

double __floatdidf(int64_t a) {
  return (double)(int32_t)(a >> 32) * TWO_TO_32 + (double)(uint32_t)a;
}

/* Where a double cannot hold all bits, the lowest ones become one sticky bit: the second
   rounding then gives what a single one would. */
float __floatundisf(uint64_t a) {
  if (a >= (uint64_t)1 << 53)
    a = (a & ~(uint64_t)2047) | ((a & 2047) != 0 ? 2048 : 0);
  return (float)__floatundidf(a);
}

float __floatdisf(int64_t a) {
  const float size = __floatundisf(magnitude(a));
  return a < 0 ? -size : size;
}

uint64_t __fixunsdfdi(double a) {
  const uint32_t high = (uint32_t)(a * (1 / TWO_TO_32));
  const uint32_t low = (uint32_t)(a - (double)high * TWO_TO_32);
  return (uint64_t)high << 32 | low;
}

int64_t __fixdfdi(double a) {
  return with_sign(__fixunsdfdi(a < 0 ? -a : a), a < 0);
}

int64_t __fixsfdi(float a) { return __fixdfdi((double)a); }

uint64_t __fixunssfdi(float a) { return __fixunsdfdi((double)a); }

#endif
