; Written by `make runtime` from threads.c, do not edit.

%struct.pool = type { i32, i64, i64, i64, i64, i64, [16 x i8], [64 x %struct.worker] }
%struct.worker = type { i32, ptr, ptr, ptr, i64, i64, i64, i64 }
%struct.timespec = type { i64, i64 }
%struct.__sigset_t = type { [16 x i64] }

@at_end = internal global ptr @end_at_exit, section ".fini_array", align 8
@shared = internal global %struct.pool zeroinitializer, align 64
@llvm.compiler.used = appending global [1 x ptr] [ptr @at_end], section "llvm.metadata"

define internal void @end_at_exit() #0 {
entry:
  %call.i.i = tail call i32 @getpid() #8
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
  %call.i.i.i = tail call i64 (i64, ...) @syscall(i64 noundef 98, ptr noundef nonnull %arrayidx.i, i64 noundef 129, i64 noundef 1) #8
  br label %set_state.exit.i

set_state.exit.i:
  %id.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 48
  %4 = load i64, ptr %id.i, align 16
  %call.i.i1 = tail call i32 @pthread_join(i64 noundef %4, ptr noundef null) #8
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
  %time.i.i = alloca %struct.timespec, align 8
  %cmp.not = icmp eq i64 %threads, 1
  br i1 %cmp.not, label %if.end10, label %if.then

if.then:
  %call.i.i = tail call i32 @getpid() #8
  %shl.i = shl i32 %call.i.i, 1
  %or.i = or disjoint i32 %shl.i, 1
  %0 = load atomic i32, ptr @shared acquire, align 64
  %cmp.i = icmp eq i32 %0, %or.i
  br i1 %cmp.i, label %if.end5, label %if.end.i

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
  br i1 %2, label %if.then1, label %if.end5

if.then1:
  %3 = load i64, ptr getelementptr inbounds nuw (i8, ptr @shared, i64 32), align 32
  %cmp2 = icmp sgt i64 %3, 0
  br i1 %cmp2, label %if.then3, label %if.else

if.then3:
  %dec.i = add nsw i64 %3, -1
  store i64 %dec.i, ptr getelementptr inbounds nuw (i8, ptr @shared, i64 32), align 32
  tail call void @threads.part(ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i64 noundef 0, i64 noundef 1) #8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %time.i.i) #8
  %call.i.i23 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %time.i.i) #8
  %4 = load i64, ptr %time.i.i, align 8
  %mul.i.i = mul i64 %4, 1000000000
  %tv_nsec.i.i = getelementptr inbounds nuw i8, ptr %time.i.i, i64 8
  %5 = load i64, ptr %tv_nsec.i.i, align 8
  %add.i.i = add i64 %mul.i.i, %5
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %time.i.i) #8
  store i64 %add.i.i, ptr getelementptr inbounds nuw (i8, ptr @shared, i64 16), align 16
  br label %if.end

if.else:
  %call4 = tail call fastcc i32 @run_in_pool(ptr noundef nonnull @shared, ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i64 noundef %threads, i64 noundef %sure)
  br label %if.end

if.end:
  %code.0 = phi i32 [ 0, %if.then3 ], [ %call4, %if.else ]
  %6 = load atomic i32, ptr @shared monotonic, align 64
  %and.i = and i32 %6, -2
  store atomic i32 %and.i, ptr @shared release, align 64
  br label %return

if.end5:
  %cmp6.not = icmp eq i64 %sure, 1
  br i1 %cmp6.not, label %if.end10, label %if.then7

if.then7:
  %call8 = tail call fastcc i32 @run_in_own_pool(ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i64 noundef %sure)
  br label %return

if.end10:
  tail call void @threads.part(ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i64 noundef 0, i64 noundef 1) #8
  br label %return

return:
  %retval.0 = phi i32 [ %code.0, %if.end ], [ %call8, %if.then7 ], [ 0, %if.end10 ]
  ret i32 %retval.0
}

declare void @llvm.lifetime.start.p0(i64 immarg, ptr captures(none)) #1

define internal fastcc range(i32 0, 6) i32 @run_in_pool(ptr noundef %pool, ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i64 noundef range(i64 2, 1) %threads, i64 noundef %sure) unnamed_addr #0 {
entry:
  %time.i.i115 = alloca %struct.timespec, align 8
  %time.i104 = alloca %struct.timespec, align 8
  %time.i96 = alloca %struct.timespec, align 8
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
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %before.i) #8
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %mask.i.i) #8
  %1 = getelementptr inbounds nuw i8, ptr %mask.i.i, i64 8
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(120) %1, i8 -1, i64 120, i1 false)
  store i64 -1273, ptr %mask.i.i, align 8
  %call.i.i = call i32 @pthread_sigmask(i32 noundef 2, ptr noundef nonnull %mask.i.i, ptr noundef nonnull %before.i) #8
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %mask.i.i) #8
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
  %call.i22.i = call i32 @pthread_create(ptr noundef nonnull %id.i, ptr noundef null, ptr noundef nonnull @work, ptr noundef nonnull %arrayidx.i) #8
  %cmp5.not.i = icmp eq i32 %call.i22.i, 0
  br i1 %cmp5.not.i, label %cleanup.i, label %start_workers.exit

cleanup.i:
  %4 = load i64, ptr %started.i, align 8
  %inc.i = add nsw i64 %4, 1
  store i64 %inc.i, ptr %started.i, align 8
  %cmp3.i = icmp slt i64 %inc.i, %sub.i
  br i1 %cmp3.i, label %while.body.i, label %start_workers.exit

start_workers.exit:
  %call.i23.i = call i32 @pthread_sigmask(i32 noundef 2, ptr noundef nonnull %before.i, ptr noundef null) #8
  %5 = load i64, ptr %started.i, align 8
  %cmp11.i.not = icmp slt i64 %5, %sub.i
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %before.i) #8
  br i1 %cmp11.i.not, label %return, label %if.end

if.end:
  %cmp.not10.i = icmp slt i64 %sure, %threads
  br i1 %cmp.not10.i, label %for.body.lr.ph.i, label %choose_threads.exit

for.body.lr.ph.i:
  %workers.i90 = getelementptr inbounds nuw i8, ptr %pool, i64 64
  br label %for.body.i

for.body.i:
  %i.011.i = phi i64 [ %sure, %for.body.lr.ph.i ], [ %inc.i92, %for.inc.i ]
  %arrayidx.i91 = getelementptr inbounds [64 x %struct.worker], ptr %workers.i90, i64 0, i64 %i.011.i
  %6 = load atomic i32, ptr %arrayidx.i91 acquire, align 64
  %cmp1.i = icmp eq i32 %6, 3
  br i1 %cmp1.i, label %if.then.i, label %for.inc.i

if.then.i:
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %time.i.i) #8
  %call.i.i93 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %time.i.i) #8
  %7 = load i64, ptr %time.i.i, align 8
  %mul.i.i = mul i64 %7, 1000000000
  %tv_nsec.i.i = getelementptr inbounds nuw i8, ptr %time.i.i, i64 8
  %8 = load i64, ptr %tv_nsec.i.i, align 8
  %add.i.i = add i64 %mul.i.i, %8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %time.i.i) #8
  %last.i = getelementptr inbounds nuw i8, ptr %pool, i64 16
  %9 = load i64, ptr %last.i, align 16
  %sub.i94 = sub i64 %add.i.i, %9
  %cmp2.i = icmp ult i64 %sub.i94, 150000
  %cond.i = select i1 %cmp2.i, i64 %threads, i64 %i.011.i
  br label %choose_threads.exit

for.inc.i:
  %inc.i92 = add i64 %i.011.i, 1
  %exitcond.not.i = icmp eq i64 %inc.i92, %threads
  br i1 %exitcond.not.i, label %choose_threads.exit, label %for.body.i

choose_threads.exit:
  %spec.select.i = phi i64 [ %cond.i, %if.then.i ], [ %threads, %if.end ], [ %threads, %for.inc.i ]
  %took = getelementptr inbounds nuw i8, ptr %pool, i64 24
  %10 = load i64, ptr %took, align 8
  %cmp = icmp ugt i64 %10, 400000
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %time.i) #8
  %call.i = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %time.i) #8
  %11 = load i64, ptr %time.i, align 8
  %tv_nsec.i = getelementptr inbounds nuw i8, ptr %time.i, i64 8
  %12 = load i64, ptr %tv_nsec.i, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %time.i) #8
  br i1 %cmp, label %cond.true, label %cond.end

cond.true:
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %time.i96) #8
  %call.i97 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %time.i96) #8
  %13 = load i64, ptr %time.i96, align 8
  %mul.i98.neg = mul i64 %13, -1000000000
  %tv_nsec.i99 = getelementptr inbounds nuw i8, ptr %time.i96, i64 8
  %14 = load i64, ptr %tv_nsec.i99, align 8
  %add.i100.neg = sub i64 %mul.i98.neg, %14
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %time.i96) #8
  br label %cond.end

cond.end:
  %cond.neg140 = phi i64 [ %add.i100.neg, %cond.true ], [ 0, %choose_threads.exit ]
  store i64 0, ptr %arena, align 8
  %cmp4131 = icmp sgt i64 %spec.select.i, 1
  br i1 %cmp4131, label %for.body.lr.ph, label %for.cond.cleanup.thread

for.cond.cleanup.thread:
  call void @threads.part(ptr noundef %inputs, ptr noundef %outputs, ptr noundef nonnull %arena, i64 noundef 0, i64 noundef %spec.select.i) #8
  br label %for.cond.cleanup12

for.body.lr.ph:
  %workers = getelementptr inbounds nuw i8, ptr %pool, i64 64
  br label %for.body

for.cond.cleanup:
  call void @threads.part(ptr noundef %inputs, ptr noundef %outputs, ptr noundef nonnull %arena, i64 noundef 0, i64 noundef %spec.select.i) #8
  %workers15 = getelementptr inbounds nuw i8, ptr %pool, i64 64
  br label %for.cond14.preheader

for.body:
  %i.0132 = phi i64 [ 1, %for.body.lr.ph ], [ %inc, %set_state.exit ]
  %arrayidx = getelementptr inbounds nuw [64 x %struct.worker], ptr %workers, i64 0, i64 %i.0132
  %inputs5 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 8
  store ptr %inputs, ptr %inputs5, align 8
  %outputs6 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 16
  store ptr %outputs, ptr %outputs6, align 16
  %arena7 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 24
  store ptr %arena, ptr %arena7, align 8
  %thread = getelementptr inbounds nuw i8, ptr %arrayidx, i64 32
  store i64 %i.0132, ptr %thread, align 32
  %threads8 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 40
  store i64 %spec.select.i, ptr %threads8, align 8
  %15 = atomicrmw xchg ptr %arrayidx, i32 1 acq_rel, align 64
  %cmp.i = icmp eq i32 %15, 3
  br i1 %cmp.i, label %if.then.i102, label %set_state.exit

if.then.i102:
  %call.i.i103 = call i64 (i64, ...) @syscall(i64 noundef 98, ptr noundef nonnull %arrayidx, i64 noundef 129, i64 noundef 1) #8
  br label %set_state.exit

set_state.exit:
  %inc = add nuw nsw i64 %i.0132, 1
  %exitcond.not = icmp eq i64 %inc, %spec.select.i
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body

for.cond14.preheader:
  %i9.0136 = phi i64 [ 1, %for.cond.cleanup ], [ %inc23, %for.cond.cleanup18 ]
  %arrayidx16 = getelementptr inbounds nuw [64 x %struct.worker], ptr %workers15, i64 0, i64 %i9.0136
  %16 = load atomic i32, ptr %arrayidx16 acquire, align 64
  %cmp17133 = icmp eq i32 %16, 1
  br i1 %cmp17133, label %for.body19, label %for.cond.cleanup18

for.cond.cleanup12:
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %time.i104) #8
  %call.i105 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %time.i104) #8
  %17 = load i64, ptr %time.i104, align 8
  %mul.i106 = mul i64 %17, 1000000000
  %tv_nsec.i107 = getelementptr inbounds nuw i8, ptr %time.i104, i64 8
  %18 = load i64, ptr %tv_nsec.i107, align 8
  %add.i108 = add i64 %mul.i106, %18
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %time.i104) #8
  %last = getelementptr inbounds nuw i8, ptr %pool, i64 16
  store i64 %add.i108, ptr %last, align 16
  %mul.i.neg = mul i64 %11, -1000000000
  %add.i95.neg = sub i64 %mul.i.neg, %12
  %sub = add i64 %add.i95.neg, %add.i108
  store i64 %sub, ptr %took, align 8
  br i1 %cmp, label %cond.true30, label %cond.end34

for.cond.cleanup18:
  %inc23 = add nuw nsw i64 %i9.0136, 1
  %exitcond142.not = icmp eq i64 %inc23, %spec.select.i
  br i1 %exitcond142.not, label %for.cond.cleanup12, label %for.cond14.preheader

for.body19:
  %spins.0134 = phi i32 [ %retval.0.i112, %wait_a_turn.exit ], [ 0, %for.cond14.preheader ]
  %cmp.i109 = icmp ugt i32 %spins.0134, 200
  br i1 %cmp.i109, label %if.then.i113, label %if.end.i110

if.then.i113:
  %call.i.i114 = call i32 @sched_yield() #8
  br label %wait_a_turn.exit

if.end.i110:
  call void @llvm.aarch64.hint(i32 1)
  %add.i111 = add nuw nsw i32 %spins.0134, 1
  br label %wait_a_turn.exit

wait_a_turn.exit:
  %retval.0.i112 = phi i32 [ %spins.0134, %if.then.i113 ], [ %add.i111, %if.end.i110 ]
  %19 = load atomic i32, ptr %arrayidx16 acquire, align 64
  %cmp17 = icmp eq i32 %19, 1
  br i1 %cmp17, label %for.body19, label %for.cond.cleanup18

cond.true30:
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %time.i.i115) #8
  %call.i.i117 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %time.i.i115) #8
  %20 = load i64, ptr %time.i.i115, align 8
  %mul.i.i118 = mul i64 %20, 1000000000
  %tv_nsec.i.i119 = getelementptr inbounds nuw i8, ptr %time.i.i115, i64 8
  %21 = load i64, ptr %tv_nsec.i.i119, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %time.i.i115) #8
  %add.i.i120 = add i64 %21, %cond.neg140
  %sub2.i = add i64 %add.i.i120, %mul.i.i118
  %cond.i121 = call i64 @llvm.usub.sat.i64(i64 %sub, i64 %sub2.i)
  br label %cond.end34

cond.end34:
  %cond35 = phi i64 [ %cond.i121, %cond.true30 ], [ 0, %for.cond.cleanup12 ]
  br i1 %cmp4131, label %for.body40.lr.ph, label %for.cond.cleanup39

for.body40.lr.ph:
  %22 = getelementptr i8, ptr %pool, i64 120
  %23 = add nsw i64 %spec.select.i, -1
  %min.iters.check = icmp eq i64 %spec.select.i, 2
  br i1 %min.iters.check, label %for.body40.preheader, label %vector.ph

vector.ph:
  %n.vec = and i64 %23, -2
  %24 = or i64 %23, 1
  %invariant.gep = getelementptr i8, ptr %22, i64 64
  %invariant.gep151 = getelementptr i8, ptr %22, i64 128
  br label %vector.body

vector.body:
  %index = phi i64 [ 0, %vector.ph ], [ %index.next, %vector.body ]
  %vec.phi = phi i64 [ %cond35, %vector.ph ], [ %28, %vector.body ]
  %vec.phi146 = phi i64 [ %cond35, %vector.ph ], [ %29, %vector.body ]
  %offset.idx = shl i64 %index, 6
  %25 = shl i64 %index, 6
  %gep = getelementptr i8, ptr %invariant.gep, i64 %offset.idx
  %gep152 = getelementptr i8, ptr %invariant.gep151, i64 %25
  %26 = load i64, ptr %gep, align 8
  %27 = load i64, ptr %gep152, align 8
  %28 = call i64 @llvm.umax.i64(i64 %26, i64 %vec.phi)
  %29 = call i64 @llvm.umax.i64(i64 %27, i64 %vec.phi146)
  %index.next = add nuw i64 %index, 2
  %30 = icmp eq i64 %index.next, %n.vec
  br i1 %30, label %middle.block, label %vector.body

middle.block:
  %rdx.minmax = call i64 @llvm.umax.i64(i64 %28, i64 %29)
  %cmp.n = icmp eq i64 %23, %n.vec
  br i1 %cmp.n, label %for.cond.cleanup39, label %for.body40.preheader

for.body40.preheader:
  %i36.0139.ph = phi i64 [ 1, %for.body40.lr.ph ], [ %24, %middle.block ]
  %missed.0138.ph = phi i64 [ %cond35, %for.body40.lr.ph ], [ %rdx.minmax, %middle.block ]
  br label %for.body40

for.cond.cleanup39:
  %missed.0.lcssa = phi i64 [ %cond35, %cond.end34 ], [ %rdx.minmax, %middle.block ], [ %spec.select, %for.body40 ]
  %31 = load i64, ptr %took, align 8
  %div9.i = lshr i64 %31, 2
  %cmp.not.i122 = icmp ugt i64 %missed.0.lcssa, %div9.i
  %alone_before1.i = getelementptr inbounds nuw i8, ptr %pool, i64 40
  br i1 %cmp.not.i122, label %if.end.i124, label %if.then.i123

if.then.i123:
  store i64 0, ptr %alone_before1.i, align 8
  br label %return

if.end.i124:
  %32 = load i64, ptr %alone_before1.i, align 8
  %mul.i125 = shl nsw i64 %32, 1
  %add.i126 = or disjoint i64 %mul.i125, 1
  %cond.i127 = call i64 @llvm.smin.i64(i64 %add.i126, i64 64)
  store i64 %cond.i127, ptr %alone_before1.i, align 8
  %alone.i = getelementptr inbounds nuw i8, ptr %pool, i64 32
  store i64 %cond.i127, ptr %alone.i, align 32
  br label %return

for.body40:
  %i36.0139 = phi i64 [ %inc51, %for.body40 ], [ %i36.0139.ph, %for.body40.preheader ]
  %missed.0138 = phi i64 [ %spec.select, %for.body40 ], [ %missed.0138.ph, %for.body40.preheader ]
  %missed43.idx = shl nuw nsw i64 %i36.0139, 6
  %missed43 = getelementptr i8, ptr %22, i64 %missed43.idx
  %33 = load i64, ptr %missed43, align 8
  %spec.select = call i64 @llvm.umax.i64(i64 %33, i64 %missed.0138)
  %inc51 = add nuw nsw i64 %i36.0139, 1
  %exitcond143.not = icmp eq i64 %inc51, %spec.select.i
  br i1 %exitcond143.not, label %for.cond.cleanup39, label %for.body40

return:
  %retval.0 = phi i32 [ 5, %start_workers.exit ], [ 0, %if.then.i123 ], [ 0, %if.end.i124 ]
  ret i32 %retval.0
}

declare void @llvm.lifetime.end.p0(i64 immarg, ptr captures(none)) #1

define internal fastcc range(i32 0, 6) i32 @run_in_own_pool(ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i64 noundef range(i64 2, 1) %threads) unnamed_addr #2 {
entry:
  %own = alloca %struct.pool, align 64
  call void @llvm.lifetime.start.p0(i64 4160, ptr nonnull %own) #8
  %started = getelementptr inbounds nuw i8, ptr %own, i64 8
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(40) %started, i8 0, i64 40, i1 false)
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
  %call.i.i.i = call i64 (i64, ...) @syscall(i64 noundef 98, ptr noundef nonnull %arrayidx.i, i64 noundef 129, i64 noundef 1) #8
  br label %set_state.exit.i

set_state.exit.i:
  %id.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 48
  %2 = load i64, ptr %id.i, align 16
  %call.i.i = call i32 @pthread_join(i64 noundef %2, ptr noundef null) #8
  %inc.i = add nuw nsw i64 %i.011.i, 1
  %3 = load i64, ptr %started, align 8
  %cmp.not.not.i = icmp slt i64 %i.011.i, %3
  br i1 %cmp.not.not.i, label %for.body.i, label %end_workers.exit

end_workers.exit:
  call void @llvm.lifetime.end.p0(i64 4160, ptr nonnull %own) #8
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
  %call.i.i = tail call i32 @sched_yield() #8
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

declare i32 @clock_gettime(i32 noundef, ptr noundef) local_unnamed_addr #0

define internal noalias noundef ptr @work(ptr noundef %given) #0 {
entry:
  %time.i.i43 = alloca %struct.timespec, align 8
  %time.i38 = alloca %struct.timespec, align 8
  %time.i2.i26 = alloca %struct.timespec, align 8
  %time.i.i27 = alloca %struct.timespec, align 8
  %time.i = alloca %struct.timespec, align 8
  %time.i30.i = alloca %struct.timespec, align 8
  %time.i.i23 = alloca %struct.timespec, align 8
  %time.i2.i = alloca %struct.timespec, align 8
  %time.i.i = alloca %struct.timespec, align 8
  %0 = cmpxchg ptr %given, i32 3, i32 0 monotonic monotonic, align 64
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %time.i.i) #8
  %call.i.i = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %time.i.i) #8
  %1 = load i64, ptr %time.i.i, align 8
  %mul.i.i = mul i64 %1, 1000000000
  %tv_nsec.i.i = getelementptr inbounds nuw i8, ptr %time.i.i, i64 8
  %2 = load i64, ptr %tv_nsec.i.i, align 8
  %add.i.i = add i64 %mul.i.i, %2
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %time.i.i) #8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %time.i2.i) #8
  %call.i3.i = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %time.i2.i) #8
  %3 = load i64, ptr %time.i2.i, align 8
  %mul.i4.i = mul i64 %3, 1000000000
  %tv_nsec.i5.i = getelementptr inbounds nuw i8, ptr %time.i2.i, i64 8
  %4 = load i64, ptr %tv_nsec.i5.i, align 8
  %add.i6.i = add i64 %mul.i4.i, %4
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %time.i2.i) #8
  %tv_nsec.i.i25 = getelementptr inbounds nuw i8, ptr %time.i.i23, i64 8
  %tv_nsec.i33.i = getelementptr inbounds nuw i8, ptr %time.i30.i, i64 8
  %tv_nsec.i = getelementptr inbounds nuw i8, ptr %time.i, i64 8
  %tv_nsec.i.i30 = getelementptr inbounds nuw i8, ptr %time.i.i27, i64 8
  %tv_nsec.i5.i34 = getelementptr inbounds nuw i8, ptr %time.i2.i26, i64 8
  %inputs = getelementptr inbounds nuw i8, ptr %given, i64 8
  %outputs = getelementptr inbounds nuw i8, ptr %given, i64 16
  %arena = getelementptr inbounds nuw i8, ptr %given, i64 24
  %thread = getelementptr inbounds nuw i8, ptr %given, i64 32
  %threads = getelementptr inbounds nuw i8, ptr %given, i64 40
  %tv_nsec.i41 = getelementptr inbounds nuw i8, ptr %time.i38, i64 8
  %tv_nsec.i.i47 = getelementptr inbounds nuw i8, ptr %time.i.i43, i64 8
  %missed = getelementptr inbounds nuw i8, ptr %given, i64 56
  br label %while.cond

while.cond:
  %before.sroa.0.0 = phi i64 [ %add.i.i, %entry ], [ %before.sroa.0.1, %cond.end ]
  %before.sroa.6.0 = phi i64 [ %add.i6.i, %entry ], [ %before.sroa.6.1, %cond.end ]
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %time.i.i23) #8
  %call.i.i24 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %time.i.i23) #8
  %5 = load i64, ptr %time.i.i23, align 8
  %6 = load i64, ptr %tv_nsec.i.i25, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %time.i.i23) #8
  %7 = load atomic i32, ptr %given acquire, align 64
  %cmp.not46.i = icmp eq i32 %7, 0
  br i1 %cmp.not46.i, label %if.end.i, label %await_call.exit

if.end.i:
  %spins.047.i = phi i32 [ %inc.i, %for.inc.i ], [ 1, %while.cond ]
  call void @llvm.aarch64.hint(i32 1)
  %rem.i = and i32 %spins.047.i, 255
  %cmp2.not.i = icmp eq i32 %rem.i, 0
  br i1 %cmp2.not.i, label %if.end4.i, label %for.inc.i

if.end4.i:
  %call.i29.i = call i32 @sched_yield() #8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %time.i30.i) #8
  %call.i31.i = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %time.i30.i) #8
  %8 = load i64, ptr %time.i30.i, align 8
  %9 = load i64, ptr %tv_nsec.i33.i, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %time.i30.i) #8
  %reass.add.i = sub i64 %8, %5
  %reass.mul.i = mul i64 %reass.add.i, 1000000000
  %add.i34.i = sub i64 %9, %6
  %sub.i = add i64 %add.i34.i, %reass.mul.i
  %cmp6.i = icmp ugt i64 %sub.i, 150000
  br i1 %cmp6.i, label %for.end.i, label %for.inc.i

for.inc.i:
  %inc.i = add i32 %spins.047.i, 1
  %10 = load atomic i32, ptr %given acquire, align 64
  %cmp.not.i = icmp eq i32 %10, 0
  br i1 %cmp.not.i, label %if.end.i, label %await_call.exit

for.end.i:
  %11 = cmpxchg ptr %given, i32 0, i32 3 acquire acquire, align 64
  br label %do.body.i

do.body.i:
  %call.i35.i = call i64 (i64, ...) @syscall(i64 noundef 98, ptr noundef nonnull %given, i64 noundef 128, i64 noundef 3, ptr noundef null) #8
  %12 = load atomic i32, ptr %given acquire, align 64
  %cmp16.i = icmp eq i32 %12, 3
  br i1 %cmp16.i, label %do.body.i, label %await_call.exit

await_call.exit:
  %retval.2.i = phi i32 [ %7, %while.cond ], [ %12, %do.body.i ], [ %10, %for.inc.i ]
  %cmp.not = icmp eq i32 %retval.2.i, 2
  br i1 %cmp.not, label %while.end, label %while.body

while.body:
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %time.i) #8
  %call.i = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %time.i) #8
  %13 = load i64, ptr %time.i, align 8
  %mul.i = mul i64 %13, 1000000000
  %14 = load i64, ptr %tv_nsec.i, align 8
  %add.i = add i64 %mul.i, %14
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %time.i) #8
  %sub = sub i64 %add.i, %before.sroa.0.0
  %cmp4 = icmp ugt i64 %sub, 400000
  br i1 %cmp4, label %if.then, label %if.end

if.then:
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %time.i.i27) #8
  %call.i.i28 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %time.i.i27) #8
  %15 = load i64, ptr %time.i.i27, align 8
  %mul.i.i29 = mul i64 %15, 1000000000
  %16 = load i64, ptr %tv_nsec.i.i30, align 8
  %add.i.i31 = add i64 %mul.i.i29, %16
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %time.i.i27) #8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %time.i2.i26) #8
  %call.i3.i32 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %time.i2.i26) #8
  %17 = load i64, ptr %time.i2.i26, align 8
  %mul.i4.i33 = mul i64 %17, 1000000000
  %18 = load i64, ptr %tv_nsec.i5.i34, align 8
  %add.i6.i35 = add i64 %mul.i4.i33, %18
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %time.i2.i26) #8
  br label %if.end

if.end:
  %before.sroa.0.1 = phi i64 [ %add.i.i31, %if.then ], [ %before.sroa.0.0, %while.body ]
  %before.sroa.6.1 = phi i64 [ %add.i6.i35, %if.then ], [ %before.sroa.6.0, %while.body ]
  %19 = load ptr, ptr %inputs, align 8
  %20 = load ptr, ptr %outputs, align 16
  %21 = load ptr, ptr %arena, align 8
  %22 = load i64, ptr %thread, align 32
  %23 = load i64, ptr %threads, align 8
  call void @threads.part(ptr noundef %19, ptr noundef %20, ptr noundef %21, i64 noundef %22, i64 noundef %23) #8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %time.i38) #8
  %call.i39 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %time.i38) #8
  %24 = load i64, ptr %time.i38, align 8
  %mul.i40 = mul i64 %24, 1000000000
  %25 = load i64, ptr %tv_nsec.i41, align 8
  %add.i42 = add i64 %mul.i40, %25
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %time.i38) #8
  %sub7 = sub i64 %add.i42, %add.i
  %cmp8 = icmp ugt i64 %sub7, 400000
  br i1 %cmp8, label %cond.true, label %cond.end

cond.true:
  %sub.i44 = sub i64 %add.i42, %before.sroa.0.1
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %time.i.i43) #8
  %call.i.i45 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %time.i.i43) #8
  %26 = load i64, ptr %time.i.i43, align 8
  %mul.i.i46 = mul i64 %26, 1000000000
  %27 = load i64, ptr %tv_nsec.i.i47, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %time.i.i43) #8
  %add.i.i48 = sub i64 %27, %before.sroa.6.1
  %sub2.i = add i64 %add.i.i48, %mul.i.i46
  %cond.i = call i64 @llvm.usub.sat.i64(i64 %sub.i44, i64 %sub2.i)
  br label %cond.end

cond.end:
  %cond = phi i64 [ %cond.i, %cond.true ], [ 0, %if.end ]
  store i64 %cond, ptr %missed, align 8
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

declare i64 @llvm.usub.sat.i64(i64, i64) #7

declare i64 @llvm.smin.i64(i64, i64) #7

declare i64 @llvm.umax.i64(i64, i64) #7

attributes #0 = { nounwind }
attributes #1 = { nounwind }
attributes #2 = { noinline nounwind }

attributes #4 = { alwaysinline nounwind }
attributes #5 = { nounwind }
attributes #6 = { nounwind }
attributes #7 = { nounwind }
attributes #8 = { nounwind }
