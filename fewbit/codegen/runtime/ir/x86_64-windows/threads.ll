; Written by `make runtime` from threads.c, do not edit.

%struct.pool = type { i32, i64, i64, i64, i64, i64, [16 x i8], [64 x %struct.worker] }
%struct.worker = type { i32, ptr, ptr, ptr, i64, i64, ptr, i64 }

@shared = internal global %struct.pool zeroinitializer, align 64

define range(i32 0, 6) i32 @threads.run(ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i64 noundef %threads, i64 noundef %sure) local_unnamed_addr #0 {
entry:
  %count.i.i = alloca i64, align 8
  %frequency.i.i = alloca i64, align 8
  %cmp.not = icmp eq i64 %threads, 1
  br i1 %cmp.not, label %if.end10, label %if.then

if.then:
  %call.i.i = tail call i32 @GetCurrentProcessId() #5
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
  tail call void @threads.part(ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i64 noundef 0, i64 noundef 1) #5
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %count.i.i) #5
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %frequency.i.i) #5
  %call.i.i23 = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i.i) #5
  %call1.i.i = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i.i) #5
  %4 = load i64, ptr %count.i.i, align 8
  %5 = load i64, ptr %frequency.i.i, align 8
  %div.i.i = udiv i64 %4, %5
  %mul.i.i = mul i64 %div.i.i, 1000000000
  %rem.i.i = urem i64 %4, %5
  %mul2.i.i = mul i64 %rem.i.i, 1000000000
  %div3.i.i = udiv i64 %mul2.i.i, %5
  %add.i.i = add i64 %div3.i.i, %mul.i.i
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %frequency.i.i) #5
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %count.i.i) #5
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
  tail call void @threads.part(ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i64 noundef 0, i64 noundef 1) #5
  br label %return

return:
  %retval.0 = phi i32 [ %code.0, %if.end ], [ %call8, %if.then7 ], [ 0, %if.end10 ]
  ret i32 %retval.0
}

declare void @llvm.lifetime.start.p0(i64 immarg, ptr captures(none)) #1

define internal fastcc range(i32 0, 6) i32 @run_in_pool(ptr noundef %pool, ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i64 noundef range(i64 2, 1) %threads, i64 noundef %sure) unnamed_addr #0 {
entry:
  %count.i.i.i = alloca i64, align 8
  %frequency.i.i.i = alloca i64, align 8
  %count.i107 = alloca i64, align 8
  %frequency.i108 = alloca i64, align 8
  %count.i.i96 = alloca i64, align 8
  %frequency.i.i97 = alloca i64, align 8
  %count.i = alloca i64, align 8
  %frequency.i = alloca i64, align 8
  %count.i.i = alloca i64, align 8
  %frequency.i.i = alloca i64, align 8
  %library.i.i = alloca ptr, align 8
  %started.i = getelementptr inbounds nuw i8, ptr %pool, i64 8
  %0 = load i64, ptr %started.i, align 8
  %sub.i = add nsw i64 %threads, -1
  %cmp.not.i = icmp slt i64 %0, %sub.i
  br i1 %cmp.not.i, label %while.body.preheader.i, label %if.end

while.body.preheader.i:
  %workers.i = getelementptr inbounds nuw i8, ptr %pool, i64 64
  br label %while.body.i

while.body.i:
  %1 = phi i64 [ %inc.i, %cleanup.i ], [ %0, %while.body.preheader.i ]
  %add.i = add nsw i64 %1, 1
  %arrayidx.i = getelementptr inbounds [64 x %struct.worker], ptr %workers.i, i64 0, i64 %add.i
  store atomic i32 3, ptr %arrayidx.i monotonic, align 64
  %id.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 48
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %library.i.i) #5
  %call.i.i = call i32 @GetModuleHandleExW(i32 noundef 5, ptr noundef nonnull @work, ptr noundef nonnull %library.i.i) #5
  %call1.i.i = call ptr @CreateThread(ptr noundef null, i64 noundef 0, ptr noundef nonnull @work, ptr noundef nonnull %arrayidx.i, i32 noundef 0, ptr noundef null) #5
  store ptr %call1.i.i, ptr %id.i, align 8
  %cmp.i.not.i = icmp eq ptr %call1.i.i, null
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %library.i.i) #5
  %.pre.pre.i = load i64, ptr %started.i, align 8
  br i1 %cmp.i.not.i, label %start_workers.exit, label %cleanup.i

cleanup.i:
  %inc.i = add nsw i64 %.pre.pre.i, 1
  store i64 %inc.i, ptr %started.i, align 8
  %cmp3.i = icmp slt i64 %inc.i, %sub.i
  br i1 %cmp3.i, label %while.body.i, label %start_workers.exit

start_workers.exit:
  %.pre.i = phi i64 [ %.pre.pre.i, %while.body.i ], [ %inc.i, %cleanup.i ]
  %cmp11.i.not = icmp slt i64 %.pre.i, %sub.i
  br i1 %cmp11.i.not, label %return, label %if.end

if.end:
  %cmp.not10.i = icmp slt i64 %sure, %threads
  br i1 %cmp.not10.i, label %for.body.lr.ph.i, label %choose_threads.exit

for.body.lr.ph.i:
  %workers.i89 = getelementptr inbounds nuw i8, ptr %pool, i64 64
  br label %for.body.i

for.body.i:
  %i.011.i = phi i64 [ %sure, %for.body.lr.ph.i ], [ %inc.i91, %for.inc.i ]
  %arrayidx.i90 = getelementptr inbounds [64 x %struct.worker], ptr %workers.i89, i64 0, i64 %i.011.i
  %2 = load atomic i32, ptr %arrayidx.i90 acquire, align 64
  %cmp1.i = icmp eq i32 %2, 3
  br i1 %cmp1.i, label %if.then.i, label %for.inc.i

if.then.i:
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %count.i.i) #5
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %frequency.i.i) #5
  %call.i.i92 = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i.i) #5
  %call1.i.i93 = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i.i) #5
  %3 = load i64, ptr %count.i.i, align 8
  %4 = load i64, ptr %frequency.i.i, align 8
  %div.i.i = udiv i64 %3, %4
  %mul.i.i = mul i64 %div.i.i, 1000000000
  %rem.i.i = urem i64 %3, %4
  %mul2.i.i = mul i64 %rem.i.i, 1000000000
  %div3.i.i = udiv i64 %mul2.i.i, %4
  %add.i.i = add i64 %div3.i.i, %mul.i.i
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %frequency.i.i) #5
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %count.i.i) #5
  %last.i = getelementptr inbounds nuw i8, ptr %pool, i64 16
  %5 = load i64, ptr %last.i, align 16
  %sub.i94 = sub i64 %add.i.i, %5
  %cmp2.i = icmp ult i64 %sub.i94, 150000
  %cond.i = select i1 %cmp2.i, i64 %threads, i64 %i.011.i
  br label %choose_threads.exit

for.inc.i:
  %inc.i91 = add i64 %i.011.i, 1
  %exitcond.not.i = icmp eq i64 %inc.i91, %threads
  br i1 %exitcond.not.i, label %choose_threads.exit, label %for.body.i

choose_threads.exit:
  %spec.select.i = phi i64 [ %cond.i, %if.then.i ], [ %threads, %if.end ], [ %threads, %for.inc.i ]
  %took = getelementptr inbounds nuw i8, ptr %pool, i64 24
  %6 = load i64, ptr %took, align 8
  %cmp = icmp ugt i64 %6, 400000
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %count.i) #5
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %frequency.i) #5
  %call.i = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i) #5
  %call1.i = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i) #5
  %7 = load i64, ptr %count.i, align 8
  %8 = load i64, ptr %frequency.i, align 8
  %div.i = udiv i64 %7, %8
  %rem.i = urem i64 %7, %8
  %mul2.i = mul i64 %rem.i, 1000000000
  %div3.i = udiv i64 %mul2.i, %8
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %frequency.i) #5
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %count.i) #5
  br i1 %cmp, label %cond.true, label %cond.end

cond.true:
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %count.i.i96) #5
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %frequency.i.i97) #5
  %call.i.i98 = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i.i96) #5
  %call1.i.i99 = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i.i97) #5
  %9 = load i64, ptr %count.i.i96, align 8
  %10 = load i64, ptr %frequency.i.i97, align 8
  %div.i.i100 = udiv i64 %9, %10
  %mul.i.i101.neg = mul i64 %div.i.i100, -1000000000
  %rem.i.i102 = urem i64 %9, %10
  %mul2.i.i103 = mul i64 %rem.i.i102, 1000000000
  %div3.i.i104 = udiv i64 %mul2.i.i103, %10
  %add.i.i105.neg = sub i64 %mul.i.i101.neg, %div3.i.i104
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %frequency.i.i97) #5
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %count.i.i96) #5
  br label %cond.end

cond.end:
  %cond.neg141 = phi i64 [ %add.i.i105.neg, %cond.true ], [ 0, %choose_threads.exit ]
  store i64 0, ptr %arena, align 8
  %cmp4132 = icmp sgt i64 %spec.select.i, 1
  br i1 %cmp4132, label %for.body.lr.ph, label %for.cond.cleanup.thread

for.cond.cleanup.thread:
  call void @threads.part(ptr noundef %inputs, ptr noundef %outputs, ptr noundef nonnull %arena, i64 noundef 0, i64 noundef %spec.select.i) #5
  br label %for.cond.cleanup12

for.body.lr.ph:
  %workers = getelementptr inbounds nuw i8, ptr %pool, i64 64
  br label %for.body

for.cond.cleanup:
  call void @threads.part(ptr noundef %inputs, ptr noundef %outputs, ptr noundef nonnull %arena, i64 noundef 0, i64 noundef %spec.select.i) #5
  %workers15 = getelementptr inbounds nuw i8, ptr %pool, i64 64
  br label %for.cond14.preheader

for.body:
  %i.0133 = phi i64 [ 1, %for.body.lr.ph ], [ %inc, %set_state.exit ]
  %arrayidx = getelementptr inbounds nuw [64 x %struct.worker], ptr %workers, i64 0, i64 %i.0133
  %inputs5 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 8
  store ptr %inputs, ptr %inputs5, align 8
  %outputs6 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 16
  store ptr %outputs, ptr %outputs6, align 16
  %arena7 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 24
  store ptr %arena, ptr %arena7, align 8
  %thread = getelementptr inbounds nuw i8, ptr %arrayidx, i64 32
  store i64 %i.0133, ptr %thread, align 32
  %threads8 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 40
  store i64 %spec.select.i, ptr %threads8, align 8
  %11 = atomicrmw xchg ptr %arrayidx, i32 1 acq_rel, align 64
  %cmp.i = icmp eq i32 %11, 3
  br i1 %cmp.i, label %if.then.i106, label %set_state.exit

if.then.i106:
  call void @WakeByAddressSingle(ptr noundef nonnull %arrayidx) #5
  br label %set_state.exit

set_state.exit:
  %inc = add nuw nsw i64 %i.0133, 1
  %exitcond.not = icmp eq i64 %inc, %spec.select.i
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body

for.cond14.preheader:
  %i9.0137 = phi i64 [ 1, %for.cond.cleanup ], [ %inc23, %for.cond.cleanup18 ]
  %arrayidx16 = getelementptr inbounds nuw [64 x %struct.worker], ptr %workers15, i64 0, i64 %i9.0137
  %12 = load atomic i32, ptr %arrayidx16 acquire, align 64
  %cmp17134 = icmp eq i32 %12, 1
  br i1 %cmp17134, label %for.body19, label %for.cond.cleanup18

for.cond.cleanup12:
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %count.i107) #5
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %frequency.i108) #5
  %call.i109 = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i107) #5
  %call1.i110 = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i108) #5
  %13 = load i64, ptr %count.i107, align 8
  %14 = load i64, ptr %frequency.i108, align 8
  %div.i111 = udiv i64 %13, %14
  %mul.i112 = mul i64 %div.i111, 1000000000
  %rem.i113 = urem i64 %13, %14
  %mul2.i114 = mul i64 %rem.i113, 1000000000
  %div3.i115 = udiv i64 %mul2.i114, %14
  %add.i116 = add i64 %div3.i115, %mul.i112
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %frequency.i108) #5
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %count.i107) #5
  %last = getelementptr inbounds nuw i8, ptr %pool, i64 16
  store i64 %add.i116, ptr %last, align 16
  %mul.i.neg = mul i64 %div.i, -1000000000
  %add.i95.neg = sub i64 %mul.i.neg, %div3.i
  %sub = add i64 %add.i95.neg, %add.i116
  store i64 %sub, ptr %took, align 8
  br i1 %cmp, label %cond.true30, label %cond.end34

for.cond.cleanup18:
  %inc23 = add nuw nsw i64 %i9.0137, 1
  %exitcond143.not = icmp eq i64 %inc23, %spec.select.i
  br i1 %exitcond143.not, label %for.cond.cleanup12, label %for.cond14.preheader

for.body19:
  %spins.0135 = phi i32 [ %retval.0.i119, %wait_a_turn.exit ], [ 0, %for.cond14.preheader ]
  %cmp.i117 = icmp ugt i32 %spins.0135, 200
  br i1 %cmp.i117, label %if.then.i120, label %if.end.i

if.then.i120:
  %call.i.i121 = call i32 @SwitchToThread() #5
  br label %wait_a_turn.exit

if.end.i:
  call void @llvm.x86.sse2.pause()
  %add.i118 = add nuw nsw i32 %spins.0135, 1
  br label %wait_a_turn.exit

wait_a_turn.exit:
  %retval.0.i119 = phi i32 [ %spins.0135, %if.then.i120 ], [ %add.i118, %if.end.i ]
  %15 = load atomic i32, ptr %arrayidx16 acquire, align 64
  %cmp17 = icmp eq i32 %15, 1
  br i1 %cmp17, label %for.body19, label %for.cond.cleanup18

cond.true30:
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %count.i.i.i) #5
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %frequency.i.i.i) #5
  %call.i.i.i = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i.i.i) #5
  %call1.i.i.i = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i.i.i) #5
  %16 = load i64, ptr %count.i.i.i, align 8
  %17 = load i64, ptr %frequency.i.i.i, align 8
  %div.i.i.i = udiv i64 %16, %17
  %mul.i.i.i = mul i64 %div.i.i.i, 1000000000
  %rem.i.i.i = urem i64 %16, %17
  %mul2.i.i.i = mul i64 %rem.i.i.i, 1000000000
  %div3.i.i.i = udiv i64 %mul2.i.i.i, %17
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %frequency.i.i.i) #5
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %count.i.i.i) #5
  %add.i.i.i = add i64 %mul.i.i.i, %cond.neg141
  %sub2.i = add i64 %add.i.i.i, %div3.i.i.i
  %cond.i123 = call i64 @llvm.usub.sat.i64(i64 %sub, i64 %sub2.i)
  br label %cond.end34

cond.end34:
  %cond35 = phi i64 [ %cond.i123, %cond.true30 ], [ 0, %for.cond.cleanup12 ]
  br i1 %cmp4132, label %for.body40.lr.ph, label %for.cond.cleanup39

for.body40.lr.ph:
  %18 = getelementptr i8, ptr %pool, i64 120
  %19 = add nsw i64 %spec.select.i, -1
  %20 = add nsw i64 %spec.select.i, -2
  %xtraiter = and i64 %19, 3
  %21 = icmp ult i64 %20, 3
  br i1 %21, label %for.cond.cleanup39.loopexit.unr-lcssa, label %for.body40.lr.ph.new

for.body40.lr.ph.new:
  %unroll_iter = and i64 %19, -4
  %invariant.gep = getelementptr i8, ptr %18, i64 64
  %invariant.gep150 = getelementptr i8, ptr %18, i64 128
  %invariant.gep152 = getelementptr i8, ptr %18, i64 192
  br label %for.body40

for.cond.cleanup39.loopexit.unr-lcssa:
  %spec.select.lcssa.ph = phi i64 [ poison, %for.body40.lr.ph ], [ %spec.select.3, %for.body40 ]
  %i36.0140.unr = phi i64 [ 1, %for.body40.lr.ph ], [ %inc51.3, %for.body40 ]
  %missed.0139.unr = phi i64 [ %cond35, %for.body40.lr.ph ], [ %spec.select.3, %for.body40 ]
  %lcmp.mod.not = icmp eq i64 %xtraiter, 0
  br i1 %lcmp.mod.not, label %for.cond.cleanup39, label %for.body40.epil

for.body40.epil:
  %i36.0140.epil = phi i64 [ %inc51.epil, %for.body40.epil ], [ %i36.0140.unr, %for.cond.cleanup39.loopexit.unr-lcssa ]
  %missed.0139.epil = phi i64 [ %spec.select.epil, %for.body40.epil ], [ %missed.0139.unr, %for.cond.cleanup39.loopexit.unr-lcssa ]
  %epil.iter = phi i64 [ %epil.iter.next, %for.body40.epil ], [ 0, %for.cond.cleanup39.loopexit.unr-lcssa ]
  %missed43.idx.epil = shl nuw nsw i64 %i36.0140.epil, 6
  %missed43.epil = getelementptr i8, ptr %18, i64 %missed43.idx.epil
  %22 = load i64, ptr %missed43.epil, align 8
  %spec.select.epil = call i64 @llvm.umax.i64(i64 %22, i64 %missed.0139.epil)
  %inc51.epil = add nuw nsw i64 %i36.0140.epil, 1
  %epil.iter.next = add i64 %epil.iter, 1
  %epil.iter.cmp.not = icmp eq i64 %epil.iter.next, %xtraiter
  br i1 %epil.iter.cmp.not, label %for.cond.cleanup39, label %for.body40.epil

for.cond.cleanup39:
  %missed.0.lcssa = phi i64 [ %cond35, %cond.end34 ], [ %spec.select.lcssa.ph, %for.cond.cleanup39.loopexit.unr-lcssa ], [ %spec.select.epil, %for.body40.epil ]
  %23 = load i64, ptr %took, align 8
  %div9.i = lshr i64 %23, 2
  %cmp.not.i124 = icmp ugt i64 %missed.0.lcssa, %div9.i
  %alone_before1.i = getelementptr inbounds nuw i8, ptr %pool, i64 40
  br i1 %cmp.not.i124, label %if.end.i126, label %if.then.i125

if.then.i125:
  store i64 0, ptr %alone_before1.i, align 8
  br label %return

if.end.i126:
  %24 = load i64, ptr %alone_before1.i, align 8
  %mul.i127 = shl nsw i64 %24, 1
  %add.i128 = or disjoint i64 %mul.i127, 1
  %cond.i129 = call i64 @llvm.smin.i64(i64 %add.i128, i64 64)
  store i64 %cond.i129, ptr %alone_before1.i, align 8
  %alone.i = getelementptr inbounds nuw i8, ptr %pool, i64 32
  store i64 %cond.i129, ptr %alone.i, align 32
  br label %return

for.body40:
  %i36.0140 = phi i64 [ 1, %for.body40.lr.ph.new ], [ %inc51.3, %for.body40 ]
  %missed.0139 = phi i64 [ %cond35, %for.body40.lr.ph.new ], [ %spec.select.3, %for.body40 ]
  %niter = phi i64 [ 0, %for.body40.lr.ph.new ], [ %niter.next.3, %for.body40 ]
  %missed43.idx = shl nuw nsw i64 %i36.0140, 6
  %missed43 = getelementptr i8, ptr %18, i64 %missed43.idx
  %25 = load i64, ptr %missed43, align 8
  %spec.select = call i64 @llvm.umax.i64(i64 %25, i64 %missed.0139)
  %inc51 = shl i64 %i36.0140, 6
  %gep = getelementptr i8, ptr %invariant.gep, i64 %inc51
  %26 = load i64, ptr %gep, align 8
  %spec.select.1 = call i64 @llvm.umax.i64(i64 %26, i64 %spec.select)
  %inc51.1 = shl i64 %i36.0140, 6
  %gep151 = getelementptr i8, ptr %invariant.gep150, i64 %inc51.1
  %27 = load i64, ptr %gep151, align 8
  %spec.select.2 = call i64 @llvm.umax.i64(i64 %27, i64 %spec.select.1)
  %inc51.2 = shl i64 %i36.0140, 6
  %gep153 = getelementptr i8, ptr %invariant.gep152, i64 %inc51.2
  %28 = load i64, ptr %gep153, align 8
  %spec.select.3 = call i64 @llvm.umax.i64(i64 %28, i64 %spec.select.2)
  %inc51.3 = add nuw nsw i64 %i36.0140, 4
  %niter.next.3 = add i64 %niter, 4
  %niter.ncmp.3 = icmp eq i64 %niter.next.3, %unroll_iter
  br i1 %niter.ncmp.3, label %for.cond.cleanup39.loopexit.unr-lcssa, label %for.body40

return:
  %retval.0 = phi i32 [ 5, %start_workers.exit ], [ 0, %if.then.i125 ], [ 0, %if.end.i126 ]
  ret i32 %retval.0
}

declare void @llvm.lifetime.end.p0(i64 immarg, ptr captures(none)) #1

define internal fastcc range(i32 0, 6) i32 @run_in_own_pool(ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i64 noundef range(i64 2, 1) %threads) unnamed_addr #2 {
entry:
  %own = alloca %struct.pool, align 64
  call void @llvm.lifetime.start.p0(i64 4160, ptr nonnull %own) #5
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
  call void @WakeByAddressSingle(ptr noundef nonnull %arrayidx.i) #5
  br label %set_state.exit.i

set_state.exit.i:
  %id.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 48
  %2 = load ptr, ptr %id.i, align 16
  %call.i.i = call i32 @WaitForSingleObject(ptr noundef %2, i32 noundef -1) #5
  %call1.i.i = call i32 @CloseHandle(ptr noundef %2) #5
  %inc.i = add nuw nsw i64 %i.011.i, 1
  %3 = load i64, ptr %started, align 8
  %cmp.not.not.i = icmp slt i64 %i.011.i, %3
  br i1 %cmp.not.not.i, label %for.body.i, label %end_workers.exit

end_workers.exit:
  call void @llvm.lifetime.end.p0(i64 4160, ptr nonnull %own) #5
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
  %call.i.i = tail call i32 @SwitchToThread() #5
  br label %wait_a_turn.exit

if.end.i:
  tail call void @llvm.x86.sse2.pause()
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

declare i32 @GetCurrentProcessId() local_unnamed_addr

declare i32 @QueryPerformanceCounter(ptr noundef) local_unnamed_addr

declare i32 @QueryPerformanceFrequency(ptr noundef) local_unnamed_addr

define internal noalias noundef ptr @work(ptr noundef %given) #0 {
entry:
  %count.i.i.i60 = alloca i64, align 8
  %frequency.i.i.i61 = alloca i64, align 8
  %count.i50 = alloca i64, align 8
  %frequency.i51 = alloca i64, align 8
  %count.i.i.i29 = alloca i64, align 8
  %frequency.i.i.i30 = alloca i64, align 8
  %count.i.i31 = alloca i64, align 8
  %frequency.i.i32 = alloca i64, align 8
  %count.i = alloca i64, align 8
  %frequency.i = alloca i64, align 8
  %value.addr.i.i = alloca i32, align 4
  %count.i30.i = alloca i64, align 8
  %frequency.i31.i = alloca i64, align 8
  %count.i.i20 = alloca i64, align 8
  %frequency.i.i21 = alloca i64, align 8
  %count.i.i.i = alloca i64, align 8
  %frequency.i.i.i = alloca i64, align 8
  %count.i.i = alloca i64, align 8
  %frequency.i.i = alloca i64, align 8
  %0 = cmpxchg ptr %given, i32 3, i32 0 monotonic monotonic, align 64
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %count.i.i) #5
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %frequency.i.i) #5
  %call.i.i = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i.i) #5
  %call1.i.i = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i.i) #5
  %1 = load i64, ptr %count.i.i, align 8
  %2 = load i64, ptr %frequency.i.i, align 8
  %div.i.i = udiv i64 %1, %2
  %mul.i.i = mul i64 %div.i.i, 1000000000
  %rem.i.i = urem i64 %1, %2
  %mul2.i.i = mul i64 %rem.i.i, 1000000000
  %div3.i.i = udiv i64 %mul2.i.i, %2
  %add.i.i = add i64 %div3.i.i, %mul.i.i
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %frequency.i.i) #5
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %count.i.i) #5
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %count.i.i.i) #5
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %frequency.i.i.i) #5
  %call.i.i.i = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i.i.i) #5
  %call1.i.i.i = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i.i.i) #5
  %3 = load i64, ptr %count.i.i.i, align 8
  %4 = load i64, ptr %frequency.i.i.i, align 8
  %div.i.i.i = udiv i64 %3, %4
  %mul.i.i.i = mul i64 %div.i.i.i, 1000000000
  %rem.i.i.i = urem i64 %3, %4
  %mul2.i.i.i = mul i64 %rem.i.i.i, 1000000000
  %div3.i.i.i = udiv i64 %mul2.i.i.i, %4
  %add.i.i.i = add i64 %div3.i.i.i, %mul.i.i.i
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %frequency.i.i.i) #5
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %count.i.i.i) #5
  %inputs = getelementptr inbounds nuw i8, ptr %given, i64 8
  %outputs = getelementptr inbounds nuw i8, ptr %given, i64 16
  %arena = getelementptr inbounds nuw i8, ptr %given, i64 24
  %thread = getelementptr inbounds nuw i8, ptr %given, i64 32
  %threads = getelementptr inbounds nuw i8, ptr %given, i64 40
  %missed = getelementptr inbounds nuw i8, ptr %given, i64 56
  br label %while.cond

while.cond:
  %before.sroa.0.0 = phi i64 [ %add.i.i, %entry ], [ %before.sroa.0.1, %cond.end ]
  %before.sroa.6.0 = phi i64 [ %add.i.i.i, %entry ], [ %before.sroa.6.1, %cond.end ]
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %count.i.i20) #5
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %frequency.i.i21) #5
  %call.i.i22 = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i.i20) #5
  %call1.i.i23 = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i.i21) #5
  %5 = load i64, ptr %count.i.i20, align 8
  %6 = load i64, ptr %frequency.i.i21, align 8
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %frequency.i.i21) #5
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %count.i.i20) #5
  %7 = load atomic i32, ptr %given acquire, align 64
  %cmp.not51.i = icmp eq i32 %7, 0
  br i1 %cmp.not51.i, label %if.end.lr.ph.i, label %await_call.exit

if.end.lr.ph.i:
  %rem.i.i24 = urem i64 %5, %6
  %mul2.i.i25 = mul i64 %rem.i.i24, 1000000000
  %div3.i.i26 = udiv i64 %mul2.i.i25, %6
  %div.i.i27 = udiv i64 %5, %6
  br label %if.end.i

if.end.i:
  %spins.052.i = phi i32 [ 1, %if.end.lr.ph.i ], [ %inc.i, %for.inc.i ]
  call void @llvm.x86.sse2.pause()
  %rem.i = and i32 %spins.052.i, 255
  %cmp2.not.i = icmp eq i32 %rem.i, 0
  br i1 %cmp2.not.i, label %if.end4.i, label %for.inc.i

if.end4.i:
  %call.i29.i = call i32 @SwitchToThread() #5
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %count.i30.i) #5
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %frequency.i31.i) #5
  %call.i32.i = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i30.i) #5
  %call1.i33.i = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i31.i) #5
  %8 = load i64, ptr %count.i30.i, align 8
  %9 = load i64, ptr %frequency.i31.i, align 8
  %div.i34.i = udiv i64 %8, %9
  %rem.i36.i = urem i64 %8, %9
  %mul2.i37.i = mul i64 %rem.i36.i, 1000000000
  %div3.i38.i = udiv i64 %mul2.i37.i, %9
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %frequency.i31.i) #5
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %count.i30.i) #5
  %reass.add.i = sub i64 %div.i34.i, %div.i.i27
  %reass.mul.i = mul i64 %reass.add.i, 1000000000
  %add.i39.i = sub i64 %div3.i38.i, %div3.i.i26
  %sub.i = add i64 %add.i39.i, %reass.mul.i
  %cmp6.i = icmp ugt i64 %sub.i, 150000
  br i1 %cmp6.i, label %for.end.i, label %for.inc.i

for.inc.i:
  %inc.i = add i32 %spins.052.i, 1
  %10 = load atomic i32, ptr %given acquire, align 64
  %cmp.not.i = icmp eq i32 %10, 0
  br i1 %cmp.not.i, label %if.end.i, label %await_call.exit

for.end.i:
  %11 = cmpxchg ptr %given, i32 0, i32 3 acquire acquire, align 64
  br label %do.body.i

do.body.i:
  call void @llvm.lifetime.start.p0(i64 4, ptr nonnull %value.addr.i.i)
  store i32 3, ptr %value.addr.i.i, align 4
  %call.i40.i = call i32 @WaitOnAddress(ptr noundef nonnull %given, ptr noundef nonnull %value.addr.i.i, i64 noundef 4, i32 noundef -1) #5
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %value.addr.i.i)
  %12 = load atomic i32, ptr %given acquire, align 64
  %cmp16.i = icmp eq i32 %12, 3
  br i1 %cmp16.i, label %do.body.i, label %await_call.exit

await_call.exit:
  %retval.2.i = phi i32 [ %7, %while.cond ], [ %12, %do.body.i ], [ %10, %for.inc.i ]
  %cmp.not = icmp eq i32 %retval.2.i, 2
  br i1 %cmp.not, label %while.end, label %while.body

while.body:
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %count.i) #5
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %frequency.i) #5
  %call.i = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i) #5
  %call1.i = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i) #5
  %13 = load i64, ptr %count.i, align 8
  %14 = load i64, ptr %frequency.i, align 8
  %div.i = udiv i64 %13, %14
  %mul.i = mul i64 %div.i, 1000000000
  %rem.i28 = urem i64 %13, %14
  %mul2.i = mul i64 %rem.i28, 1000000000
  %div3.i = udiv i64 %mul2.i, %14
  %add.i = add i64 %div3.i, %mul.i
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %frequency.i) #5
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %count.i) #5
  %sub = sub i64 %add.i, %before.sroa.0.0
  %cmp3 = icmp ugt i64 %sub, 400000
  br i1 %cmp3, label %if.then, label %if.end

if.then:
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %count.i.i31) #5
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %frequency.i.i32) #5
  %call.i.i33 = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i.i31) #5
  %call1.i.i34 = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i.i32) #5
  %15 = load i64, ptr %count.i.i31, align 8
  %16 = load i64, ptr %frequency.i.i32, align 8
  %div.i.i35 = udiv i64 %15, %16
  %mul.i.i36 = mul i64 %div.i.i35, 1000000000
  %rem.i.i37 = urem i64 %15, %16
  %mul2.i.i38 = mul i64 %rem.i.i37, 1000000000
  %div3.i.i39 = udiv i64 %mul2.i.i38, %16
  %add.i.i40 = add i64 %div3.i.i39, %mul.i.i36
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %frequency.i.i32) #5
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %count.i.i31) #5
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %count.i.i.i29) #5
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %frequency.i.i.i30) #5
  %call.i.i.i42 = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i.i.i29) #5
  %call1.i.i.i43 = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i.i.i30) #5
  %17 = load i64, ptr %count.i.i.i29, align 8
  %18 = load i64, ptr %frequency.i.i.i30, align 8
  %div.i.i.i44 = udiv i64 %17, %18
  %mul.i.i.i45 = mul i64 %div.i.i.i44, 1000000000
  %rem.i.i.i46 = urem i64 %17, %18
  %mul2.i.i.i47 = mul i64 %rem.i.i.i46, 1000000000
  %div3.i.i.i48 = udiv i64 %mul2.i.i.i47, %18
  %add.i.i.i49 = add i64 %div3.i.i.i48, %mul.i.i.i45
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %frequency.i.i.i30) #5
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %count.i.i.i29) #5
  br label %if.end

if.end:
  %before.sroa.0.1 = phi i64 [ %add.i.i40, %if.then ], [ %before.sroa.0.0, %while.body ]
  %before.sroa.6.1 = phi i64 [ %add.i.i.i49, %if.then ], [ %before.sroa.6.0, %while.body ]
  %19 = load ptr, ptr %inputs, align 8
  %20 = load ptr, ptr %outputs, align 16
  %21 = load ptr, ptr %arena, align 8
  %22 = load i64, ptr %thread, align 32
  %23 = load i64, ptr %threads, align 8
  call void @threads.part(ptr noundef %19, ptr noundef %20, ptr noundef %21, i64 noundef %22, i64 noundef %23) #5
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %count.i50) #5
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %frequency.i51) #5
  %call.i52 = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i50) #5
  %call1.i53 = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i51) #5
  %24 = load i64, ptr %count.i50, align 8
  %25 = load i64, ptr %frequency.i51, align 8
  %div.i54 = udiv i64 %24, %25
  %mul.i55 = mul i64 %div.i54, 1000000000
  %rem.i56 = urem i64 %24, %25
  %mul2.i57 = mul i64 %rem.i56, 1000000000
  %div3.i58 = udiv i64 %mul2.i57, %25
  %add.i59 = add i64 %div3.i58, %mul.i55
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %frequency.i51) #5
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %count.i50) #5
  %sub5 = sub i64 %add.i59, %add.i
  %cmp6 = icmp ugt i64 %sub5, 400000
  br i1 %cmp6, label %cond.true, label %cond.end

cond.true:
  %sub.i62 = sub i64 %add.i59, %before.sroa.0.1
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %count.i.i.i60) #5
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %frequency.i.i.i61) #5
  %call.i.i.i63 = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i.i.i60) #5
  %call1.i.i.i64 = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i.i.i61) #5
  %26 = load i64, ptr %count.i.i.i60, align 8
  %27 = load i64, ptr %frequency.i.i.i61, align 8
  %div.i.i.i65 = udiv i64 %26, %27
  %mul.i.i.i66 = mul i64 %div.i.i.i65, 1000000000
  %rem.i.i.i67 = urem i64 %26, %27
  %mul2.i.i.i68 = mul i64 %rem.i.i.i67, 1000000000
  %div3.i.i.i69 = udiv i64 %mul2.i.i.i68, %27
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %frequency.i.i.i61) #5
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %count.i.i.i60) #5
  %add.i.i.i70 = sub i64 %mul.i.i.i66, %before.sroa.6.1
  %sub2.i = add i64 %add.i.i.i70, %div3.i.i.i69
  %cond.i = call i64 @llvm.usub.sat.i64(i64 %sub.i62, i64 %sub2.i)
  br label %cond.end

cond.end:
  %cond = phi i64 [ %cond.i, %cond.true ], [ 0, %if.end ]
  store i64 %cond, ptr %missed, align 8
  store atomic i32 0, ptr %given release, align 64
  br label %while.cond

while.end:
  ret ptr null
}

declare i32 @GetModuleHandleExW(i32 noundef, ptr noundef, ptr noundef) local_unnamed_addr

declare ptr @CreateThread(ptr noundef, i64 noundef, ptr noundef, ptr noundef, i32 noundef, ptr noundef) local_unnamed_addr

declare void @llvm.x86.sse2.pause() #5

declare i32 @SwitchToThread() local_unnamed_addr

declare i32 @WaitOnAddress(ptr noundef, ptr noundef, i64 noundef, i32 noundef) local_unnamed_addr

declare void @WakeByAddressSingle(ptr noundef) local_unnamed_addr

declare i32 @WaitForSingleObject(ptr noundef, i32 noundef) local_unnamed_addr

declare i32 @CloseHandle(ptr noundef) local_unnamed_addr

declare i64 @llvm.usub.sat.i64(i64, i64) #6

declare i64 @llvm.smin.i64(i64, i64) #6

declare i64 @llvm.umax.i64(i64, i64) #6

declare void @llvm.memset.p0.i64(ptr writeonly captures(none), i8, i64, i1 immarg) #7

attributes #0 = { nounwind }
attributes #1 = { nounwind }
attributes #2 = { noinline nounwind }

attributes #4 = { alwaysinline nounwind }
attributes #5 = { nounwind }
attributes #6 = { nounwind }
attributes #7 = { nounwind }
