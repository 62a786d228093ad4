; Written by `make runtime` from detect.c, do not edit.

@variants.count = external local_unnamed_addr constant i32, align 4
@variants.needs = external local_unnamed_addr constant [0 x [7 x i64]], align 8

define i32 @variants.fitting() local_unnamed_addr #0 {
entry:
  %registers.i = alloca [4 x i32], align 16
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %registers.i) #4
  call void @processor.cpuid(i32 noundef 0, i32 noundef 0, ptr noundef nonnull %registers.i) #4
  %0 = load i32, ptr %registers.i, align 16
  %cmp.i = icmp ugt i32 %0, 6
  call void @processor.cpuid(i32 noundef 1, i32 noundef 0, ptr noundef nonnull %registers.i) #4
  %arrayidx2.i = getelementptr inbounds nuw i8, ptr %registers.i, i64 8
  %1 = load i32, ptr %arrayidx2.i, align 8
  %conv.i = zext i32 %1 to i64
  br i1 %cmp.i, label %if.then.i, label %if.end22.i

if.then.i:
  call void @processor.cpuid(i32 noundef 7, i32 noundef 0, ptr noundef nonnull %registers.i) #4
  %arrayidx5.i = getelementptr inbounds nuw i8, ptr %registers.i, i64 4
  %2 = load <2 x i32>, ptr %arrayidx5.i, align 4
  %3 = load i32, ptr %registers.i, align 16
  %cmp12.not.i = icmp eq i32 %3, 0
  br i1 %cmp12.not.i, label %if.end22.i, label %if.then14.i

if.then14.i:
  call void @processor.cpuid(i32 noundef 7, i32 noundef 1, ptr noundef nonnull %registers.i) #4
  %4 = load <4 x i32>, ptr %registers.i, align 16
  %5 = shufflevector <4 x i32> %4, <4 x i32> poison, <2 x i32> <i32 0, i32 3>
  %6 = zext <2 x i32> %5 to <2 x i64>
  %7 = xor <2 x i64> %6, splat (i64 -1)
  br label %if.end22.i

if.end22.i:
  %8 = phi <2 x i32> [ %2, %if.then.i ], [ %2, %if.then14.i ], [ zeroinitializer, %entry ]
  %9 = phi <2 x i64> [ splat (i64 -1), %if.then.i ], [ %7, %if.then14.i ], [ splat (i64 -1), %entry ]
  %10 = zext <2 x i32> %8 to <2 x i64>
  call void @processor.cpuid(i32 noundef -2147483648, i32 noundef 0, ptr noundef nonnull %registers.i) #4
  %11 = load i32, ptr %registers.i, align 16
  %cmp25.i = icmp ugt i32 %11, -2147483648
  br i1 %cmp25.i, label %if.then27.i, label %if.end32.i

if.then27.i:
  call void @processor.cpuid(i32 noundef -2147483647, i32 noundef 0, ptr noundef nonnull %registers.i) #4
  %12 = load i32, ptr %arrayidx2.i, align 8
  %conv30.i = zext i32 %12 to i64
  %13 = xor i64 %conv30.i, -1
  br label %if.end32.i

if.end32.i:
  %words.sroa.5.0 = phi i64 [ %13, %if.then27.i ], [ -1, %if.end22.i ]
  %and.i = and i64 %conv.i, 134217728
  %tobool.not.i = icmp eq i64 %and.i, 0
  br i1 %tobool.not.i, label %read_features.exit, label %if.then34.i

if.then34.i:
  %call.i = call i32 @processor.xgetbv() #4
  %conv35.i = zext i32 %call.i to i64
  %14 = xor i64 %conv35.i, -1
  br label %read_features.exit

read_features.exit:
  %words.sroa.15.0 = phi i64 [ -1, %if.end32.i ], [ %14, %if.then34.i ]
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %registers.i) #4
  %15 = load i32, ptr @variants.count, align 4
  %cmp24.not = icmp eq i32 %15, 0
  br i1 %cmp24.not, label %for.cond.cleanup, label %for.cond1.preheader.preheader

for.cond1.preheader.preheader:
  %wide.trip.count = zext i32 %15 to i64
  %not = xor i64 %conv.i, -1
  %16 = xor <2 x i64> %10, splat (i64 -1)
  %17 = shufflevector <2 x i64> %16, <2 x i64> %9, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  br label %for.cond1.preheader

for.cond1.preheader:
  %indvars.iv = phi i64 [ 0, %for.cond1.preheader.preheader ], [ %indvars.iv.next, %for.cond1.preheader ]
  %fitting.025 = phi i32 [ 0, %for.cond1.preheader.preheader ], [ %or10, %for.cond1.preheader ]
  %arrayidx6 = getelementptr inbounds nuw [0 x [7 x i64]], ptr @variants.needs, i64 0, i64 %indvars.iv, i64 0
  %18 = load i64, ptr %arrayidx6, align 8
  %and = and i64 %18, %not
  %arrayidx6.1 = getelementptr inbounds nuw [0 x [7 x i64]], ptr @variants.needs, i64 0, i64 %indvars.iv, i64 1
  %19 = load i64, ptr %arrayidx6.1, align 8
  %and.1 = and i64 %19, %words.sroa.5.0
  %arrayidx6.2 = getelementptr inbounds nuw [0 x [7 x i64]], ptr @variants.needs, i64 0, i64 %indvars.iv, i64 2
  %20 = load <4 x i64>, ptr %arrayidx6.2, align 8
  %21 = and <4 x i64> %20, %17
  %arrayidx6.6 = getelementptr inbounds nuw [0 x [7 x i64]], ptr @variants.needs, i64 0, i64 %indvars.iv, i64 6
  %22 = load i64, ptr %arrayidx6.6, align 8
  %and.6 = and i64 %22, %words.sroa.15.0
  %23 = call i64 @llvm.vector.reduce.or.v4i64(<4 x i64> %21)
  %op.rdx = or i64 %23, %and.1
  %op.rdx29 = or i64 %and, %and.6
  %op.rdx30 = or i64 %op.rdx, %op.rdx29
  %cmp9 = icmp eq i64 %op.rdx30, 0
  %conv = zext i1 %cmp9 to i32
  %24 = trunc nuw i64 %indvars.iv to i32
  %shl = shl nuw i32 %conv, %24
  %or10 = or i32 %shl, %fitting.025
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, %wide.trip.count
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.cond1.preheader

for.cond.cleanup:
  %fitting.0.lcssa = phi i32 [ 0, %read_features.exit ], [ %or10, %for.cond1.preheader ]
  ret i32 %fitting.0.lcssa
}

declare void @llvm.lifetime.start.p0(i64 immarg, ptr captures(none)) #1

declare void @llvm.lifetime.end.p0(i64 immarg, ptr captures(none)) #1

declare void @processor.cpuid(i32 noundef, i32 noundef, ptr noundef) local_unnamed_addr

declare i32 @processor.xgetbv() local_unnamed_addr

declare i64 @llvm.vector.reduce.or.v4i64(<4 x i64>) #3

attributes #0 = { nounwind }
attributes #1 = { nounwind }

attributes #3 = { nounwind }
attributes #4 = { nounwind }
