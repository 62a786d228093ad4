; Written by `make runtime` from detect.c, do not edit.

@variants.count = external local_unnamed_addr constant i32, align 4
@variants.needs = external local_unnamed_addr constant [0 x [2 x i64]], align 8

define signext i32 @variants.fitting() local_unnamed_addr #0 {
entry:
  %call.i = tail call i64 @getauxval(i64 noundef 16) #1
  %call1.i = tail call i64 @getauxval(i64 noundef 26) #1
  %0 = load i32, ptr @variants.count, align 4
  %cmp24.not = icmp eq i32 %0, 0
  br i1 %cmp24.not, label %for.cond.cleanup, label %for.cond1.preheader.preheader

for.cond1.preheader.preheader:
  %wide.trip.count = zext i32 %0 to i64
  %not = xor i64 %call.i, -1
  %not.1 = xor i64 %call1.i, -1
  br label %for.cond1.preheader

for.cond1.preheader:
  %indvars.iv = phi i64 [ 0, %for.cond1.preheader.preheader ], [ %indvars.iv.next, %for.cond1.preheader ]
  %fitting.025 = phi i32 [ 0, %for.cond1.preheader.preheader ], [ %or10, %for.cond1.preheader ]
  %arrayidx6 = getelementptr inbounds nuw [0 x [2 x i64]], ptr @variants.needs, i64 0, i64 %indvars.iv, i64 0
  %1 = load i64, ptr %arrayidx6, align 8
  %and = and i64 %1, %not
  %arrayidx6.1 = getelementptr inbounds nuw [0 x [2 x i64]], ptr @variants.needs, i64 0, i64 %indvars.iv, i64 1
  %2 = load i64, ptr %arrayidx6.1, align 8
  %and.1 = and i64 %2, %not.1
  %or.1 = or i64 %and.1, %and
  %cmp9 = icmp eq i64 %or.1, 0
  %conv = zext i1 %cmp9 to i32
  %3 = trunc nuw i64 %indvars.iv to i32
  %shl = shl nuw i32 %conv, %3
  %or10 = or i32 %shl, %fitting.025
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, %wide.trip.count
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.cond1.preheader

for.cond.cleanup:
  %fitting.0.lcssa = phi i32 [ 0, %entry ], [ %or10, %for.cond1.preheader ]
  ret i32 %fitting.0.lcssa
}

declare i64 @getauxval(i64 noundef) local_unnamed_addr #0

attributes #0 = { nounwind }
attributes #1 = { nounwind }
