; Written by `make runtime` from detect.c, do not edit.

@variants.count = external local_unnamed_addr constant i32, align 4
@variants.needs = external local_unnamed_addr constant [0 x [2 x i64]], align 8

define i32 @variants.fitting() local_unnamed_addr #0 {
entry:
  %call.i = tail call i64 @getauxval(i64 noundef 16) #2
  %call1.i = tail call i64 @getauxval(i64 noundef 26) #2
  %0 = load i32, ptr @variants.count, align 4
  %cmp24.not = icmp eq i32 %0, 0
  br i1 %cmp24.not, label %for.cond.cleanup, label %for.cond1.preheader.preheader

for.cond1.preheader.preheader:
  %wide.trip.count = zext i32 %0 to i64
  %not = xor i64 %call.i, -1
  %not.1 = xor i64 %call1.i, -1
  %min.iters.check = icmp ult i32 %0, 8
  br i1 %min.iters.check, label %for.cond1.preheader.preheader36, label %vector.ph

vector.ph:
  %n.vec = and i64 %wide.trip.count, 4294967288
  %broadcast.splatinsert = insertelement <4 x i64> poison, i64 %not, i64 0
  %broadcast.splat = shufflevector <4 x i64> %broadcast.splatinsert, <4 x i64> poison, <4 x i32> zeroinitializer
  %broadcast.splatinsert29 = insertelement <4 x i64> poison, i64 %not.1, i64 0
  %broadcast.splat30 = shufflevector <4 x i64> %broadcast.splatinsert29, <4 x i64> poison, <4 x i32> zeroinitializer
  br label %vector.body

vector.body:
  %index = phi i64 [ 0, %vector.ph ], [ %index.next, %vector.body ]
  %vec.phi = phi <4 x i32> [ zeroinitializer, %vector.ph ], [ %16, %vector.body ]
  %vec.phi31 = phi <4 x i32> [ zeroinitializer, %vector.ph ], [ %17, %vector.body ]
  %vec.ind = phi <4 x i32> [ <i32 0, i32 1, i32 2, i32 3>, %vector.ph ], [ %vec.ind.next, %vector.body ]
  %step.add = add <4 x i32> %vec.ind, splat (i32 4)
  %1 = or disjoint i64 %index, 4
  %2 = getelementptr inbounds nuw [0 x [2 x i64]], ptr @variants.needs, i64 0, i64 %index, i64 0
  %3 = getelementptr inbounds nuw [0 x [2 x i64]], ptr @variants.needs, i64 0, i64 %1, i64 0
  %wide.vec = load <8 x i64>, ptr %2, align 8
  %strided.vec = shufflevector <8 x i64> %wide.vec, <8 x i64> poison, <4 x i32> <i32 0, i32 2, i32 4, i32 6>
  %strided.vec32 = shufflevector <8 x i64> %wide.vec, <8 x i64> poison, <4 x i32> <i32 1, i32 3, i32 5, i32 7>
  %wide.vec33 = load <8 x i64>, ptr %3, align 8
  %strided.vec34 = shufflevector <8 x i64> %wide.vec33, <8 x i64> poison, <4 x i32> <i32 0, i32 2, i32 4, i32 6>
  %strided.vec35 = shufflevector <8 x i64> %wide.vec33, <8 x i64> poison, <4 x i32> <i32 1, i32 3, i32 5, i32 7>
  %4 = and <4 x i64> %strided.vec, %broadcast.splat
  %5 = and <4 x i64> %strided.vec34, %broadcast.splat
  %6 = and <4 x i64> %strided.vec32, %broadcast.splat30
  %7 = and <4 x i64> %strided.vec35, %broadcast.splat30
  %8 = or <4 x i64> %6, %4
  %9 = or <4 x i64> %7, %5
  %10 = icmp eq <4 x i64> %8, zeroinitializer
  %11 = icmp eq <4 x i64> %9, zeroinitializer
  %12 = zext <4 x i1> %10 to <4 x i32>
  %13 = zext <4 x i1> %11 to <4 x i32>
  %14 = shl nuw <4 x i32> %12, %vec.ind
  %15 = shl nuw <4 x i32> %13, %step.add
  %16 = or <4 x i32> %14, %vec.phi
  %17 = or <4 x i32> %15, %vec.phi31
  %index.next = add nuw i64 %index, 8
  %vec.ind.next = add <4 x i32> %vec.ind, splat (i32 8)
  %18 = icmp eq i64 %index.next, %n.vec
  br i1 %18, label %middle.block, label %vector.body

middle.block:
  %bin.rdx = or <4 x i32> %17, %16
  %19 = tail call i32 @llvm.vector.reduce.or.v4i32(<4 x i32> %bin.rdx)
  %cmp.n = icmp eq i64 %n.vec, %wide.trip.count
  br i1 %cmp.n, label %for.cond.cleanup, label %for.cond1.preheader.preheader36

for.cond1.preheader.preheader36:
  %indvars.iv.ph = phi i64 [ 0, %for.cond1.preheader.preheader ], [ %n.vec, %middle.block ]
  %fitting.025.ph = phi i32 [ 0, %for.cond1.preheader.preheader ], [ %19, %middle.block ]
  br label %for.cond1.preheader

for.cond1.preheader:
  %indvars.iv = phi i64 [ %indvars.iv.next, %for.cond1.preheader ], [ %indvars.iv.ph, %for.cond1.preheader.preheader36 ]
  %fitting.025 = phi i32 [ %or10, %for.cond1.preheader ], [ %fitting.025.ph, %for.cond1.preheader.preheader36 ]
  %arrayidx6 = getelementptr inbounds nuw [0 x [2 x i64]], ptr @variants.needs, i64 0, i64 %indvars.iv, i64 0
  %20 = load i64, ptr %arrayidx6, align 8
  %and = and i64 %20, %not
  %arrayidx6.1 = getelementptr inbounds nuw [0 x [2 x i64]], ptr @variants.needs, i64 0, i64 %indvars.iv, i64 1
  %21 = load i64, ptr %arrayidx6.1, align 8
  %and.1 = and i64 %21, %not.1
  %or.1 = or i64 %and.1, %and
  %cmp9 = icmp eq i64 %or.1, 0
  %conv = zext i1 %cmp9 to i32
  %22 = trunc nuw i64 %indvars.iv to i32
  %shl = shl nuw i32 %conv, %22
  %or10 = or i32 %shl, %fitting.025
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, %wide.trip.count
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.cond1.preheader

for.cond.cleanup:
  %fitting.0.lcssa = phi i32 [ 0, %entry ], [ %19, %middle.block ], [ %or10, %for.cond1.preheader ]
  ret i32 %fitting.0.lcssa
}

declare i64 @getauxval(i64 noundef) local_unnamed_addr #0

declare i32 @llvm.vector.reduce.or.v4i32(<4 x i32>) #1

attributes #0 = { nounwind }
attributes #1 = { nounwind }
attributes #2 = { nounwind }
