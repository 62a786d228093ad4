"""The public functions of a library with variants for several processors: each calls its variant.

The processor is asked once, when a variant is first needed. What it executes and which variant is
in use, by its number, best first, are kept in one word; 0 until then. The word is the only state.
It is read and written atomically and nothing else depends on it, so calls may meet here in any
order: all find the same variant, or the one that `use_variant` was given. Tables have what is
called, by number; where no variant fits, number 0 reports that. This code is compiled for the
plainest processor of the family.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fewbit.codegen.detect import detect_ir, instructions_ir
from fewbit.codegen.interface import Interface, error_number
from fewbit.toolchain import objects
from fewbit.toolchain.isa import Isa

_NUMBER_BITS = 8
_NUMBER_MASK = (1 << _NUMBER_BITS) - 1

AUTO = "auto"
"""In place of a variant's name: the best that fits."""

_SIGNATURES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "run": ("i32", ("ptr", "ptr", "ptr", "i32"), str(error_number("VARIANT"))),
    "shapes": ("i32", ("ptr", "ptr"), str(error_number("VARIANT"))),
    "arena_bytes": ("i64", ("ptr",), "0"),
    "profile": ("ptr", ("ptr",), "null"),
    "ticks": ("i64", (), "0"),
}
"""Of each function: its result, its arguments, and the result where no variant fits."""


def variant_functions(interface: Interface) -> tuple[str, ...]:
    """What a library with variants has beside the functions of others."""
    return f"{interface.name}_variant", f"{interface.name}_use_variant"


def dispatch_object(
    interface: Interface,
    variants: Sequence[Isa],
    symbols: Sequence[Mapping[str, str]],
    arena: int | None,
) -> bytes:
    """The object of the public functions.

    `symbols` has the names of each variant's own functions, `arena` the size that is enough for
    all of them, if it is known.
    """
    isa = _plainest(variants[0])
    name = interface.name
    count = len(variants)
    parts = [_names(variants), _choice(count), _interface(name, count)]
    for function in interface.functions:
        kind = function.removeprefix(f"{name}_")
        parts.append(_table(kind, [one[function] for one in symbols]))
        parts.append(
            _arena_bytes(function, count, arena)
            if kind == "arena_bytes"
            else _forward(function, kind)
        )
    public = (*interface.functions, *variant_functions(interface))
    module = objects.link_modules([detect_ir(variants), "\n".join(parts)], public, isa)
    objects.optimize(module, isa)
    objects.link_in(module, instructions_ir(isa.architecture))
    return objects.emit_object(module, isa)


def _plainest(isa: Isa) -> Isa:
    if isa.architecture == "x86_64":
        return replace(isa, cpu="x86-64", features="")
    return Isa.of(isa.architecture)


def _names(variants: Sequence[Isa]) -> str:
    texts = [AUTO, *(isa.name for isa in variants)]
    lines = [
        f'@variants.name{i} = private constant [{len(text) + 1} x i8] c"{text}\\00"'
        for i, text in enumerate(texts)
    ]
    names = ", ".join(["ptr null", *(f"ptr @variants.name{i + 1}" for i in range(len(variants)))])
    return "\n".join([*lines, f"@variants.names = private constant [{len(texts)} x ptr] [{names}]"])


def _choice(count: int) -> str:
    return f"""
@variants.chosen = internal global i32 0, align 4

declare i32 @variants.fitting()
declare i32 @llvm.cttz.i32(i32, i1)

; Which variants fit, in the upper bits, and in the lower ones the number of that in use.
define i32 @variants.state() {{
entry:
  %known = load atomic i32, ptr @variants.chosen monotonic, align 4
  %some = icmp ne i32 %known, 0
  br i1 %some, label %done, label %choose
choose:
  %fitting = call i32 @variants.fitting()
  %best = call i32 @variants.best(i32 %fitting)
  %upper = shl i32 %fitting, {_NUMBER_BITS}
  %state = or i32 %upper, %best
  ; What another thread has chosen meanwhile is kept: it may have been told which.
  %pair = cmpxchg ptr @variants.chosen, i32 0, i32 %state monotonic monotonic
  %before = extractvalue {{ i32, i1 }} %pair, 0
  %told = icmp ne i32 %before, 0
  %chosen = select i1 %told, i32 %before, i32 %state
  br label %done
done:
  %now = phi i32 [%known, %entry], [%chosen, %choose]
  ret i32 %now
}}

define i32 @variants.best(i32 %fitting) {{
  %none = icmp eq i32 %fitting, 0
  %first = call i32 @llvm.cttz.i32(i32 %fitting, i1 false)
  %number = add i32 %first, 1
  %best = select i1 %none, i32 0, i32 %number
  ret i32 %best
}}

define i64 @variants.current() {{
  %state = call i32 @variants.state()
  %number = and i32 %state, {_NUMBER_MASK}
  %wide = zext i32 %number to i64
  ret i64 %wide
}}

define i1 @variants.fits(i32 %state, i64 %number) {{
  %wide = zext i32 %state to i64
  %place = add i64 %number, {_NUMBER_BITS - 1}
  %moved = lshr i64 %wide, %place
  %fits = trunc i64 %moved to i1
  ret i1 %fits
}}

; The number of a name: 0 for the best that fits, one more than there are for others.
define i64 @variants.find(ptr %name) {{
entry:
  %auto = call i1 @variants.same(ptr %name, ptr @variants.name0)
  br i1 %auto, label %found, label %next
next:
  %number = phi i64 [1, %entry], [%more, %other]
  %end = icmp ugt i64 %number, {count}
  br i1 %end, label %found, label %compare
compare:
  %at = getelementptr ptr, ptr @variants.names, i64 %number
  %its = load ptr, ptr %at
  %same = call i1 @variants.same(ptr %name, ptr %its)
  br i1 %same, label %found, label %other
other:
  %more = add i64 %number, 1
  br label %next
found:
  %result = phi i64 [0, %entry], [%number, %next], [%number, %compare]
  ret i64 %result
}}

define i1 @variants.same(ptr %a, ptr %b) {{
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%more, %equal]
  %at_a = getelementptr i8, ptr %a, i64 %i
  %at_b = getelementptr i8, ptr %b, i64 %i
  %in_a = load i8, ptr %at_a
  %in_b = load i8, ptr %at_b
  %more = add i64 %i, 1
  %differ = icmp ne i8 %in_a, %in_b
  br i1 %differ, label %no, label %equal
equal:
  %end = icmp eq i8 %in_a, 0
  br i1 %end, label %yes, label %next
no:
  ret i1 false
yes:
  ret i1 true
}}
"""


def _interface(name: str, count: int) -> str:
    return f"""
define ptr @{name}_variant() {{
  %now = call i64 @variants.current()
  %at = getelementptr ptr, ptr @variants.names, i64 %now
  %its = load ptr, ptr %at
  ret ptr %its
}}

define i32 @{name}_use_variant(ptr %name) {{
  %null = icmp eq ptr %name, null
  br i1 %null, label %nothing, label %look
nothing:
  ret i32 {error_number("NULL")}
look:
  %number = call i64 @variants.find(ptr %name)
  %unknown = icmp ugt i64 %number, {count}
  br i1 %unknown, label %wrong, label %known
known:
  %state = call i32 @variants.state()
  %auto = icmp eq i64 %number, 0
  br i1 %auto, label %detect, label %ask
detect:
  %fitting = lshr i32 %state, {_NUMBER_BITS}
  %best = call i32 @variants.best(i32 %fitting)
  %none = icmp eq i32 %best, 0
  br i1 %none, label %wrong, label %use
ask:
  %asked = trunc i64 %number to i32
  %fits = call i1 @variants.fits(i32 %state, i64 %number)
  br i1 %fits, label %use, label %wrong
use:
  %chosen = phi i32 [%best, %detect], [%asked, %ask]
  %upper = and i32 %state, {~_NUMBER_MASK}
  %next = or i32 %upper, %chosen
  store atomic i32 %next, ptr @variants.chosen monotonic, align 4
  ret i32 0
wrong:
  ret i32 {error_number("VARIANT")}
}}
"""


def _table(kind: str, symbols: Sequence[str]) -> str:
    """The variants' functions by number, and that which reports that none fits."""
    result, types, otherwise = _SIGNATURES[kind]
    given = ", ".join(types)
    every = [f"variants.no_{kind}", *symbols]
    entries = ", ".join(f'ptr @"{symbol}"' for symbol in every)
    return "\n".join(
        [
            f"define {result} @{every[0]}({given}) {{\n  ret {result} {otherwise}\n}}",
            *(f'declare hidden {result} @"{symbol}"({given})' for symbol in symbols),
            f"@variants.{kind} = private constant [{len(every)} x ptr] [{entries}]",
        ]
    )


def _forward(function: str, kind: str) -> str:
    """A public function that calls that of the variant in use."""
    result, types, _ = _SIGNATURES[kind]
    given = ", ".join(f"{type} %a{i}" for i, type in enumerate(types))
    return f"""
define {result} @{function}({given}) {{
  %now = call i64 @variants.current()
  %at = getelementptr ptr, ptr @variants.{kind}, i64 %now
  %its = load ptr, ptr %at
  %result = tail call {result} %its({given})
  ret {result} %result
}}
"""


def _arena_bytes(function: str, count: int, arena: int | None) -> str:
    """Enough for every variant that fits, so that another can be used after memory was taken."""
    if arena is not None:
        return f"define i64 @{function}(ptr %inputs) {{\n  ret i64 {arena}\n}}\n"
    return f"""
define i64 @{function}(ptr %inputs) {{
entry:
  %state = call i32 @variants.state()
  br label %next
next:
  %number = phi i64 [1, %entry], [%more, %asked]
  %most = phi i64 [0, %entry], [%largest, %asked]
  %end = icmp ugt i64 %number, {count}
  br i1 %end, label %done, label %look
look:
  %fits = call i1 @variants.fits(i32 %state, i64 %number)
  br i1 %fits, label %ask, label %asked
ask:
  %at = getelementptr ptr, ptr @variants.arena_bytes, i64 %number
  %its = load ptr, ptr %at
  %size = call i64 %its(ptr %inputs)
  %larger = icmp ugt i64 %size, %most
  %kept = select i1 %larger, i64 %size, i64 %most
  br label %asked
asked:
  %largest = phi i64 [%most, %look], [%kept, %ask]
  %more = add i64 %number, 1
  br label %next
done:
  ret i64 %most
}}
"""
