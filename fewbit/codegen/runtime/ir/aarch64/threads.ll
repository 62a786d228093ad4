; Written by `make runtime` from threads.c, do not edit.

%struct.pool = type { i32, i64, i64, [40 x i8], [64 x %struct.worker] }
%struct.worker = type { i32, ptr, ptr, ptr, i64, i64, i64, [8 x i8] }
%struct.timespec = type { i64, i64 }
%struct.__sigset_t = type { [16 x i64] }

@at_end = internal global ptr @end_at_exit, section ".fini_array", align 8
@shared = internal global %struct.pool zeroinitializer, align 64
@llvm.compiler.used = appending global [1 x ptr] [ptr @at_end], section "llvm.metadata"

define internal void @end_at_exit() #0 {
entry:
  %call.i.i = tail call i32 @getpid() #7
  %shl.i = shl i32 %call.i.i, 1
  %or.i = or disjoint i32 %shl.i, 1
  %0 = load atomic i32, ptr @shared acquire, align 64
  %cmp.i = icmp eq i32 %0, %or.i
  br i1 %cmp.i, label %return, label %if.end.i

if.end.i:
  %1 = cmpxchg ptr @shared, i32 %0, i32 %or.i acquire monotonic, align 64
  %2 = extractvalue { i32, i1 } %1, 1
  %cmp3.not.i = icmp ne i32 %0, %shl.i
  %or.cond.not.i = and i1 %cmp3.not.i, %2
  br i1 %or.cond.not.i, label %end_workers.exit, label %acquire_pool.exit

acquire_pool.exit:
  br i1 %2, label %if.end, label %return

if.end:
  %.pr = load i64, ptr getelementptr inbounds nuw (i8, ptr @shared, i64 8), align 8
  %cmp.not10.i = icmp slt i64 %.pr, 1
  br i1 %cmp.not10.i, label %end_workers.exit, label %for.body.i

for.body.i:
  %i.011.i = phi i64 [ %inc.i, %set_state.exit.i ], [ 1, %if.end ]
  %arrayidx.i = getelementptr inbounds nuw [64 x %struct.worker], ptr getelementptr inbounds nuw (i8, ptr @shared, i64 64), i64 0, i64 %i.011.i
  %3 = atomicrmw xchg ptr %arrayidx.i, i32 2 acq_rel, align 64
  %cmp.i.i = icmp eq i32 %3, 3
  br i1 %cmp.i.i, label %if.then.i.i, label %set_state.exit.i

if.then.i.i:
  %call.i.i.i = tail call i64 (i64, ...) @syscall(i64 noundef 98, ptr noundef nonnull %arrayidx.i, i64 noundef 129, i64 noundef 1) #7
  br label %set_state.exit.i

set_state.exit.i:
  %id.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 48
  %4 = load i64, ptr %id.i, align 16
  %call.i.i1 = tail call i32 @pthread_join(i64 noundef %4, ptr noundef null) #7
  %inc.i = add nuw nsw i64 %i.011.i, 1
  %5 = load i64, ptr getelementptr inbounds nuw (i8, ptr @shared, i64 8), align 8
  %cmp.not.not.i = icmp slt i64 %i.011.i, %5
  br i1 %cmp.not.not.i, label %for.body.i, label %end_workers.exit

end_workers.exit:
  store i64 0, ptr getelementptr inbounds nuw (i8, ptr @shared, i64 8), align 8
  %6 = load atomic i32, ptr @shared monotonic, align 64
  %and.i = and i32 %6, -2
  store atomic i32 %and.i, ptr @shared release, align 64
  br label %return

return:
  ret void
}

define range(i32 0, 6) i32 @threads.run(ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i64 noundef %threads, i64 noundef %sure) local_unnamed_addr #0 {
entry:
  %cmp.not = icmp eq i64 %threads, 1
  br i1 %cmp.not, label %if.end7, label %if.then

if.then:
  %call.i.i = tail call i32 @getpid() #7
  %shl.i = shl i32 %call.i.i, 1
  %or.i = or disjoint i32 %shl.i, 1
  %0 = load atomic i32, ptr @shared acquire, align 64
  %cmp.i = icmp eq i32 %0, %or.i
  br i1 %cmp.i, label %if.end, label %if.end.i

if.end.i:
  %1 = cmpxchg ptr @shared, i32 %0, i32 %or.i acquire monotonic, align 64
  %2 = extractvalue { i32, i1 } %1, 1
  %cmp3.not.i = icmp ne i32 %0, %shl.i
  %or.cond.not.i = and i1 %cmp3.not.i, %2
  br i1 %or.cond.not.i, label %acquire_pool.exit.thread, label %acquire_pool.exit

acquire_pool.exit.thread:
  store i64 0, ptr getelementptr inbounds nuw (i8, ptr @shared, i64 8), align 8
  br label %if.then1

acquire_pool.exit:
  br i1 %2, label %if.then1, label %if.end

if.then1:
  %call2 = tail call fastcc i32 @run_in_pool(ptr noundef nonnull @shared, ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i64 noundef %threads, i64 noundef %sure)
  %3 = load atomic i32, ptr @shared monotonic, align 64
  %and.i = and i32 %3, -2
  store atomic i32 %and.i, ptr @shared release, align 64
  br label %return

if.end:
  %cmp3.not = icmp eq i64 %sure, 1
  br i1 %cmp3.not, label %if.end7, label %if.then4

if.then4:
  %call5 = tail call fastcc i32 @run_in_own_pool(ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i64 noundef %sure)
  br label %return

if.end7:
  tail call void @threads.part(ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i64 noundef 0, i64 noundef 1) #7
  br label %return

return:
  %retval.0 = phi i32 [ %call2, %if.then1 ], [ %call5, %if.then4 ], [ 0, %if.end7 ]
  ret i32 %retval.0
}

declare void @llvm.lifetime.start.p0(i64 immarg, ptr captures(none)) #1

define internal fastcc range(i32 0, 6) i32 @run_in_pool(ptr noundef %pool, ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i64 noundef range(i64 2, 1) %threads, i64 noundef %sure) unnamed_addr #0 {
entry:
  %time.i = alloca %struct.timespec, align 8
  %time.i.i = alloca %struct.timespec, align 8
  %mask.i.i = alloca %struct.__sigset_t, align 8
  %before.i = alloca %struct.__sigset_t, align 8
  %started.i = getelementptr inbounds nuw i8, ptr %pool, i64 8
  %0 = load i64, ptr %started.i, align 8
  %sub.i = add nsw i64 %threads, -1
  %cmp.not.i = icmp slt i64 %0, %sub.i
  br i1 %cmp.not.i, label %if.end.i, label %if.end

if.end.i:
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %before.i) #7
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %mask.i.i) #7
  %1 = getelementptr inbounds nuw i8, ptr %mask.i.i, i64 8
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(120) %1, i8 -1, i64 120, i1 false)
  store i64 -1273, ptr %mask.i.i, align 8
  %call.i.i = call i32 @pthread_sigmask(i32 noundef 2, ptr noundef nonnull %mask.i.i, ptr noundef nonnull %before.i) #7
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %mask.i.i) #7
  %workers.i = getelementptr inbounds nuw i8, ptr %pool, i64 64
  %2 = load i64, ptr %started.i, align 8
  %cmp326.i = icmp slt i64 %2, %sub.i
  br i1 %cmp326.i, label %while.body.i, label %start_workers.exit

while.body.i:
  %3 = phi i64 [ %inc.i, %cleanup.i ], [ %2, %if.end.i ]
  %add.i = add nsw i64 %3, 1
  %arrayidx.i = getelementptr inbounds [64 x %struct.worker], ptr %workers.i, i64 0, i64 %add.i
  store atomic i32 3, ptr %arrayidx.i monotonic, align 64
  %id.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 48
  %call.i22.i = call i32 @pthread_create(ptr noundef nonnull %id.i, ptr noundef null, ptr noundef nonnull @work, ptr noundef nonnull %arrayidx.i) #7
  %cmp5.not.i = icmp eq i32 %call.i22.i, 0
  br i1 %cmp5.not.i, label %cleanup.i, label %start_workers.exit

cleanup.i:
  %4 = load i64, ptr %started.i, align 8
  %inc.i = add nsw i64 %4, 1
  store i64 %inc.i, ptr %started.i, align 8
  %cmp3.i = icmp slt i64 %inc.i, %sub.i
  br i1 %cmp3.i, label %while.body.i, label %start_workers.exit

start_workers.exit:
  %call.i23.i = call i32 @pthread_sigmask(i32 noundef 2, ptr noundef nonnull %before.i, ptr noundef null) #7
  %5 = load i64, ptr %started.i, align 8
  %cmp11.i.not = icmp slt i64 %5, %sub.i
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %before.i) #7
  br i1 %cmp11.i.not, label %return, label %if.end

if.end:
  %cmp.not10.i = icmp slt i64 %sure, %threads
  br i1 %cmp.not10.i, label %for.body.lr.ph.i, label %choose_threads.exit

for.body.lr.ph.i:
  %workers.i46 = getelementptr inbounds nuw i8, ptr %pool, i64 64
  br label %for.body.i

for.body.i:
  %i.011.i = phi i64 [ %sure, %for.body.lr.ph.i ], [ %inc.i48, %for.inc.i ]
  %arrayidx.i47 = getelementptr inbounds [64 x %struct.worker], ptr %workers.i46, i64 0, i64 %i.011.i
  %6 = load atomic i32, ptr %arrayidx.i47 acquire, align 64
  %cmp1.i = icmp eq i32 %6, 3
  br i1 %cmp1.i, label %if.then.i, label %for.inc.i

if.then.i:
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %time.i.i) #7
  %call.i.i49 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %time.i.i) #7
  %7 = load i64, ptr %time.i.i, align 8
  %mul.i.i = mul i64 %7, 1000000000
  %tv_nsec.i.i = getelementptr inbounds nuw i8, ptr %time.i.i, i64 8
  %8 = load i64, ptr %tv_nsec.i.i, align 8
  %add.i.i = add i64 %mul.i.i, %8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %time.i.i) #7
  %last.i = getelementptr inbounds nuw i8, ptr %pool, i64 16
  %9 = load i64, ptr %last.i, align 16
  %sub.i50 = sub i64 %add.i.i, %9
  %cmp2.i = icmp ult i64 %sub.i50, 150000
  %cond.i = select i1 %cmp2.i, i64 %threads, i64 %i.011.i
  br label %choose_threads.exit

for.inc.i:
  %inc.i48 = add i64 %i.011.i, 1
  %exitcond.not.i = icmp eq i64 %inc.i48, %threads
  br i1 %exitcond.not.i, label %choose_threads.exit, label %for.body.i

choose_threads.exit:
  %spec.select.i = phi i64 [ %cond.i, %if.then.i ], [ %threads, %if.end ], [ %threads, %for.inc.i ]
  store i64 0, ptr %arena, align 8
  %cmp63 = icmp sgt i64 %spec.select.i, 1
  br i1 %cmp63, label %for.body.lr.ph, label %for.cond.cleanup.thread

for.cond.cleanup.thread:
  call void @threads.part(ptr noundef %inputs, ptr noundef %outputs, ptr noundef nonnull %arena, i64 noundef 0, i64 noundef %spec.select.i) #7
  br label %for.cond.cleanup9

for.body.lr.ph:
  %workers = getelementptr inbounds nuw i8, ptr %pool, i64 64
  br label %for.body

for.cond.cleanup:
  call void @threads.part(ptr noundef %inputs, ptr noundef %outputs, ptr noundef nonnull %arena, i64 noundef 0, i64 noundef %spec.select.i) #7
  %workers12 = getelementptr inbounds nuw i8, ptr %pool, i64 64
  br label %for.cond11.preheader

for.body:
  %i.064 = phi i64 [ 1, %for.body.lr.ph ], [ %inc, %set_state.exit ]
  %arrayidx = getelementptr inbounds nuw [64 x %struct.worker], ptr %workers, i64 0, i64 %i.064
  %inputs2 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 8
  store ptr %inputs, ptr %inputs2, align 8
  %outputs3 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 16
  store ptr %outputs, ptr %outputs3, align 16
  %arena4 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 24
  store ptr %arena, ptr %arena4, align 8
  %thread = getelementptr inbounds nuw i8, ptr %arrayidx, i64 32
  store i64 %i.064, ptr %thread, align 32
  %threads5 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 40
  store i64 %spec.select.i, ptr %threads5, align 8
  %10 = atomicrmw xchg ptr %arrayidx, i32 1 acq_rel, align 64
  %cmp.i = icmp eq i32 %10, 3
  br i1 %cmp.i, label %if.then.i52, label %set_state.exit

if.then.i52:
  %call.i.i53 = call i64 (i64, ...) @syscall(i64 noundef 98, ptr noundef nonnull %arrayidx, i64 noundef 129, i64 noundef 1) #7
  br label %set_state.exit

set_state.exit:
  %inc = add nuw nsw i64 %i.064, 1
  %exitcond.not = icmp eq i64 %inc, %spec.select.i
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body

for.cond11.preheader:
  %i6.068 = phi i64 [ 1, %for.cond.cleanup ], [ %inc20, %for.cond.cleanup15 ]
  %arrayidx13 = getelementptr inbounds nuw [64 x %struct.worker], ptr %workers12, i64 0, i64 %i6.068
  %11 = load atomic i32, ptr %arrayidx13 acquire, align 64
  %cmp1465 = icmp eq i32 %11, 1
  br i1 %cmp1465, label %for.body16, label %for.cond.cleanup15

for.cond.cleanup9:
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %time.i) #7
  %call.i = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %time.i) #7
  %12 = load i64, ptr %time.i, align 8
  %mul.i = mul i64 %12, 1000000000
  %tv_nsec.i = getelementptr inbounds nuw i8, ptr %time.i, i64 8
  %13 = load i64, ptr %tv_nsec.i, align 8
  %add.i54 = add i64 %mul.i, %13
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %time.i) #7
  %last = getelementptr inbounds nuw i8, ptr %pool, i64 16
  store i64 %add.i54, ptr %last, align 16
  br label %return

for.cond.cleanup15:
  %inc20 = add nuw nsw i64 %i6.068, 1
  %exitcond70.not = icmp eq i64 %inc20, %spec.select.i
  br i1 %exitcond70.not, label %for.cond.cleanup9, label %for.cond11.preheader

for.body16:
  %spins.066 = phi i32 [ %retval.0.i58, %wait_a_turn.exit ], [ 0, %for.cond11.preheader ]
  %cmp.i55 = icmp ugt i32 %spins.066, 200
  br i1 %cmp.i55, label %if.then.i59, label %if.end.i56

if.then.i59:
  %call.i.i60 = call i32 @sched_yield() #7
  br label %wait_a_turn.exit

if.end.i56:
  call void @llvm.aarch64.hint(i32 1)
  %add.i57 = add nuw nsw i32 %spins.066, 1
  br label %wait_a_turn.exit

wait_a_turn.exit:
  %retval.0.i58 = phi i32 [ %spins.066, %if.then.i59 ], [ %add.i57, %if.end.i56 ]
  %14 = load atomic i32, ptr %arrayidx13 acquire, align 64
  %cmp14 = icmp eq i32 %14, 1
  br i1 %cmp14, label %for.body16, label %for.cond.cleanup15

return:
  %retval.0 = phi i32 [ 0, %for.cond.cleanup9 ], [ 5, %start_workers.exit ]
  ret i32 %retval.0
}

declare void @llvm.lifetime.end.p0(i64 immarg, ptr captures(none)) #1

define internal fastcc range(i32 0, 6) i32 @run_in_own_pool(ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i64 noundef range(i64 2, 1) %threads) unnamed_addr #2 {
entry:
  %own = alloca %struct.pool, align 64
  call void @llvm.lifetime.start.p0(i64 4160, ptr nonnull %own) #7
  %started = getelementptr inbounds nuw i8, ptr %own, i64 8
  store i64 0, ptr %started, align 8
  %call = call fastcc i32 @run_in_pool(ptr noundef nonnull %own, ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i64 noundef %threads, i64 noundef %threads)
  %0 = load i64, ptr %started, align 8
  %cmp.not10.i = icmp slt i64 %0, 1
  br i1 %cmp.not10.i, label %end_workers.exit, label %for.body.lr.ph.i

for.body.lr.ph.i:
  %workers.i = getelementptr inbounds nuw i8, ptr %own, i64 64
  br label %for.body.i

for.body.i:
  %i.011.i = phi i64 [ 1, %for.body.lr.ph.i ], [ %inc.i, %set_state.exit.i ]
  %arrayidx.i = getelementptr inbounds nuw [64 x %struct.worker], ptr %workers.i, i64 0, i64 %i.011.i
  %1 = atomicrmw xchg ptr %arrayidx.i, i32 2 acq_rel, align 64
  %cmp.i.i = icmp eq i32 %1, 3
  br i1 %cmp.i.i, label %if.then.i.i, label %set_state.exit.i

if.then.i.i:
  %call.i.i.i = call i64 (i64, ...) @syscall(i64 noundef 98, ptr noundef nonnull %arrayidx.i, i64 noundef 129, i64 noundef 1) #7
  br label %set_state.exit.i

set_state.exit.i:
  %id.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 48
  %2 = load i64, ptr %id.i, align 16
  %call.i.i = call i32 @pthread_join(i64 noundef %2, ptr noundef null) #7
  %inc.i = add nuw nsw i64 %i.011.i, 1
  %3 = load i64, ptr %started, align 8
  %cmp.not.not.i = icmp slt i64 %i.011.i, %3
  br i1 %cmp.not.not.i, label %for.body.i, label %end_workers.exit

end_workers.exit:
  call void @llvm.lifetime.end.p0(i64 4160, ptr nonnull %own) #7
  ret i32 %call
}

declare void @threads.part(ptr noundef, ptr noundef, ptr noundef, i64 noundef, i64 noundef) local_unnamed_addr

define void @threads.meet(ptr noundef captures(none) %arrivals, i64 noundef %threads) local_unnamed_addr #2 {
entry:
  %0 = atomicrmw add ptr %arrivals, i64 1 acq_rel, align 8
  %rem = urem i64 %0, %threads
  %sub = add i64 %0, %threads
  %add = sub i64 %sub, %rem
  %1 = load atomic i64, ptr %arrivals acquire, align 8
  %cmp5 = icmp slt i64 %1, %add
  br i1 %cmp5, label %for.body, label %for.cond.cleanup

for.cond.cleanup:
  ret void

for.body:
  %spins.06 = phi i32 [ %retval.0.i, %wait_a_turn.exit ], [ 0, %entry ]
  %cmp.i = icmp ugt i32 %spins.06, 200
  br i1 %cmp.i, label %if.then.i, label %if.end.i

if.then.i:
  %call.i.i = tail call i32 @sched_yield() #7
  br label %wait_a_turn.exit

if.end.i:
  tail call void @llvm.aarch64.hint(i32 1)
  %add.i = add nuw nsw i32 %spins.06, 1
  br label %wait_a_turn.exit

wait_a_turn.exit:
  %retval.0.i = phi i32 [ %spins.06, %if.then.i ], [ %add.i, %if.end.i ]
  %2 = load atomic i64, ptr %arrivals acquire, align 8
  %cmp = icmp slt i64 %2, %add
  br i1 %cmp, label %for.body, label %for.cond.cleanup
}

define void @threads.barrier(ptr noundef captures(none) %arrivals, i64 noundef %threads) local_unnamed_addr #4 {
entry:
  %cmp.not = icmp eq i64 %threads, 1
  br i1 %cmp.not, label %if.end, label %if.then

if.then:
  tail call void @threads.meet(ptr noundef %arrivals, i64 noundef %threads)
  br label %if.end

if.end:
  ret void
}

declare i64 @syscall(i64 noundef, ...) local_unnamed_addr #0

declare i32 @pthread_join(i64 noundef, ptr noundef) local_unnamed_addr

declare i32 @getpid() local_unnamed_addr #0

define internal noalias noundef ptr @work(ptr noundef %given) #0 {
entry:
  %time.i30.i = alloca %struct.timespec, align 8
  %time.i.i = alloca %struct.timespec, align 8
  %0 = cmpxchg ptr %given, i32 3, i32 0 monotonic monotonic, align 64
  %tv_nsec.i.i = getelementptr inbounds nuw i8, ptr %time.i.i, i64 8
  %tv_nsec.i33.i = getelementptr inbounds nuw i8, ptr %time.i30.i, i64 8
  %inputs = getelementptr inbounds nuw i8, ptr %given, i64 8
  %outputs = getelementptr inbounds nuw i8, ptr %given, i64 16
  %arena = getelementptr inbounds nuw i8, ptr %given, i64 24
  %thread = getelementptr inbounds nuw i8, ptr %given, i64 32
  %threads = getelementptr inbounds nuw i8, ptr %given, i64 40
  br label %while.cond

while.cond:
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %time.i.i) #7
  %call.i.i = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %time.i.i) #7
  %1 = load i64, ptr %time.i.i, align 8
  %2 = load i64, ptr %tv_nsec.i.i, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %time.i.i) #7
  %3 = load atomic i32, ptr %given acquire, align 64
  %cmp.not46.i = icmp eq i32 %3, 0
  br i1 %cmp.not46.i, label %if.end.i, label %await_call.exit

if.end.i:
  %spins.047.i = phi i32 [ %inc.i, %for.inc.i ], [ 1, %while.cond ]
  call void @llvm.aarch64.hint(i32 1)
  %rem.i = and i32 %spins.047.i, 255
  %cmp2.not.i = icmp eq i32 %rem.i, 0
  br i1 %cmp2.not.i, label %if.end4.i, label %for.inc.i

if.end4.i:
  %call.i29.i = call i32 @sched_yield() #7
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %time.i30.i) #7
  %call.i31.i = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %time.i30.i) #7
  %4 = load i64, ptr %time.i30.i, align 8
  %5 = load i64, ptr %tv_nsec.i33.i, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %time.i30.i) #7
  %reass.add.i = sub i64 %4, %1
  %reass.mul.i = mul i64 %reass.add.i, 1000000000
  %add.i34.i = sub i64 %5, %2
  %sub.i = add i64 %add.i34.i, %reass.mul.i
  %cmp6.i = icmp ugt i64 %sub.i, 150000
  br i1 %cmp6.i, label %for.end.i, label %for.inc.i

for.inc.i:
  %inc.i = add i32 %spins.047.i, 1
  %6 = load atomic i32, ptr %given acquire, align 64
  %cmp.not.i = icmp eq i32 %6, 0
  br i1 %cmp.not.i, label %if.end.i, label %await_call.exit

for.end.i:
  %7 = cmpxchg ptr %given, i32 0, i32 3 acquire acquire, align 64
  br label %do.body.i

do.body.i:
  %call.i35.i = call i64 (i64, ...) @syscall(i64 noundef 98, ptr noundef nonnull %given, i64 noundef 128, i64 noundef 3, ptr noundef null) #7
  %8 = load atomic i32, ptr %given acquire, align 64
  %cmp16.i = icmp eq i32 %8, 3
  br i1 %cmp16.i, label %do.body.i, label %await_call.exit

await_call.exit:
  %retval.2.i = phi i32 [ %3, %while.cond ], [ %8, %do.body.i ], [ %6, %for.inc.i ]
  %cmp.not = icmp eq i32 %retval.2.i, 2
  br i1 %cmp.not, label %while.end, label %while.body

while.body:
  %9 = load ptr, ptr %inputs, align 8
  %10 = load ptr, ptr %outputs, align 16
  %11 = load ptr, ptr %arena, align 8
  %12 = load i64, ptr %thread, align 32
  %13 = load i64, ptr %threads, align 8
  call void @threads.part(ptr noundef %9, ptr noundef %10, ptr noundef %11, i64 noundef %12, i64 noundef %13) #7
  store atomic i32 0, ptr %given release, align 64
  br label %while.cond

while.end:
  ret ptr null
}

declare void @llvm.memset.p0.i64(ptr writeonly captures(none), i8, i64, i1 immarg) #5

declare i32 @pthread_sigmask(i32 noundef, ptr noundef, ptr noundef) local_unnamed_addr #0

declare i32 @pthread_create(ptr noundef, ptr noundef, ptr noundef, ptr noundef) local_unnamed_addr #0

declare void @llvm.aarch64.hint(i32) #6

declare i32 @sched_yield() local_unnamed_addr #0

declare i32 @clock_gettime(i32 noundef, ptr noundef) local_unnamed_addr #0

attributes #0 = { nounwind }
attributes #1 = { nounwind }
attributes #2 = { noinline nounwind }

attributes #4 = { alwaysinline nounwind }
attributes #5 = { nounwind }
attributes #6 = { nounwind }
attributes #7 = { nounwind }
