"""Floating point by integers: every operation exact, then rounded once, in any of the modes.

Slow, and plain enough to be believed. The native simulator uses the processor's own arithmetic and
comes here for what that has not: rounding modes that instructions ask for.
Values are bit patterns. Results that are not numbers are RISC-V's one canonical NaN. Exception
flags are not kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

RNE, RTZ, RDN, RUP, RMM = range(5)


@dataclass(frozen=True)
class Float:
    """A format: how many bits, and how many of them are the fraction."""

    bits: int
    fraction: int

    @property
    def sign(self) -> int:
        return 1 << self.bits - 1

    @property
    def infinity(self) -> int:
        return self.sign - (1 << self.fraction)

    @property
    def nan(self) -> int:
        return self.infinity | 1 << self.fraction - 1

    @property
    def lowest(self) -> int:
        """The exponent of the last bit of the smallest numbers."""
        return 3 - (1 << self.bits - self.fraction - 2) - self.fraction - 1

    def is_nan(self, a: int) -> bool:
        return a & ~self.sign > self.infinity

    def is_infinite(self, a: int) -> bool:
        return a & ~self.sign == self.infinity

    def parts(self, a: int) -> tuple[int, int]:
        """Return a finite value as m · 2^e, m with the sign."""
        field = (a & ~self.sign) >> self.fraction
        m = a & (1 << self.fraction) - 1
        e = self.lowest
        if field:
            m, e = m | 1 << self.fraction, e + field - 1
        return (-m if a & self.sign else m), e

    def pack(self, negative: bool, m: int, e: int, mode: int) -> int:
        """Return ±m · 2^e, rounded."""
        sign = self.sign if negative else 0
        if m == 0:
            return sign
        unit = max(m.bit_length() + e - self.fraction - 1, self.lowest)
        m = m << e - unit if unit <= e else shift(m, unit - e, negative, mode)
        if m >> self.fraction + 1:
            m, unit = m >> 1, unit + 1
        if not m >> self.fraction:
            return sign | m
        field = unit - self.lowest + 1
        if field << self.fraction >= self.infinity:
            away = mode in (RNE, RMM) or mode == (RDN if negative else RUP)
            return sign | (self.infinity if away else self.infinity - 1)
        return sign | field << self.fraction | m & (1 << self.fraction) - 1

    def add(self, a: int, b: int, mode: int) -> int:
        if self.is_nan(a) or self.is_nan(b):
            return self.nan
        if self.is_infinite(a):
            return self.nan if self.is_infinite(b) and a != b else a
        if self.is_infinite(b):
            return b
        if a == b in (0, self.sign):
            return a
        return self._sum(self.parts(a), self.parts(b), mode)

    def _sum(self, a: tuple[int, int], b: tuple[int, int], mode: int) -> int:
        e = min(a[1], b[1])
        m = (a[0] << a[1] - e) + (b[0] << b[1] - e)
        if m == 0:
            return self.sign if mode == RDN else 0
        return self.pack(m < 0, abs(m), e, mode)

    def multiply(self, a: int, b: int, mode: int) -> int:
        if self.is_nan(a) or self.is_nan(b):
            return self.nan
        sign = (a ^ b) & self.sign
        if self.is_infinite(a) or self.is_infinite(b):
            return self.nan if 0 in (a & ~self.sign, b & ~self.sign) else sign | self.infinity
        (m, e), (n, f) = self.parts(a), self.parts(b)
        return self.pack(bool(sign), abs(m * n), e + f, mode)

    def fma(self, a: int, b: int, c: int, mode: int) -> int:
        """Return a · b + c, rounded once."""
        if self.is_nan(a) or self.is_nan(b) or self.is_nan(c):
            return self.nan
        sign = (a ^ b) & self.sign
        if self.is_infinite(a) or self.is_infinite(b):
            product = self.multiply(a, b, mode)
            return self.add(product, c, mode)
        if self.is_infinite(c):
            return c
        (m, e), (n, f) = self.parts(a), self.parts(b)
        if m * n == 0 and c == sign:
            return c
        return self._sum((m * n, e + f), self.parts(c), mode)

    def divide(self, a: int, b: int, mode: int) -> int:
        if self.is_nan(a) or self.is_nan(b):
            return self.nan
        sign = (a ^ b) & self.sign
        if self.is_infinite(a):
            return self.nan if self.is_infinite(b) else sign | self.infinity
        if self.is_infinite(b):
            return sign
        (m, e), (n, f) = self.parts(a), self.parts(b)
        if n == 0:
            return self.nan if m == 0 else sign | self.infinity
        quotient, remainder = divmod(abs(m) << 2 * self.fraction + 4, abs(n))
        sticky = quotient << 1 | (remainder != 0)
        return self.pack(bool(sign), sticky, e - f - 2 * self.fraction - 5, mode)

    def root(self, a: int, mode: int) -> int:
        if self.is_nan(a) or (a & self.sign and a != self.sign):
            return self.nan
        if a in (self.sign, self.infinity):
            return a
        m, e = self.parts(a)
        m, e = m << 2 * self.fraction + 4, e - 2 * self.fraction - 4
        if e % 2:
            m, e = m << 1, e - 1
        root = isqrt(m)
        return self.pack(False, root << 1 | (root * root != m), e // 2 - 1, mode)

    def convert(self, a: int, to: Float, mode: int) -> int:
        if self.is_nan(a):
            return to.nan
        sign = to.sign if a & self.sign else 0
        if self.is_infinite(a):
            return sign | to.infinity
        m, e = self.parts(a)
        return to.pack(bool(sign), abs(m), e, mode)

    def to_integer(self, a: int, low: int, high: int, mode: int) -> int:
        """Return the nearest integer by the mode, or the end of the range that it is beyond."""
        if self.is_nan(a):
            return high
        if self.is_infinite(a):
            return low if a & self.sign else high
        m, e = self.parts(a)
        n = abs(m) << e if e >= 0 else shift(abs(m), -e, m < 0, mode)
        return min(max(-n if m < 0 else n, low), high)

    def from_integer(self, n: int, mode: int) -> int:
        return self.pack(n < 0, abs(n), 0, mode)

    def order(self, a: int) -> int:
        """Return a key that sorts as the values do; equal zeros get one key."""
        magnitude = a & ~self.sign
        return -magnitude if a & self.sign else magnitude

    def less(self, a: int, b: int) -> bool:
        return not (self.is_nan(a) or self.is_nan(b)) and self.order(a) < self.order(b)

    def equal(self, a: int, b: int) -> bool:
        return not (self.is_nan(a) or self.is_nan(b)) and self.order(a) == self.order(b)

    def smaller(self, a: int, b: int) -> int:
        return self._choose(a, b, a if a & self.sign else b, self.less(a, b))

    def larger(self, a: int, b: int) -> int:
        return self._choose(a, b, b if a & self.sign else a, self.less(b, a))

    def _choose(self, a: int, b: int, tie: int, first: bool) -> int:
        """Return one of two, NaN only if both are; `tie` among zeros of both signs."""
        if self.is_nan(a):
            return self.nan if self.is_nan(b) else b
        if self.is_nan(b):
            return a
        if self.order(a) == self.order(b):
            return tie
        return a if first else b

    def classify(self, a: int) -> int:
        """Return RISC-V's one-bit mask: -inf, -normal, -subnormal, -0, +0, ... +inf, sNaN, qNaN."""
        if self.is_nan(a):
            return 1 << (9 if a & 1 << self.fraction - 1 else 8)
        magnitude = a & ~self.sign
        if magnitude == self.infinity:
            rank = 3
        elif magnitude >> self.fraction:
            rank = 2
        else:
            rank = 1 if magnitude else 0
        return 1 << (3 - rank if a & self.sign else 4 + rank)


def shift(m: int, by: int, negative: bool, mode: int) -> int:
    """Return m / 2^by as an integer, rounded by the mode as the magnitude of a signed value."""
    whole, remainder = m >> by, m & (1 << by) - 1
    half = 1 << by - 1
    if mode == RNE:
        up = remainder > half or (remainder == half and whole & 1 == 1)
    elif mode == RMM:
        up = remainder >= half
    else:
        up = remainder != 0 and mode == (RDN if negative else RUP)
    return whole + up


SINGLE, DOUBLE = Float(32, 23), Float(64, 52)
