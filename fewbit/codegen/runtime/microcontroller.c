/* What code for 32-bit cores may call that nothing else provides: copies, division and wide shifts
   for cores without them, and floats for cores without an FPU. Floats are handed over as their bits,
   so that these functions do not depend on how a core passes them; whoever links them gives them
   the names that compilers call (targets/mcu/helpers.py). Results are those of IEEE 754, rounded to
   nearest, ties to even, subnormal numbers included; NaNs are all the same one.

   It is compiled without builtins: a compiler would find that a loop is a memcpy, and call it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int32_t i32;
typedef uint32_t u32;
typedef int64_t i64;
typedef uint64_t u64;

/* Copies */

void *fewbit_copy(void *to, const void *from, size_t count) {
  for (size_t i = 0; i < count; i++)
    ((char *)to)[i] = ((const char *)from)[i];
  return to;
}

void *fewbit_move(void *to, const void *from, size_t count) {
  const bool is_before = (uintptr_t)to < (uintptr_t)from;
  for (size_t done = 0; done < count; done++) {
    const size_t i = is_before ? done : count - 1 - done;
    ((char *)to)[i] = ((const char *)from)[i];
  }
  return to;
}

void *fewbit_fill(void *to, int value, size_t count) {
  for (size_t i = 0; i < count; i++)
    ((char *)to)[i] = (char)value;
  return to;
}

void fewbit_fill_bytes(void *to, size_t count, int value) { fewbit_fill(to, value, count); }

void fewbit_clear(void *to, size_t count) { fewbit_fill(to, 0, count); }

/* Integers */

u64 fewbit_divide(u32 a, u32 b) { /* the quotient, and above it the remainder */
  u32 quotient = 0, remainder = 0;
  for (int i = 31; i >= 0; i--) {
    remainder = remainder << 1 | (a >> i & 1);
    if (remainder >= b) {
      remainder -= b;
      quotient |= (u32)1 << i;
    }
  }
  return (u64)remainder << 32 | quotient;
}

u64 fewbit_divide_signed(i32 a, i32 b) {
  const u32 x = a < 0 ? -(u32)a : (u32)a, y = b < 0 ? -(u32)b : (u32)b;
  const u64 found = fewbit_divide(x, y);
  const u32 quotient = (u32)found, remainder = (u32)(found >> 32);
  const u32 signed_quotient = (a ^ b) < 0 ? -quotient : quotient;
  return (u64)(a < 0 ? -remainder : remainder) << 32 | signed_quotient;
}

u32 fewbit_quotient(u32 a, u32 b) { return (u32)fewbit_divide(a, b); }

i32 fewbit_quotient_signed(i32 a, i32 b) { return (i32)(u32)fewbit_divide_signed(a, b); }

u32 fewbit_remainder(u32 a, u32 b) { return (u32)(fewbit_divide(a, b) >> 32); }

i32 fewbit_remainder_signed(i32 a, i32 b) { return (i32)(u32)(fewbit_divide_signed(a, b) >> 32); }

/* The product of 32 bits by 32 bits, for cores whose products have 32 bits. */
static u64 widening_product(u32 a, u32 b) {
  const u32 al = a & 0xFFFF, ah = a >> 16, bl = b & 0xFFFF, bh = b >> 16;
  const u32 low = al * bl, middle = ah * bl + (low >> 16), other = al * bh + (middle & 0xFFFF);
  const u32 high = ah * bh + (middle >> 16) + (other >> 16);
  return (u64)high << 32 | (other << 16 | (low & 0xFFFF));
}

u64 fewbit_multiply(u64 a, u64 b) {
  const u32 al = (u32)a, bl = (u32)b;
  const u32 cross = (u32)(a >> 32) * bl + al * (u32)(b >> 32);
  return widening_product(al, bl) + ((u64)cross << 32);
}

u64 fewbit_shift_left(u64 a, i32 n) {
  const u32 low = (u32)a, high = (u32)(a >> 32);
  if (n == 0)
    return a;
  if (n >= 32)
    return (u64)(low << (n - 32)) << 32;
  return (u64)(high << n | low >> (32 - n)) << 32 | low << n;
}

u64 fewbit_shift_right(u64 a, i32 n) {
  const u32 low = (u32)a, high = (u32)(a >> 32);
  if (n == 0)
    return a;
  if (n >= 32)
    return high >> (n - 32);
  return (u64)(high >> n) << 32 | (low >> n | high << (32 - n));
}

u64 fewbit_shift_right_signed(u64 a, i32 n) {
  const u32 low = (u32)a;
  const i32 high = (i32)(u32)(a >> 32);
  if (n == 0)
    return a;
  if (n >= 32)
    return (u64)(u32)(high >> 31) << 32 | (u32)(high >> (n - 32));
  return (u64)(u32)(high >> n) << 32 | (low >> n | (u32)high << (32 - n));
}

/* Floats of 32 bits: a significand of 24 bits times a power of two. */

#define SIGN 0x80000000u
#define INFINITE 0x7F800000u
#define QUIET 0x7FC00000u

static bool is_nan(u32 a) { return (a & ~SIGN) > INFINITE; }

static i32 exponent_of(u32 a) {
  const i32 biased = (i32)(a >> 23 & 0xFF);
  return (biased ? biased : 1) - 150;
}

static u32 significand_of(u32 a) {
  const u32 fraction = a & 0x7FFFFF;
  return a & INFINITE ? fraction | 0x800000 : fraction;
}

/* Round significand * 2^exponent, of which the lowest bit may stand for more below it. */
static u32 round_to_float(u32 sign, i32 exponent, u32 significand) {
  if (significand == 0)
    return sign;
  while (!(significand & SIGN)) {
    significand <<= 1;
    exponent--;
  }
  i32 biased = exponent + 31 + 127;
  if (biased >= 255)
    return sign | INFINITE;
  if (biased <= 0) {
    const i32 down = 1 - biased;
    const u32 lost = down < 32 ? significand << (32 - down) : significand;
    significand = (down < 32 ? significand >> down : 0) | (lost != 0);
    biased = 1;
    if (down >= 32)
      significand = 1;
  }
  const u32 whole = significand >> 8, part = significand & 0xFF;
  const u32 up = part > 0x80 || (part == 0x80 && (whole & 1));
  return sign | (((u32)(biased - 1) << 23) + whole + up);
}

/* The same of 64 bits. */
static u32 round_wide_to_float(u32 sign, i32 exponent, u64 significand) {
  for (; significand >> 32; exponent++) /* not in larger steps: bits to round by must be left */
    significand = significand >> 1 | (significand & 1);
  return round_to_float(sign, exponent, (u32)significand);
}

u32 fewbit_add(u32 a, u32 b) {
  if ((a & ~SIGN) < (b & ~SIGN)) {
    const u32 other = a;
    a = b;
    b = other;
  }
  if ((a & ~SIGN) >= INFINITE) {
    const bool is_difference = (a ^ b) == SIGN;
    return is_nan(a) || is_difference ? QUIET : a;
  }
  const u32 sign = a & SIGN;
  const i32 exponent = exponent_of(a), down = exponent - exponent_of(b);
  const u32 larger = significand_of(a) << 7;
  u32 smaller = significand_of(b) << 7;
  if (down >= 32)
    smaller = smaller != 0;
  else if (down > 0)
    smaller = smaller >> down | (smaller << (32 - down) != 0);
  const u32 sum = (a ^ b) & SIGN ? larger - smaller : larger + smaller;
  if (sum == 0)
    return (a ^ b) & SIGN ? 0 : sign;
  return round_to_float(sign, exponent - 7, sum);
}

u32 fewbit_subtract(u32 a, u32 b) { return fewbit_add(a, is_nan(b) ? b : b ^ SIGN); }

u32 fewbit_multiply_floats(u32 a, u32 b) {
  const u32 sign = (a ^ b) & SIGN, x = a & ~SIGN, y = b & ~SIGN;
  if (x >= INFINITE || y >= INFINITE)
    return is_nan(a) || is_nan(b) || x == 0 || y == 0 ? QUIET : sign | INFINITE;
  const u64 product = widening_product(significand_of(a), significand_of(b));
  const i32 exponent = exponent_of(a) + exponent_of(b);
  if (product >> 40) {
    const bool sticky = (product & 0xFFFF) != 0;
    return round_to_float(sign, exponent + 16, (u32)(product >> 16) | sticky);
  }
  return round_wide_to_float(sign, exponent, product);
}

u32 fewbit_divide_floats(u32 a, u32 b) {
  const u32 sign = (a ^ b) & SIGN, x = a & ~SIGN, y = b & ~SIGN;
  if (is_nan(a) || is_nan(b) || (x == y && (x == 0 || x == INFINITE)))
    return QUIET;
  if (x == INFINITE || y == 0)
    return sign | INFINITE;
  if (x == 0 || y == INFINITE)
    return sign;
  u32 remainder = significand_of(a), divisor = significand_of(b), quotient = 0;
  i32 exponent = exponent_of(a) - exponent_of(b);
  for (; !(remainder & 0x800000); exponent--)
    remainder <<= 1;
  for (; !(divisor & 0x800000); exponent++)
    divisor <<= 1;
  for (int i = 0; i < 27; i++) {
    quotient <<= 1;
    if (remainder >= divisor) {
      remainder -= divisor;
      quotient |= 1;
    }
    remainder <<= 1;
  }
  return round_to_float(sign, exponent - 27, quotient << 1 | (remainder != 0));
}

/* -1, 0 or 1 as a is less than, equal to or greater than b; 2 where one is no number. */
i32 fewbit_compare(u32 a, u32 b) {
  if (is_nan(a) || is_nan(b))
    return 2;
  if (((a | b) & ~SIGN) == 0)
    return 0;
  const i32 x = a & SIGN ? (i32)~(a & ~SIGN) : (i32)a, y = b & SIGN ? (i32)~(b & ~SIGN) : (i32)b;
  return x < y ? -1 : x > y;
}

/* The order of all floats, in which -0 comes before 0. */
static i32 place_of(u32 a) { return a & SIGN ? (i32)~(a & ~SIGN) : (i32)a; }

u32 fewbit_larger(u32 a, u32 b) {
  if (is_nan(a) || is_nan(b))
    return QUIET;
  return place_of(a) < place_of(b) ? b : a;
}

u32 fewbit_smaller(u32 a, u32 b) {
  if (is_nan(a) || is_nan(b))
    return QUIET;
  return place_of(a) < place_of(b) ? a : b;
}

u32 fewbit_from_unsigned(u32 a) { return round_to_float(0, 0, a); }

u32 fewbit_from_signed(i32 a) {
  return a < 0 ? round_to_float(SIGN, 0, -(u32)a) : round_to_float(0, 0, (u32)a);
}

u32 fewbit_from_wide(i64 a) {
  return a < 0 ? round_wide_to_float(SIGN, 0, -(u64)a) : round_wide_to_float(0, 0, (u64)a);
}

u32 fewbit_from_wide_unsigned(u64 a) { return round_wide_to_float(0, 0, a); }

/* The magnitude without its fraction; beyond 32 bits, all ones. */
static u32 truncate_magnitude(u32 a) {
  const i32 exponent = exponent_of(a);
  const u32 significand = significand_of(a);
  if (exponent >= 9)
    return ~(u32)0;
  if (exponent >= 0)
    return significand << exponent;
  return exponent > -32 ? significand >> -exponent : 0;
}

u32 fewbit_to_unsigned(u32 a) { return a & SIGN || is_nan(a) ? 0 : truncate_magnitude(a); }

i32 fewbit_to_signed(u32 a) {
  if (is_nan(a))
    return 0;
  const u32 magnitude = truncate_magnitude(a);
  if (a & SIGN)
    return magnitude > SIGN ? INT32_MIN : (i32)-magnitude;
  return magnitude >= SIGN ? INT32_MAX : (i32)magnitude;
}

/* The nearest whole number, ties to even, as an integer that saturates. */
i32 fewbit_round(u32 a) {
  const i32 exponent = exponent_of(a);
  if (exponent >= 0)
    return fewbit_to_signed(a);
  const u32 significand = significand_of(a);
  u32 whole = 0;
  if (exponent > -26) {
    const u32 half = (u32)1 << (-exponent - 1), part = significand & (half + half - 1);
    whole = significand >> -exponent;
    whole += part > half || (part == half && (whole & 1));
  }
  return a & SIGN ? -(i32)whole : (i32)whole;
}

/* The same as a float. */
u32 fewbit_round_float(u32 a) {
  if (exponent_of(a) >= 0)
    return is_nan(a) ? QUIET : a;
  const i32 whole = fewbit_round(a);
  return (a & SIGN) | (fewbit_from_signed(whole) & ~SIGN);
}

/* Floats of 64 bits: a significand of 53 bits. */

#define SIGN64 ((u64)1 << 63)
#define INFINITE64 ((u64)0x7FF << 52)
#define QUIET64 ((u64)0xFFF << 51)

static bool is_nan64(u64 a) { return (a & ~SIGN64) > INFINITE64; }

static i32 exponent_of64(u64 a) {
  const i32 biased = (i32)(u32)(a >> 52) & 0x7FF;
  return (biased ? biased : 1) - 1075;
}

static u64 significand_of64(u64 a) {
  const u64 fraction = a & (((u64)1 << 52) - 1);
  return a & INFINITE64 ? fraction | (u64)1 << 52 : fraction;
}

static u64 round_to_double(u64 sign, i32 exponent, u64 significand) {
  if (significand == 0)
    return sign;
  while (!(significand & SIGN64)) {
    significand <<= 1;
    exponent--;
  }
  i32 biased = exponent + 63 + 1023;
  if (biased >= 2047)
    return sign | INFINITE64;
  for (; biased <= 0 && significand > 1; biased++)
    significand = significand >> 1 | (significand & 1);
  if (biased <= 0)
    biased = 1;
  const u64 whole = significand >> 11;
  const u32 part = (u32)significand & 0x7FF;
  const u32 up = part > 0x400 || (part == 0x400 && ((u32)whole & 1));
  return sign | (((u64)(u32)(biased - 1) << 52) + whole + up);
}

u64 fewbit_add64(u64 a, u64 b) {
  if ((a & ~SIGN64) < (b & ~SIGN64)) {
    const u64 other = a;
    a = b;
    b = other;
  }
  if ((a & ~SIGN64) >= INFINITE64) {
    const bool is_difference = (a ^ b) == SIGN64;
    return is_nan64(a) || is_difference ? QUIET64 : a;
  }
  const u64 sign = a & SIGN64;
  const i32 exponent = exponent_of64(a);
  i32 down = exponent - exponent_of64(b);
  const u64 larger = significand_of64(a) << 10;
  u64 smaller = significand_of64(b) << 10;
  if (down >= 64)
    smaller = smaller != 0;
  for (; down > 0 && down < 64; down--)
    smaller = smaller >> 1 | (smaller & 1);
  const u64 sum = (a ^ b) & SIGN64 ? larger - smaller : larger + smaller;
  if (sum == 0)
    return (a ^ b) & SIGN64 ? 0 : sign;
  return round_to_double(sign, exponent - 10, sum);
}

u64 fewbit_subtract64(u64 a, u64 b) { return fewbit_add64(a, is_nan64(b) ? b : b ^ SIGN64); }

u64 fewbit_multiply64(u64 a, u64 b) {
  const u64 sign = (a ^ b) & SIGN64, x = a & ~SIGN64, y = b & ~SIGN64;
  if (x >= INFINITE64 || y >= INFINITE64)
    return is_nan64(a) || is_nan64(b) || x == 0 || y == 0 ? QUIET64 : sign | INFINITE64;
  const u64 sa = significand_of64(a), sb = significand_of64(b);
  const u32 al = (u32)sa, ah = (u32)(sa >> 32), bl = (u32)sb, bh = (u32)(sb >> 32);
  const u64 low = widening_product(al, bl);
  const u64 middle = widening_product(ah, bl) + (low >> 32);
  const u64 other = widening_product(al, bh) + (u32)middle;
  const u64 high = widening_product(ah, bh) + (middle >> 32) + (other >> 32);
  const u32 rest = (u32)other, last = (u32)low;
  /* The product has 106 bits at most, 42 of them in `high`. */
  if (high == 0)
    return round_to_double(sign, exponent_of64(a) + exponent_of64(b), (u64)rest << 32 | last);
  const u64 top = high << 20 | rest >> 12;
  const bool sticky = (rest & 0xFFF) != 0 || last != 0;
  return round_to_double(sign, exponent_of64(a) + exponent_of64(b) + 44, top | sticky);
}

u64 fewbit_divide64(u64 a, u64 b) {
  const u64 sign = (a ^ b) & SIGN64, x = a & ~SIGN64, y = b & ~SIGN64;
  if (is_nan64(a) || is_nan64(b) || (x == y && (x == 0 || x == INFINITE64)))
    return QUIET64;
  if (x == INFINITE64 || y == 0)
    return sign | INFINITE64;
  if (x == 0 || y == INFINITE64)
    return sign;
  u64 remainder = significand_of64(a), divisor = significand_of64(b), quotient = 0;
  i32 exponent = exponent_of64(a) - exponent_of64(b);
  for (; !(remainder >> 52); exponent--)
    remainder <<= 1;
  for (; !(divisor >> 52); exponent++)
    divisor <<= 1;
  for (int i = 0; i < 56; i++) {
    quotient <<= 1;
    if (remainder >= divisor) {
      remainder -= divisor;
      quotient |= 1;
    }
    remainder <<= 1;
  }
  return round_to_double(sign, exponent - 56, quotient << 1 | (remainder != 0));
}

i32 fewbit_compare64(u64 a, u64 b) {
  if (is_nan64(a) || is_nan64(b))
    return 2;
  if (((a | b) & ~SIGN64) == 0)
    return 0;
  const i64 x = a & SIGN64 ? (i64)~(a & ~SIGN64) : (i64)a;
  const i64 y = b & SIGN64 ? (i64)~(b & ~SIGN64) : (i64)b;
  return x < y ? -1 : x > y;
}

u64 fewbit_widen(u32 a) {
  const u64 sign = (u64)(a & SIGN) << 32;
  if (is_nan(a))
    return QUIET64;
  if ((a & ~SIGN) == INFINITE)
    return sign | INFINITE64;
  return round_to_double(sign, exponent_of(a), significand_of(a));
}

u32 fewbit_narrow(u64 a) {
  const u32 sign = (u32)(a >> 32) & SIGN;
  if (is_nan64(a))
    return QUIET;
  if ((a & ~SIGN64) == INFINITE64)
    return sign | INFINITE;
  const i32 exponent = exponent_of64(a);
  return exponent < -2000 ? sign : round_wide_to_float(sign, exponent, significand_of64(a));
}

u64 fewbit_from_unsigned64(u32 a) { return round_to_double(0, 0, a); }

u64 fewbit_from_signed64(i32 a) {
  return a < 0 ? round_to_double(SIGN64, 0, -(u32)a) : round_to_double(0, 0, (u32)a);
}

static u32 truncate_magnitude64(u64 a) {
  const i32 exponent = exponent_of64(a);
  if (exponent > -21)
    return ~(u32)0;
  return exponent > -64 ? (u32)(significand_of64(a) >> -exponent) : 0;
}

u32 fewbit_to_unsigned64(u64 a) { return a & SIGN64 || is_nan64(a) ? 0 : truncate_magnitude64(a); }

i32 fewbit_to_signed64(u64 a) {
  if (is_nan64(a))
    return 0;
  const u32 magnitude = truncate_magnitude64(a);
  if (a & SIGN64)
    return magnitude > SIGN ? INT32_MIN : (i32)-magnitude;
  return magnitude >= SIGN ? INT32_MAX : (i32)magnitude;
}
