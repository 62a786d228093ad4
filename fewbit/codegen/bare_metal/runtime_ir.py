"""What compiled code may call that no library provides: copies; on RV32 also i64's divisions and
conversions from and to floats.

Those that nothing calls are dropped by the linker.
"""

from __future__ import annotations

import re

from fewbit.codegen.bare_metal.processor import Processor

_MEMORY = """
define ptr @memcpy(ptr %to, ptr %from, i64 %count) {word} {
entry:
  br label %test
test:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %end
body:
  %source = getelementptr i8, ptr %from, i64 %i
  %target = getelementptr i8, ptr %to, i64 %i
  %byte = load i8, ptr %source
  store i8 %byte, ptr %target
  %next = add i64 %i, 1
  br label %test
end:
  ret ptr %to
}
define ptr @memmove(ptr %to, ptr %from, i64 %count) {word} {
entry:
  %before = icmp ult ptr %to, %from
  %first = sub i64 %count, 1
  br label %test
test:
  %done = phi i64 [0, %entry], [%next, %body]
  %more = icmp ult i64 %done, %count
  br i1 %more, label %body, label %end
body:
  %back = sub i64 %first, %done
  %i = select i1 %before, i64 %done, i64 %back
  %source = getelementptr i8, ptr %from, i64 %i
  %target = getelementptr i8, ptr %to, i64 %i
  %byte = load i8, ptr %source
  store i8 %byte, ptr %target
  %next = add i64 %done, 1
  br label %test
end:
  ret ptr %to
}
define ptr @memset(ptr %to, i32 %value, i64 %count) {word} {
entry:
  %byte = trunc i32 %value to i8
  br label %test
test:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %end
body:
  %target = getelementptr i8, ptr %to, i64 %i
  store i8 %byte, ptr %target
  %next = add i64 %i, 1
  br label %test
end:
  ret ptr %to
}
"""

_DIVISION = """
define internal { i64, i64 } @divide(i64 %a, i64 %b) {
entry:
  br label %loop
loop:
  %i = phi i64 [63, %entry], [%next, %loop]
  %quotient = phi i64 [0, %entry], [%quotient.next, %loop]
  %rest = phi i64 [0, %entry], [%rest.next, %loop]
  %moved = shl i64 %rest, 1
  %bit = lshr i64 %a, %i
  %one = and i64 %bit, 1
  %taken = or i64 %moved, %one
  %fits = icmp uge i64 %taken, %b
  %less = sub i64 %taken, %b
  %rest.next = select i1 %fits, i64 %less, i64 %taken
  %bit.set = shl i64 1, %i
  %with = or i64 %quotient, %bit.set
  %quotient.next = select i1 %fits, i64 %with, i64 %quotient
  %next = sub i64 %i, 1
  %more = icmp sge i64 %next, 0
  br i1 %more, label %loop, label %end
end:
  %first = insertvalue { i64, i64 } poison, i64 %quotient.next, 0
  %both = insertvalue { i64, i64 } %first, i64 %rest.next, 1
  ret { i64, i64 } %both
}
define internal i64 @magnitude(i64 %a) {
  %negative = icmp slt i64 %a, 0
  %minus = sub i64 0, %a
  %result = select i1 %negative, i64 %minus, i64 %a
  ret i64 %result
}
define i64 @__udivdi3(i64 %a, i64 %b) {
  %both = call { i64, i64 } @divide(i64 %a, i64 %b)
  %result = extractvalue { i64, i64 } %both, 0
  ret i64 %result
}
define i64 @__umoddi3(i64 %a, i64 %b) {
  %both = call { i64, i64 } @divide(i64 %a, i64 %b)
  %result = extractvalue { i64, i64 } %both, 1
  ret i64 %result
}
define i64 @__divdi3(i64 %a, i64 %b) {
  %x = call i64 @magnitude(i64 %a)
  %y = call i64 @magnitude(i64 %b)
  %both = call { i64, i64 } @divide(i64 %x, i64 %y)
  %found = extractvalue { i64, i64 } %both, 0
  %signs = xor i64 %a, %b
  %negative = icmp slt i64 %signs, 0
  %minus = sub i64 0, %found
  %result = select i1 %negative, i64 %minus, i64 %found
  ret i64 %result
}
define i64 @__moddi3(i64 %a, i64 %b) {
  %x = call i64 @magnitude(i64 %a)
  %y = call i64 @magnitude(i64 %b)
  %both = call { i64, i64 } @divide(i64 %x, i64 %y)
  %found = extractvalue { i64, i64 } %both, 1
  %negative = icmp slt i64 %a, 0
  %minus = sub i64 0, %found
  %result = select i1 %negative, i64 %minus, i64 %found
  ret i64 %result
}
"""

_CONVERSIONS = """
define double @__floatundidf(i64 %a) {
  %high.bits = lshr i64 %a, 32
  %high = trunc i64 %high.bits to i32
  %low = trunc i64 %a to i32
  %x = uitofp i32 %high to double
  %y = uitofp i32 %low to double
  %scaled = fmul double %x, 0x41F0000000000000
  %result = fadd double %scaled, %y
  ret double %result
}
define double @__floatdidf(i64 %a) {
  %high.bits = lshr i64 %a, 32
  %high = trunc i64 %high.bits to i32
  %low = trunc i64 %a to i32
  %x = sitofp i32 %high to double
  %y = uitofp i32 %low to double
  %scaled = fmul double %x, 0x41F0000000000000
  %result = fadd double %scaled, %y
  ret double %result
}
define float @__floatundisf(i64 %a) {
  %low = and i64 %a, 2047
  %some = icmp ne i64 %low, 0
  %sticky = select i1 %some, i64 2048, i64 0
  %cleared = and i64 %a, -2048
  %rounded = or i64 %cleared, %sticky
  %is.large = icmp uge i64 %a, 9007199254740992
  %exact = select i1 %is.large, i64 %rounded, i64 %a
  %wide = call double @__floatundidf(i64 %exact)
  %result = fptrunc double %wide to float
  ret float %result
}
define float @__floatdisf(i64 %a) {
  %size = call i64 @magnitude(i64 %a)
  %positive = call float @__floatundisf(i64 %size)
  %minus = fneg float %positive
  %negative = icmp slt i64 %a, 0
  %result = select i1 %negative, float %minus, float %positive
  ret float %result
}
define i64 @__fixunsdfdi(double %a) {
  %scaled = fmul double %a, 0x3DF0000000000000
  %high = fptoui double %scaled to i32
  %above = uitofp i32 %high to double
  %removed = fmul double %above, 0x41F0000000000000
  %rest = fsub double %a, %removed
  %low = fptoui double %rest to i32
  %x = zext i32 %high to i64
  %y = zext i32 %low to i64
  %moved = shl i64 %x, 32
  %result = or i64 %moved, %y
  ret i64 %result
}
define i64 @__fixdfdi(double %a) {
  %negative = fcmp olt double %a, 0.0
  %minus = fneg double %a
  %size = select i1 %negative, double %minus, double %a
  %found = call i64 @__fixunsdfdi(double %size)
  %opposite = sub i64 0, %found
  %result = select i1 %negative, i64 %opposite, i64 %found
  ret i64 %result
}
define i64 @__fixsfdi(float %a) {
  %wide = fpext float %a to double
  %result = call i64 @__fixdfdi(double %wide)
  ret i64 %result
}
define i64 @__fixunssfdi(float %a) {
  %wide = fpext float %a to double
  %result = call i64 @__fixunsdfdi(double %wide)
  ret i64 %result
}
"""


def runtime_ir(processor: Processor) -> str:
    """LLVM IR of the functions, as a module of its own."""
    # Without this, LLVM would find that memcpy is a memcpy, and call it.
    memory = _MEMORY.replace("{word}", 'nounwind "no-builtins"')
    return processor.native(memory) + (_DIVISION + _CONVERSIONS if processor.xlen == 32 else "")


def names(text: str) -> list[str]:
    """The functions that others may call."""
    return re.findall(r"^define (?!internal)[^@]*@(\w+)", text, re.MULTILINE)
