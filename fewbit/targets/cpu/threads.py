"""Threads of a call, in LLVM IR: they start and end with it, and wait for one another in between.

Nothing is allocated: what each is given lies on the caller's stack, and what they wait at in the
first bytes of the arena. Waiting is by turns at a counter, first busy, then giving way: between
two loop nests a thread has no time to sleep. Names have a dot, as no function of C has.
"""

from __future__ import annotations


def threads_ir(max_threads: int, start_error: int) -> str:
    """`threads.run`, which calls `threads.part` in each, and `threads.barrier`, where all meet."""
    return f"""
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @sched_yield()

; The first word counts threads that have come, the second counts how often all have. The third
; is set where a thread could not be started, and nobody waits any more.
define void @threads.barrier(ptr %state, i64 %threads) alwaysinline {{
  %alone = icmp eq i64 %threads, 1
  br i1 %alone, label %done, label %wait
wait:
  call void @threads.wait(ptr %state, i64 %threads)
  br label %done
done:
  ret void
}}

define void @threads.wait(ptr %state, i64 %threads) noinline {{
entry:
  %rounds = getelementptr i32, ptr %state, i64 1
  %round = load atomic i32, ptr %rounds acquire, align 4
  %before = atomicrmw add ptr %state, i32 1 acq_rel
  %come = add i32 %before, 1
  %wide = zext i32 %come to i64
  %all = icmp eq i64 %wide, %threads
  br i1 %all, label %last, label %spin
last:
  store atomic i32 0, ptr %state release, align 4
  %next = add i32 %round, 1
  store atomic i32 %next, ptr %rounds release, align 4
  ret void
spin:
  %turns = phi i32 [0, %entry], [%more, %again]
  %now = load atomic i32, ptr %rounds acquire, align 4
  %go = icmp ne i32 %now, %round
  br i1 %go, label %passed, label %again
again:
  %more = add i32 %turns, 1
  %long = icmp ugt i32 %turns, 2000
  br i1 %long, label %yield, label %spin
yield:
  %ignored = call i32 @sched_yield()
  br label %reset
reset:
  %now2 = load atomic i32, ptr %rounds acquire, align 4
  %go2 = icmp ne i32 %now2, %round
  br i1 %go2, label %passed, label %yield
passed:
  ret void
}}

define i32 @threads.run(ptr %inputs, ptr %outputs, ptr %arena, i64 %threads) {{
entry:
  %calls = alloca [{max_threads} x %call]
  %ids = alloca [{max_threads} x i64]
  store i64 0, ptr %arena
  call void @threads.open_gate(ptr %arena, i32 0)
  br label %fill
fill:
  %i = phi i64 [0, %entry], [%i1, %fill]
  %at = getelementptr [{max_threads} x %call], ptr %calls, i64 0, i64 %i
  %f1 = getelementptr %call, ptr %at, i32 0, i32 1
  %f2 = getelementptr %call, ptr %at, i32 0, i32 2
  %f3 = getelementptr %call, ptr %at, i32 0, i32 3
  %f4 = getelementptr %call, ptr %at, i32 0, i32 4
  store ptr %inputs, ptr %at
  store ptr %outputs, ptr %f1
  store ptr %arena, ptr %f2
  store i64 %i, ptr %f3
  store i64 %threads, ptr %f4
  %i1 = add i64 %i, 1
  %filled = icmp eq i64 %i1, %threads
  br i1 %filled, label %start, label %fill
start:
  %s = phi i64 [1, %fill], [%s1, %started]
  %all = icmp eq i64 %s, %threads
  br i1 %all, label %work, label %create
create:
  %id = getelementptr [{max_threads} x i64], ptr %ids, i64 0, i64 %s
  %its = getelementptr [{max_threads} x %call], ptr %calls, i64 0, i64 %s
  %error = call i32 @pthread_create(ptr %id, ptr null, ptr @threads.gate, ptr %its)
  %failed = icmp ne i32 %error, 0
  br i1 %failed, label %abandon, label %started
started:
  %s1 = add i64 %s, 1
  br label %start
abandon:
  call void @threads.open_gate(ptr %arena, i32 2)
  br label %join
work:
  call void @threads.open_gate(ptr %arena, i32 1)
  %first = getelementptr [{max_threads} x %call], ptr %calls, i64 0, i64 0
  %none = call ptr @threads.part(ptr %first)
  br label %join
join:
  %end = phi i64 [%s, %abandon], [%threads, %work]
  %code = phi i32 [{start_error}, %abandon], [0, %work]
  br label %next
next:
  %j = phi i64 [1, %join], [%j1, %wait]
  %joined = icmp uge i64 %j, %end
  br i1 %joined, label %done, label %wait
wait:
  %jd = getelementptr [{max_threads} x i64], ptr %ids, i64 0, i64 %j
  %thread = load i64, ptr %jd
  %r = call i32 @pthread_join(i64 %thread, ptr null)
  %j1 = add i64 %j, 1
  br label %next
done:
  ret i32 %code
}}

; A thread begins when all have been started: 1 is written then, or 2 where one could not be.
define void @threads.open_gate(ptr %arena, i32 %sign) {{
  %at = getelementptr i32, ptr %arena, i64 2
  store atomic i32 %sign, ptr %at release, align 4
  ret void
}}

define ptr @threads.gate(ptr %its) {{
  %field = getelementptr %call, ptr %its, i32 0, i32 2
  %arena = load ptr, ptr %field
  %at = getelementptr i32, ptr %arena, i64 2
  br label %look
look:
  %sign = load atomic i32, ptr %at acquire, align 4
  switch i32 %sign, label %yield [i32 1, label %go i32 2, label %leave]
yield:
  %ignored = call i32 @sched_yield()
  br label %look
go:
  %r = call ptr @threads.part(ptr %its)
  ret ptr %r
leave:
  ret ptr null
}}
"""
