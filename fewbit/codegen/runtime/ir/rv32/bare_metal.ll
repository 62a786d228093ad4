; Written by `make runtime` from bare_metal.c, do not edit.

define noundef ptr @memcpy(ptr noalias noundef returned writeonly captures(ret: address, provenance) %to, ptr noalias noundef readonly captures(none) %from, i32 noundef %count) local_unnamed_addr #0 {
entry:
  %cmp6.not = icmp eq i32 %count, 0
  br i1 %cmp6.not, label %for.cond.cleanup, label %for.body

for.cond.cleanup:
  ret ptr %to

for.body:
  %i.07 = phi i32 [ %inc, %for.body ], [ 0, %entry ]
  %arrayidx = getelementptr inbounds nuw i8, ptr %from, i32 %i.07
  %0 = load i8, ptr %arrayidx, align 1
  %arrayidx1 = getelementptr inbounds nuw i8, ptr %to, i32 %i.07
  store i8 %0, ptr %arrayidx1, align 1
  %inc = add nuw i32 %i.07, 1
  %exitcond.not = icmp eq i32 %inc, %count
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body
}

define noundef ptr @memmove(ptr noundef returned writeonly captures(address, ret: address, provenance) %to, ptr noundef readonly captures(address) %from, i32 noundef %count) local_unnamed_addr #0 {
entry:
  %cmp = icmp ult ptr %to, %from
  %cmp112.not = icmp eq i32 %count, 0
  br i1 %cmp112.not, label %for.cond.cleanup, label %for.body

for.cond.cleanup:
  ret ptr %to

for.body:
  %done.013 = phi i32 [ %inc, %for.body ], [ 0, %entry ]
  %0 = xor i32 %done.013, -1
  %sub2 = add i32 %count, %0
  %cond = select i1 %cmp, i32 %done.013, i32 %sub2
  %arrayidx = getelementptr inbounds nuw i8, ptr %from, i32 %cond
  %1 = load i8, ptr %arrayidx, align 1
  %arrayidx3 = getelementptr inbounds nuw i8, ptr %to, i32 %cond
  store i8 %1, ptr %arrayidx3, align 1
  %inc = add nuw i32 %done.013, 1
  %exitcond.not = icmp eq i32 %inc, %count
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body
}

define noundef ptr @memset(ptr noundef returned writeonly captures(ret: address, provenance) %to, i32 noundef %value, i32 noundef %count) local_unnamed_addr #1 {
entry:
  %cmp4.not = icmp eq i32 %count, 0
  br i1 %cmp4.not, label %for.cond.cleanup, label %for.body.lr.ph

for.body.lr.ph:
  %conv = trunc i32 %value to i8
  br label %for.body

for.cond.cleanup:
  ret ptr %to

for.body:
  %i.05 = phi i32 [ 0, %for.body.lr.ph ], [ %inc, %for.body ]
  %arrayidx = getelementptr inbounds nuw i8, ptr %to, i32 %i.05
  store i8 %conv, ptr %arrayidx, align 1
  %inc = add nuw i32 %i.05, 1
  %exitcond.not = icmp eq i32 %inc, %count
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body
}

define i64 @__udivdi3(i64 noundef %a, i64 noundef %b) local_unnamed_addr #2 {
entry:
  br label %for.body.i

for.body.i:
  %i.013.i = phi i32 [ 63, %entry ], [ %dec.i, %for.body.i ]
  %0 = phi i64 [ 0, %entry ], [ %3, %for.body.i ]
  %1 = phi i64 [ 0, %entry ], [ %2, %for.body.i ]
  %shl.i = shl i64 %0, 1
  %sh_prom.i = zext nneg i32 %i.013.i to i64
  %shr.i = lshr i64 %a, %sh_prom.i
  %and.i = and i64 %shr.i, 1
  %or.i = or disjoint i64 %and.i, %shl.i
  %cmp3.not.i = icmp ult i64 %or.i, %b
  %shl6.i = shl nuw i64 1, %sh_prom.i
  %or7.i = select i1 %cmp3.not.i, i64 0, i64 %shl6.i
  %2 = or i64 %or7.i, %1
  %sub.i = select i1 %cmp3.not.i, i64 0, i64 %b
  %3 = sub nuw i64 %or.i, %sub.i
  %dec.i = add nsw i32 %i.013.i, -1
  %cmp.not.i = icmp eq i32 %i.013.i, 0
  br i1 %cmp.not.i, label %divide.exit, label %for.body.i

divide.exit:
  ret i64 %2
}

define i64 @__umoddi3(i64 noundef %a, i64 noundef %b) local_unnamed_addr #2 {
entry:
  br label %for.body.i

for.body.i:
  %i.013.i = phi i32 [ 63, %entry ], [ %dec.i, %for.body.i ]
  %0 = phi i64 [ 0, %entry ], [ %1, %for.body.i ]
  %shl.i = shl i64 %0, 1
  %sh_prom.i = zext nneg i32 %i.013.i to i64
  %shr.i = lshr i64 %a, %sh_prom.i
  %and.i = and i64 %shr.i, 1
  %or.i = or disjoint i64 %and.i, %shl.i
  %cmp3.not.i = icmp ult i64 %or.i, %b
  %sub.i = select i1 %cmp3.not.i, i64 0, i64 %b
  %1 = sub nuw i64 %or.i, %sub.i
  %dec.i = add nsw i32 %i.013.i, -1
  %cmp.not.i = icmp eq i32 %i.013.i, 0
  br i1 %cmp.not.i, label %divide.exit, label %for.body.i

divide.exit:
  ret i64 %1
}

define i64 @__divdi3(i64 noundef %a, i64 noundef %b) local_unnamed_addr #2 {
entry:
  %cond.i = tail call noundef range(i64 0, -9223372036854775807) i64 @llvm.abs.i64(i64 %a, i1 false)
  %cond.i5 = tail call noundef range(i64 0, -9223372036854775807) i64 @llvm.abs.i64(i64 %b, i1 false)
  br label %for.body.i

for.body.i:
  %i.013.i = phi i32 [ 63, %entry ], [ %dec.i, %for.body.i ]
  %0 = phi i64 [ 0, %entry ], [ %3, %for.body.i ]
  %1 = phi i64 [ 0, %entry ], [ %2, %for.body.i ]
  %shl.i = shl i64 %0, 1
  %sh_prom.i = zext nneg i32 %i.013.i to i64
  %shr.i = lshr i64 %cond.i, %sh_prom.i
  %and.i = and i64 %shr.i, 1
  %or.i = or disjoint i64 %and.i, %shl.i
  %cmp3.not.i = icmp ult i64 %or.i, %cond.i5
  %shl6.i = shl nuw i64 1, %sh_prom.i
  %or7.i = select i1 %cmp3.not.i, i64 0, i64 %shl6.i
  %2 = or i64 %or7.i, %1
  %sub.i = select i1 %cmp3.not.i, i64 0, i64 %cond.i5
  %3 = sub nuw i64 %or.i, %sub.i
  %dec.i = add nsw i32 %i.013.i, -1
  %cmp.not.i = icmp eq i32 %i.013.i, 0
  br i1 %cmp.not.i, label %divide.exit, label %for.body.i

divide.exit:
  %xor = xor i64 %b, %a
  %cmp = icmp slt i64 %xor, 0
  %sub.i6 = sub i64 0, %2
  %cond.i7 = select i1 %cmp, i64 %sub.i6, i64 %2
  ret i64 %cond.i7
}

define i64 @__moddi3(i64 noundef %a, i64 noundef %b) local_unnamed_addr #2 {
entry:
  %cond.i = tail call noundef range(i64 0, -9223372036854775807) i64 @llvm.abs.i64(i64 %a, i1 false)
  %cond.i4 = tail call noundef range(i64 0, -9223372036854775807) i64 @llvm.abs.i64(i64 %b, i1 false)
  br label %for.body.i

for.body.i:
  %i.013.i = phi i32 [ 63, %entry ], [ %dec.i, %for.body.i ]
  %0 = phi i64 [ 0, %entry ], [ %1, %for.body.i ]
  %shl.i = shl i64 %0, 1
  %sh_prom.i = zext nneg i32 %i.013.i to i64
  %shr.i = lshr i64 %cond.i, %sh_prom.i
  %and.i = and i64 %shr.i, 1
  %or.i = or disjoint i64 %and.i, %shl.i
  %cmp3.not.i = icmp ult i64 %or.i, %cond.i4
  %sub.i = select i1 %cmp3.not.i, i64 0, i64 %cond.i4
  %1 = sub nuw i64 %or.i, %sub.i
  %dec.i = add nsw i32 %i.013.i, -1
  %cmp.not.i = icmp eq i32 %i.013.i, 0
  br i1 %cmp.not.i, label %divide.exit, label %for.body.i

divide.exit:
  %cmp = icmp slt i64 %a, 0
  %sub.i5 = sub i64 0, %1
  %cond.i6 = select i1 %cmp, i64 %sub.i5, i64 %1
  ret i64 %cond.i6
}

define double @__floatundidf(i64 noundef %a) local_unnamed_addr #3 {
entry:
  %shr = lshr i64 %a, 32
  %conv = trunc nuw i64 %shr to i32
  %conv1 = uitofp i32 %conv to double
  %mul = fmul double %conv1, 0x41F0000000000000
  %conv2 = trunc i64 %a to i32
  %conv3 = uitofp i32 %conv2 to double
  %add = fadd double %mul, %conv3
  ret double %add
}

define double @__floatdidf(i64 noundef %a) local_unnamed_addr #3 {
entry:
  %shr = lshr i64 %a, 32
  %conv = trunc nuw i64 %shr to i32
  %conv1 = sitofp i32 %conv to double
  %mul = fmul double %conv1, 0x41F0000000000000
  %conv2 = trunc i64 %a to i32
  %conv3 = uitofp i32 %conv2 to double
  %add = fadd double %mul, %conv3
  ret double %add
}

define float @__floatundisf(i64 noundef %a) local_unnamed_addr #3 {
entry:
  %cmp = icmp ugt i64 %a, 9007199254740991
  %extract.t7 = trunc i64 %a to i32
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %and = and i64 %a, 4294965248
  %and1 = and i64 %a, 2047
  %cmp2.not = icmp eq i64 %and1, 0
  %conv = select i1 %cmp2.not, i64 0, i64 2048
  %or = or i64 %conv, %and
  %extract.t = trunc nuw i64 %or to i32
  br label %if.end

if.end:
  %a.addr.0.off0 = phi i32 [ %extract.t, %if.then ], [ %extract.t7, %entry ]
  %extract9 = lshr i64 %a, 32
  %extract.t10 = trunc nuw i64 %extract9 to i32
  %conv1.i = uitofp i32 %extract.t10 to double
  %mul.i = fmul double %conv1.i, 0x41F0000000000000
  %conv3.i = uitofp i32 %a.addr.0.off0 to double
  %add.i = fadd double %mul.i, %conv3.i
  %conv3 = fptrunc double %add.i to float
  ret float %conv3
}

define float @__floatdisf(i64 noundef %a) local_unnamed_addr #3 {
entry:
  %cond.i = tail call noundef range(i64 0, -9223372036854775807) i64 @llvm.abs.i64(i64 %a, i1 false)
  %cmp.i = icmp ugt i64 %cond.i, 9007199254740991
  %extract.t7.i = trunc i64 %cond.i to i32
  br i1 %cmp.i, label %if.then.i, label %__floatundisf.exit

if.then.i:
  %and.i = and i64 %cond.i, 4294965248
  %and1.i = and i64 %cond.i, 2047
  %cmp2.not.i = icmp eq i64 %and1.i, 0
  %conv.i = select i1 %cmp2.not.i, i64 0, i64 2048
  %or.i = or i64 %conv.i, %and.i
  %extract.t.i = trunc nuw i64 %or.i to i32
  br label %__floatundisf.exit

__floatundisf.exit:
  %a.addr.0.off0.i = phi i32 [ %extract.t.i, %if.then.i ], [ %extract.t7.i, %entry ]
  %extract9.i = lshr i64 %cond.i, 32
  %extract.t10.i = trunc nuw i64 %extract9.i to i32
  %conv1.i.i = uitofp i32 %extract.t10.i to double
  %mul.i.i = fmul double %conv1.i.i, 0x41F0000000000000
  %conv3.i.i = uitofp i32 %a.addr.0.off0.i to double
  %add.i.i = fadd double %mul.i.i, %conv3.i.i
  %conv3.i = fptrunc double %add.i.i to float
  %cmp = icmp slt i64 %a, 0
  %fneg = fneg float %conv3.i
  %cond = select i1 %cmp, float %fneg, float %conv3.i
  ret float %cond
}

define i64 @__fixunsdfdi(double noundef %a) local_unnamed_addr #3 {
entry:
  %mul = fmul double %a, 0x3DF0000000000000
  %conv = fptoui double %mul to i32
  %conv1 = uitofp i32 %conv to double
  %mul2 = fmul double %conv1, 0x41F0000000000000
  %sub = fsub double %a, %mul2
  %conv3 = fptoui double %sub to i32
  %conv4 = zext i32 %conv to i64
  %shl = shl nuw i64 %conv4, 32
  %conv5 = zext i32 %conv3 to i64
  %or = or disjoint i64 %shl, %conv5
  ret i64 %or
}

define i64 @__fixdfdi(double noundef %a) local_unnamed_addr #3 {
entry:
  %cmp = fcmp olt double %a, 0.000000e+00
  %fneg = fneg double %a
  %cond = select i1 %cmp, double %fneg, double %a
  %mul.i = fmul double %cond, 0x3DF0000000000000
  %conv.i = fptoui double %mul.i to i32
  %conv1.i = uitofp i32 %conv.i to double
  %mul2.i = fmul double %conv1.i, 0x41F0000000000000
  %sub.i = fsub double %cond, %mul2.i
  %conv3.i = fptoui double %sub.i to i32
  %conv4.i = zext i32 %conv.i to i64
  %shl.i = shl nuw i64 %conv4.i, 32
  %conv5.i = zext i32 %conv3.i to i64
  %or.i = or disjoint i64 %shl.i, %conv5.i
  %sub.i6 = sub i64 0, %or.i
  %cond.i = select i1 %cmp, i64 %sub.i6, i64 %or.i
  ret i64 %cond.i
}

define i64 @__fixsfdi(float noundef %a) local_unnamed_addr #3 {
entry:
  %conv = fpext float %a to double
  %cmp.i = fcmp olt float %a, 0.000000e+00
  %fneg.i = fneg double %conv
  %cond.i = select i1 %cmp.i, double %fneg.i, double %conv
  %mul.i.i = fmul double %cond.i, 0x3DF0000000000000
  %conv.i.i = fptoui double %mul.i.i to i32
  %conv1.i.i = uitofp i32 %conv.i.i to double
  %mul2.i.i = fmul double %conv1.i.i, 0x41F0000000000000
  %sub.i.i = fsub double %cond.i, %mul2.i.i
  %conv3.i.i = fptoui double %sub.i.i to i32
  %conv4.i.i = zext i32 %conv.i.i to i64
  %shl.i.i = shl nuw i64 %conv4.i.i, 32
  %conv5.i.i = zext i32 %conv3.i.i to i64
  %or.i.i = or disjoint i64 %shl.i.i, %conv5.i.i
  %sub.i6.i = sub i64 0, %or.i.i
  %cond.i.i = select i1 %cmp.i, i64 %sub.i6.i, i64 %or.i.i
  ret i64 %cond.i.i
}

define i64 @__fixunssfdi(float noundef %a) local_unnamed_addr #3 {
entry:
  %conv = fpext float %a to double
  %mul.i = fmul double %conv, 0x3DF0000000000000
  %conv.i = fptoui double %mul.i to i32
  %conv1.i = uitofp i32 %conv.i to double
  %mul2.i = fmul double %conv1.i, 0x41F0000000000000
  %sub.i = fsub double %conv, %mul2.i
  %conv3.i = fptoui double %sub.i to i32
  %conv4.i = zext i32 %conv.i to i64
  %shl.i = shl nuw i64 %conv4.i, 32
  %conv5.i = zext i32 %conv3.i to i64
  %or.i = or disjoint i64 %shl.i, %conv5.i
  ret i64 %or.i
}

declare i64 @llvm.abs.i64(i64, i1 immarg) #4

attributes #0 = { nounwind "no-builtins" }
attributes #1 = { nounwind "no-builtins" }
attributes #2 = { nounwind "no-builtins" }
attributes #3 = { nounwind "no-builtins" }
attributes #4 = { nounwind }
