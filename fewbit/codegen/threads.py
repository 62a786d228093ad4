"""Threads of a library, in LLVM IR: they start with the first call that wants them, and stay.

After a call a worker looks out for the next, busily for a while and then asleep. To wake one takes
much longer than a small program: a call waits only for as many as its caller is sure are worth it,
and has others where they are awake. A call that comes soon after another wakes all that it wants,
because more calls will.

Each worker has a line of memory of its own, in which its caller leaves what to do: nobody else is
woken, and waiting threads do not disturb one another. The pool belongs to one call at a time. A
call that meets another in it starts workers of its own, in a pool on its stack, which end with it.
A forked process has none of its parent's threads: it finds another process's number in the pool,
and starts anew.

Nothing is allocated. Sleep is by futex, because a library of ours cannot say which version of
glibc's condition variables it wants, and would get those that allocate. Names have a dot, as no
function of C has.
"""

from __future__ import annotations

from fewbit.toolchain.isa import Isa

LOOKS_OUT = 150_000
"""Nanoseconds for which a worker looks out for work before it sleeps."""
_TURNS = 256
"""Of looking, before a worker gives way to others and looks at the clock."""
_PATIENCE = 200
"""Turns of waiting within a call before a thread gives way: the others may have no processor."""

_IDLE, _WORK, _END, _ASLEEP = range(4)
"""What the sign of a worker says."""

_PAUSES = {
    "x86_64": "llvm.x86.sse2.pause()",
    "aarch64": "llvm.aarch64.hint(i32 1)",
    "riscv64": "llvm.donothing()",
}
"""Tell a processor that nothing but waiting is done; rv64gc has no instruction for that."""
_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
_WAIT, _WAKE = 128, 129
"""Of futexes that only threads of one process know."""

_LEFT_ALONE = (4, 5, 6, 7, 8, 11)
"""Signals that a thread's own instructions raise; the others are for the caller's threads."""


def threads_ir(max_threads: int, start_error: int, isa: Isa) -> str:
    """`threads.run`, which calls `threads.part` in each, and `threads.barrier`, where all meet."""
    pause = f"call void @{_PAUSES[isa.architecture]}"
    declared = pause.replace("call", "declare").replace("i32 1", "i32")
    futex = f"call i64 (i64, ...) @syscall(i64 {_FUTEX[isa.architecture]}"
    call = "ptr %inputs, ptr %outputs, ptr %arena, i64 %threads"
    mask = ~sum(1 << (signal - 1) for signal in _LEFT_ALONE)
    return f"""
{declared}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i32 @clock_gettime(i32, ptr)
declare i32 @getpid()
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sched_yield()
declare i64 @syscall(i64, ...)

; Its sign, inputs, outputs, arena, thread, threads, and the system's name for it.
%worker = type {{ i32, ptr, ptr, ptr, i64, i64, i64 }}
; Twice the process, plus one while a call has it; how many workers there are; when the last call
; ended; and each worker with a line.
%pool = type {{ i32, i64, i64, [5 x i64], [{max_threads} x {{ %worker, [8 x i8] }}] }}

@threads.pool = internal global %pool zeroinitializer, align 64
@threads.at_end = internal global ptr @threads.finish, section ".fini_array"
@llvm.used = appending global [1 x ptr] [ptr @threads.at_end], section "llvm.metadata"

; Up to so many threads, of which `sure` are worth waiting for.
define i32 @threads.run({call}, i64 %sure) {{
  %alone = icmp eq i64 %threads, 1
  br i1 %alone, label %only, label %several
several:
  %taken = call i1 @threads.take()
  br i1 %taken, label %shared, label %busy
shared:
  %code = call i32 @threads.together(ptr @threads.pool, {call}, i64 %sure)
  call void @threads.give_back()
  ret i32 %code
busy:
  %small = icmp eq i64 %sure, 1
  br i1 %small, label %only, label %apart
apart:
  %other = call i32 @threads.apart(ptr %inputs, ptr %outputs, ptr %arena, i64 %sure)
  ret i32 %other
only:
  call void @threads.part(ptr %inputs, ptr %outputs, ptr %arena, i64 0, i64 1)
  ret i32 0
}}

; Whether the pool is ours now: it is, unless another call of this process has it.
define i1 @threads.take() {{
  %process = call i32 @getpid()
  %free = shl i32 %process, 1
  %used = or i32 %free, 1
  %now = load atomic i32, ptr @threads.pool acquire, align 4
  %busy = icmp eq i32 %now, %used
  br i1 %busy, label %no, label %try
try:
  %pair = cmpxchg ptr @threads.pool, i32 %now, i32 %used acquire monotonic
  %mine = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %mine, label %yes, label %no
yes:
  %known = icmp eq i32 %now, %free
  br i1 %known, label %done, label %forget
forget:
  %count = getelementptr %pool, ptr @threads.pool, i32 0, i32 1
  store i64 0, ptr %count
  br label %done
done:
  ret i1 true
no:
  ret i1 false
}}

define void @threads.give_back() {{
  %used = load atomic i32, ptr @threads.pool monotonic, align 4
  %free = and i32 %used, -2
  store atomic i32 %free, ptr @threads.pool release, align 4
  ret void
}}

; Workers end when the library is unloaded or the process exits. Where another thread is in a call
; at that moment, the process is about to end them.
define void @threads.finish() {{
  %taken = call i1 @threads.take()
  br i1 %taken, label %end, label %done
end:
  call void @threads.end(ptr @threads.pool)
  call void @threads.give_back()
  br label %done
done:
  ret void
}}

define i32 @threads.apart({call}) noinline {{
  %pool = alloca %pool, align 64
  %count = getelementptr %pool, ptr %pool, i32 0, i32 1
  store i64 0, ptr %count
  %code = call i32 @threads.together(ptr %pool, {call}, i64 %threads)
  call void @threads.end(ptr %pool)
  ret i32 %code
}}

define i32 @threads.together(ptr %pool, {call}, i64 %sure) {{
  %started = call i1 @threads.start(ptr %pool, i64 %threads)
  br i1 %started, label %choose, label %fail
fail:
  ret i32 {start_error}
choose:
  %all = call i64 @threads.choose(ptr %pool, i64 %threads, i64 %sure)
  store i64 0, ptr %arena
  br label %next
next:
  %i = phi i64 [1, %choose], [%i1, %tell]
  %told = icmp eq i64 %i, %all
  br i1 %told, label %work, label %tell
tell:
  %its = getelementptr %pool, ptr %pool, i32 0, i32 4, i64 %i
  %f1 = getelementptr %worker, ptr %its, i32 0, i32 1
  %f2 = getelementptr %worker, ptr %its, i32 0, i32 2
  %f3 = getelementptr %worker, ptr %its, i32 0, i32 3
  %f4 = getelementptr %worker, ptr %its, i32 0, i32 4
  %f5 = getelementptr %worker, ptr %its, i32 0, i32 5
  store ptr %inputs, ptr %f1
  store ptr %outputs, ptr %f2
  store ptr %arena, ptr %f3
  store i64 %i, ptr %f4
  store i64 %all, ptr %f5
  call void @threads.sign(ptr %its, i32 {_WORK})
  %i1 = add i64 %i, 1
  br label %next
work:
  call void @threads.part(ptr %inputs, ptr %outputs, ptr %arena, i64 0, i64 %all)
  br label %wait
wait:
  %j = phi i64 [1, %work], [%j1, %idle]
  %waited = icmp eq i64 %j, %all
  br i1 %waited, label %done, label %look
look:
  %turn = phi i32 [0, %wait], [%turn1, %rest]
  %at = getelementptr %pool, ptr %pool, i32 0, i32 4, i64 %j
  %sign = load atomic i32, ptr %at acquire, align 4
  %works = icmp eq i32 %sign, {_WORK}
  br i1 %works, label %rest, label %idle
rest:
  %turn1 = call i32 @threads.rest(i32 %turn)
  br label %look
idle:
  %j1 = add i64 %j, 1
  br label %wait
done:
  %last = getelementptr %pool, ptr %pool, i32 0, i32 2
  %now = call i64 @threads.now()
  store i64 %now, ptr %last
  ret i32 0
}}

; How many threads a call has: those that are sure, and others as far as they are awake; but all
; where it comes soon after another.
define i64 @threads.choose(ptr %pool, i64 %threads, i64 %sure) {{
entry:
  br label %next
next:
  %i = phi i64 [%sure, %entry], [%i1, %awake]
  %all = icmp eq i64 %i, %threads
  br i1 %all, label %done, label %look
look:
  %its = getelementptr %pool, ptr %pool, i32 0, i32 4, i64 %i
  %sign = load atomic i32, ptr %its acquire, align 4
  %asleep = icmp eq i32 %sign, {_ASLEEP}
  br i1 %asleep, label %missing, label %awake
awake:
  %i1 = add i64 %i, 1
  br label %next
missing:
  %before = getelementptr %pool, ptr %pool, i32 0, i32 2
  %last = load i64, ptr %before
  %now = call i64 @threads.now()
  %gap = sub i64 %now, %last
  %soon = icmp ult i64 %gap, {LOOKS_OUT}
  %count = select i1 %soon, i64 %threads, i64 %i
  ret i64 %count
done:
  ret i64 %threads
}}

; Starts the workers that are missing; whether all are there then.
define i1 @threads.start(ptr %pool, i64 %threads) {{
entry:
  %mask = alloca [16 x i64]
  %before = alloca [16 x i64]
  %count = getelementptr %pool, ptr %pool, i32 0, i32 1
  %started = load i64, ptr %count
  %wanted = add i64 %threads, -1
  %enough = icmp uge i64 %started, %wanted
  br i1 %enough, label %ready, label %lack
ready:
  ret i1 true
lack:
  call void @llvm.memset.p0.i64(ptr %mask, i8 -1, i64 128, i1 false)
  store i64 {mask}, ptr %mask
  %masked = call i32 @pthread_sigmask(i32 2, ptr %mask, ptr %before)
  br label %next
next:
  %i = phi i64 [%started, %lack], [%i1, %made]
  %whole = icmp eq i64 %i, %wanted
  br i1 %whole, label %done, label %create
create:
  %i1 = add i64 %i, 1
  %its = getelementptr %pool, ptr %pool, i32 0, i32 4, i64 %i1
  %id = getelementptr %worker, ptr %its, i32 0, i32 6
  store i32 {_ASLEEP}, ptr %its
  %error = call i32 @pthread_create(ptr %id, ptr null, ptr @threads.worker, ptr %its)
  %created = icmp eq i32 %error, 0
  br i1 %created, label %made, label %done
made:
  store i64 %i1, ptr %count
  br label %next
done:
  %unmasked = call i32 @pthread_sigmask(i32 2, ptr %before, ptr null)
  ret i1 %whole
}}

define void @threads.end(ptr %pool) {{
entry:
  %count = getelementptr %pool, ptr %pool, i32 0, i32 1
  %started = load i64, ptr %count
  br label %next
next:
  %i = phi i64 [0, %entry], [%i1, %end]
  %none = icmp eq i64 %i, %started
  br i1 %none, label %done, label %end
end:
  %i1 = add i64 %i, 1
  %its = getelementptr %pool, ptr %pool, i32 0, i32 4, i64 %i1
  call void @threads.sign(ptr %its, i32 {_END})
  %at = getelementptr %worker, ptr %its, i32 0, i32 6
  %id = load i64, ptr %at
  %joined = call i32 @pthread_join(i64 %id, ptr null)
  br label %next
done:
  store i64 0, ptr %count
  ret void
}}

; Give a worker a sign, and wake it where it sleeps.
define void @threads.sign(ptr %its, i32 %sign) {{
  %before = atomicrmw xchg ptr %its, i32 %sign acq_rel
  %asleep = icmp eq i32 %before, {_ASLEEP}
  br i1 %asleep, label %wake, label %done
wake:
  %woken = {futex}, ptr %its, i64 {_WAKE}, i64 1)
  br label %done
done:
  ret void
}}

; A worker counts as asleep until it looks out for the first time.
define ptr @threads.worker(ptr %its) {{
entry:
  %f1 = getelementptr %worker, ptr %its, i32 0, i32 1
  %f2 = getelementptr %worker, ptr %its, i32 0, i32 2
  %f3 = getelementptr %worker, ptr %its, i32 0, i32 3
  %f4 = getelementptr %worker, ptr %its, i32 0, i32 4
  %f5 = getelementptr %worker, ptr %its, i32 0, i32 5
  %pair = cmpxchg ptr %its, i32 {_ASLEEP}, i32 {_IDLE} monotonic monotonic
  br label %idle
idle:
  %sign = call i32 @threads.next_sign(ptr %its)
  %end = icmp eq i32 %sign, {_END}
  br i1 %end, label %leave, label %work
work:
  %inputs = load ptr, ptr %f1
  %outputs = load ptr, ptr %f2
  %arena = load ptr, ptr %f3
  %thread = load i64, ptr %f4
  %threads = load i64, ptr %f5
  call void @threads.part(ptr %inputs, ptr %outputs, ptr %arena, i64 %thread, i64 %threads)
  store atomic i32 {_IDLE}, ptr %its release, align 4
  br label %idle
leave:
  ret ptr null
}}

define i32 @threads.next_sign(ptr %its) {{
entry:
  %begin = call i64 @threads.now()
  br label %look
look:
  %turn = phi i32 [1, %entry], [%turn1, %none], [%turn1, %yield]
  %sign = load atomic i32, ptr %its acquire, align 4
  %some = icmp ne i32 %sign, {_IDLE}
  br i1 %some, label %found, label %none
none:
  {pause}
  %turn1 = add i32 %turn, 1
  %part = urem i32 %turn, {_TURNS}
  %often = icmp ne i32 %part, 0
  br i1 %often, label %look, label %yield
yield:
  %ignored = call i32 @sched_yield()
  %now = call i64 @threads.now()
  %spent = sub i64 %now, %begin
  %long = icmp ugt i64 %spent, {LOOKS_OUT}
  br i1 %long, label %tire, label %look
tire:
  %pair = cmpxchg ptr %its, i32 {_IDLE}, i32 {_ASLEEP} acquire acquire
  br label %sleep
sleep:
  %slept = {futex}, ptr %its, i64 {_WAIT}, i64 {_ASLEEP}, ptr null)
  %after = load atomic i32, ptr %its acquire, align 4
  %still = icmp eq i32 %after, {_ASLEEP}
  br i1 %still, label %sleep, label %woken
woken:
  ret i32 %after
found:
  ret i32 %sign
}}

; Nanoseconds of a clock that is never set.
define i64 @threads.now() {{
  %time = alloca {{ i64, i64 }}
  %ignored = call i32 @clock_gettime(i32 1, ptr %time)
  %rest = getelementptr {{ i64, i64 }}, ptr %time, i32 0, i32 1
  %s = load i64, ptr %time
  %ns = load i64, ptr %rest
  %whole = mul i64 %s, 1000000000
  %now = add i64 %whole, %ns
  ret i64 %now
}}

; One turn of waiting for another thread of the same call; how many there have been.
define i32 @threads.rest(i32 %turn) {{
  %long = icmp ugt i32 %turn, {_PATIENCE}
  br i1 %long, label %yield, label %pause
yield:
  %ignored = call i32 @sched_yield()
  ret i32 %turn
pause:
  {pause}
  %more = add i32 %turn, 1
  ret i32 %more
}}

; All threads of a call meet here. Their arrivals are counted, in the first word of its arena.
define void @threads.barrier(ptr %arrivals, i64 %threads) alwaysinline {{
  %alone = icmp eq i64 %threads, 1
  br i1 %alone, label %done, label %several
several:
  call void @threads.meet(ptr %arrivals, i64 %threads)
  br label %done
done:
  ret void
}}

define void @threads.meet(ptr %arrivals, i64 %threads) noinline {{
entry:
  %before = atomicrmw add ptr %arrivals, i64 1 acq_rel
  %others = urem i64 %before, %threads
  %round = sub i64 %before, %others
  %all = add i64 %round, %threads
  br label %look
look:
  %turn = phi i32 [0, %entry], [%turn1, %rest]
  %come = load atomic i64, ptr %arrivals acquire, align 8
  %met = icmp uge i64 %come, %all
  br i1 %met, label %done, label %rest
rest:
  %turn1 = call i32 @threads.rest(i32 %turn)
  br label %look
done:
  ret void
}}
"""
