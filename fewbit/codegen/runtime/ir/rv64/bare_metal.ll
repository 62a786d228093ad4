; Written by `make runtime` from bare_metal.c, do not edit.

define noundef ptr @memcpy(ptr noalias noundef returned writeonly captures(ret: address, provenance) %to, ptr noalias noundef readonly captures(none) %from, i64 noundef %count) local_unnamed_addr #0 {
entry:
  %cmp6.not = icmp eq i64 %count, 0
  br i1 %cmp6.not, label %for.cond.cleanup, label %for.body

for.cond.cleanup:
  ret ptr %to

for.body:
  %i.07 = phi i64 [ %inc, %for.body ], [ 0, %entry ]
  %arrayidx = getelementptr inbounds nuw i8, ptr %from, i64 %i.07
  %0 = load i8, ptr %arrayidx, align 1
  %arrayidx1 = getelementptr inbounds nuw i8, ptr %to, i64 %i.07
  store i8 %0, ptr %arrayidx1, align 1
  %inc = add nuw i64 %i.07, 1
  %exitcond.not = icmp eq i64 %inc, %count
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body
}

define noundef ptr @memmove(ptr noundef returned writeonly captures(address, ret: address, provenance) %to, ptr noundef readonly captures(address) %from, i64 noundef %count) local_unnamed_addr #0 {
entry:
  %cmp = icmp ult ptr %to, %from
  %cmp112.not = icmp eq i64 %count, 0
  br i1 %cmp112.not, label %for.cond.cleanup, label %for.body

for.cond.cleanup:
  ret ptr %to

for.body:
  %done.013 = phi i64 [ %inc, %for.body ], [ 0, %entry ]
  %0 = xor i64 %done.013, -1
  %sub2 = add i64 %count, %0
  %cond = select i1 %cmp, i64 %done.013, i64 %sub2
  %arrayidx = getelementptr inbounds nuw i8, ptr %from, i64 %cond
  %1 = load i8, ptr %arrayidx, align 1
  %arrayidx3 = getelementptr inbounds nuw i8, ptr %to, i64 %cond
  store i8 %1, ptr %arrayidx3, align 1
  %inc = add nuw i64 %done.013, 1
  %exitcond.not = icmp eq i64 %inc, %count
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body
}

define noundef ptr @memset(ptr noundef returned writeonly captures(ret: address, provenance) %to, i32 noundef signext %value, i64 noundef %count) local_unnamed_addr #1 {
entry:
  %cmp4.not = icmp eq i64 %count, 0
  br i1 %cmp4.not, label %for.cond.cleanup, label %for.body.lr.ph

for.body.lr.ph:
  %conv = trunc i32 %value to i8
  br label %for.body

for.cond.cleanup:
  ret ptr %to

for.body:
  %i.05 = phi i64 [ 0, %for.body.lr.ph ], [ %inc, %for.body ]
  %arrayidx = getelementptr inbounds nuw i8, ptr %to, i64 %i.05
  store i8 %conv, ptr %arrayidx, align 1
  %inc = add nuw i64 %i.05, 1
  %exitcond.not = icmp eq i64 %inc, %count
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body
}

attributes #0 = { nounwind "no-builtins" }
attributes #1 = { nounwind "no-builtins" }
