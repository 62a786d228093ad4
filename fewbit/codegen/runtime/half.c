/* Conversions between f16 and wider floats, for processors that have none and systems whose
   libraries have none either. Compilers call them by these names. */

#include <stdint.h>

typedef union {
  _Float16 number;
  uint16_t bits;
} half;

typedef union {
  float number;
  uint32_t bits;
} single;

typedef union {
  double number;
  uint64_t bits;
} wide;

float __extendhfsf2(_Float16 x);
_Float16 __truncsfhf2(float x);
_Float16 __truncdfhf2(double x);

float __extendhfsf2(_Float16 x) {
  const uint16_t given = ((half){.number = x}).bits;
  const uint32_t sign = (uint32_t)(given & 0x8000) << 16, size = given & 0x7fff;
  single result;
  if (size >= 0x7c00) { /* Infinity, or a NaN, which becomes a quiet one. */
    result.bits = 0x7f800000 | (size & 0x3ff) << 13 | (size > 0x7c00 ? 0x400000 : 0);
  } else if (size >= 0x400) {
    result.bits = (size << 13) + (112u << 23);
  } else {
    result.number = (float)(int32_t)size * 0x1p-24f;
  }
  result.bits |= sign;
  return result.number;
}

/* Rounded to nearest, ties to even. */
static uint64_t shift_right(uint64_t value, int count) {
  return (value + ((1ull << (count - 1)) - 1) + ((value >> count) & 1)) >> count;
}

_Float16 __truncdfhf2(double x) {
  const uint64_t bits = ((wide){.number = x}).bits;
  const uint64_t size = bits & ~(1ull << 63);
  const int exponent = (int)(size >> 52) - 1023;
  uint64_t made;
  if (size > 0x7ffull << 52)
    made = 0x7e00 | ((size >> 42) & 0x1ff);
  else if (size >= 0x40effe0000000000) /* 65520, which is halfway to what there is no number for. */
    made = 0x7c00;
  else if (exponent >= -14)
    made = shift_right(size - (1008ull << 52), 42);
  else if (exponent >= -25)
    made = shift_right((size & ((1ull << 52) - 1)) | 1ull << 52, 28 - exponent);
  else
    made = 0;
  return ((half){.bits = (uint16_t)(made | (bits >> 63) << 15)}).number;
}

/* A double holds every float, so this rounds once. */
_Float16 __truncsfhf2(float x) { return __truncdfhf2(x); }
