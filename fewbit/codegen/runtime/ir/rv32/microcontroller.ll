; Written by `make runtime` from microcontroller.c, do not edit.

define noundef ptr @fewbit_copy(ptr noundef returned writeonly captures(ret: address, provenance) %to, ptr noundef readonly captures(none) %from, i32 noundef %count) local_unnamed_addr #0 {
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

define noundef ptr @fewbit_move(ptr noundef returned writeonly captures(address, ret: address, provenance) %to, ptr noundef readonly captures(address) %from, i32 noundef %count) local_unnamed_addr #0 {
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

define noundef ptr @fewbit_fill(ptr noundef returned writeonly captures(ret: address, provenance) %to, i32 noundef %value, i32 noundef %count) local_unnamed_addr #1 {
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

define void @fewbit_fill_bytes(ptr noundef writeonly captures(none) %to, i32 noundef %count, i32 noundef %value) local_unnamed_addr #1 {
entry:
  %cmp4.not.i = icmp eq i32 %count, 0
  br i1 %cmp4.not.i, label %fewbit_fill.exit, label %for.body.lr.ph.i

for.body.lr.ph.i:
  %conv.i = trunc i32 %value to i8
  br label %for.body.i

for.body.i:
  %i.05.i = phi i32 [ 0, %for.body.lr.ph.i ], [ %inc.i, %for.body.i ]
  %arrayidx.i = getelementptr inbounds nuw i8, ptr %to, i32 %i.05.i
  store i8 %conv.i, ptr %arrayidx.i, align 1
  %inc.i = add nuw i32 %i.05.i, 1
  %exitcond.not.i = icmp eq i32 %inc.i, %count
  br i1 %exitcond.not.i, label %fewbit_fill.exit, label %for.body.i

fewbit_fill.exit:
  ret void
}

define void @fewbit_clear(ptr noundef writeonly captures(none) %to, i32 noundef %count) local_unnamed_addr #1 {
entry:
  %cmp4.not.i = icmp eq i32 %count, 0
  br i1 %cmp4.not.i, label %fewbit_fill.exit, label %for.body.i

for.body.i:
  %i.05.i = phi i32 [ %inc.i, %for.body.i ], [ 0, %entry ]
  %arrayidx.i = getelementptr inbounds nuw i8, ptr %to, i32 %i.05.i
  store i8 0, ptr %arrayidx.i, align 1
  %inc.i = add nuw i32 %i.05.i, 1
  %exitcond.not.i = icmp eq i32 %inc.i, %count
  br i1 %exitcond.not.i, label %fewbit_fill.exit, label %for.body.i

fewbit_fill.exit:
  ret void
}

define i64 @fewbit_divide(i32 noundef %a, i32 noundef %b) local_unnamed_addr #2 {
entry:
  br label %for.body

for.cond.cleanup:
  %conv = zext i32 %remainder.1 to i64
  %shl4 = shl nuw i64 %conv, 32
  %conv5 = zext i32 %quotient.1 to i64
  %or6 = or disjoint i64 %shl4, %conv5
  ret i64 %or6

for.body:
  %i.017 = phi i32 [ 31, %entry ], [ %dec, %for.body ]
  %remainder.016 = phi i32 [ 0, %entry ], [ %remainder.1, %for.body ]
  %quotient.015 = phi i32 [ 0, %entry ], [ %quotient.1, %for.body ]
  %shl = shl i32 %remainder.016, 1
  %shr = lshr i32 %a, %i.017
  %and = and i32 %shr, 1
  %or = or disjoint i32 %and, %shl
  %cmp1.not = icmp ult i32 %or, %b
  %shl2 = shl nuw i32 1, %i.017
  %or3 = select i1 %cmp1.not, i32 0, i32 %shl2
  %quotient.1 = or i32 %or3, %quotient.015
  %sub = select i1 %cmp1.not, i32 0, i32 %b
  %remainder.1 = sub nuw i32 %or, %sub
  %dec = add nsw i32 %i.017, -1
  %cmp.not = icmp eq i32 %i.017, 0
  br i1 %cmp.not, label %for.cond.cleanup, label %for.body
}

define i64 @fewbit_divide_signed(i32 noundef %a, i32 noundef %b) local_unnamed_addr #2 {
entry:
  %cond = tail call i32 @llvm.abs.i32(i32 %a, i1 false)
  %cond6 = tail call i32 @llvm.abs.i32(i32 %b, i1 false)
  br label %for.body.i

for.body.i:
  %i.017.i = phi i32 [ 31, %entry ], [ %dec.i, %for.body.i ]
  %remainder.016.i = phi i32 [ 0, %entry ], [ %remainder.1.i, %for.body.i ]
  %quotient.015.i = phi i32 [ 0, %entry ], [ %quotient.1.i, %for.body.i ]
  %shl.i = shl i32 %remainder.016.i, 1
  %shr.i = lshr i32 %cond, %i.017.i
  %and.i = and i32 %shr.i, 1
  %or.i = or disjoint i32 %and.i, %shl.i
  %cmp1.not.i = icmp ult i32 %or.i, %cond6
  %shl2.i = shl nuw i32 1, %i.017.i
  %or3.i = select i1 %cmp1.not.i, i32 0, i32 %shl2.i
  %quotient.1.i = or i32 %or3.i, %quotient.015.i
  %sub.i = select i1 %cmp1.not.i, i32 0, i32 %cond6
  %remainder.1.i = sub nuw i32 %or.i, %sub.i
  %dec.i = add nsw i32 %i.017.i, -1
  %cmp.not.i = icmp eq i32 %i.017.i, 0
  br i1 %cmp.not.i, label %fewbit_divide.exit, label %for.body.i

fewbit_divide.exit:
  %cmp = icmp slt i32 %a, 0
  %xor = xor i32 %b, %a
  %cmp8 = icmp slt i32 %xor, 0
  %sub11 = sub i32 0, %quotient.1.i
  %cond14 = select i1 %cmp8, i32 %sub11, i32 %quotient.1.i
  %sub18 = sub i32 0, %remainder.1.i
  %cond21 = select i1 %cmp, i32 %sub18, i32 %remainder.1.i
  %conv22 = zext i32 %cond21 to i64
  %shl = shl nuw i64 %conv22, 32
  %conv23 = zext i32 %cond14 to i64
  %or = or disjoint i64 %shl, %conv23
  ret i64 %or
}

define i32 @fewbit_quotient(i32 noundef %a, i32 noundef %b) local_unnamed_addr #2 {
entry:
  br label %for.body.i

for.body.i:
  %i.017.i = phi i32 [ 31, %entry ], [ %dec.i, %for.body.i ]
  %remainder.016.i = phi i32 [ 0, %entry ], [ %remainder.1.i, %for.body.i ]
  %quotient.015.i = phi i32 [ 0, %entry ], [ %quotient.1.i, %for.body.i ]
  %shl.i = shl i32 %remainder.016.i, 1
  %shr.i = lshr i32 %a, %i.017.i
  %and.i = and i32 %shr.i, 1
  %or.i = or disjoint i32 %and.i, %shl.i
  %cmp1.not.i = icmp ult i32 %or.i, %b
  %shl2.i = shl nuw i32 1, %i.017.i
  %or3.i = select i1 %cmp1.not.i, i32 0, i32 %shl2.i
  %quotient.1.i = or i32 %or3.i, %quotient.015.i
  %sub.i = select i1 %cmp1.not.i, i32 0, i32 %b
  %remainder.1.i = sub nuw i32 %or.i, %sub.i
  %dec.i = add nsw i32 %i.017.i, -1
  %cmp.not.i = icmp eq i32 %i.017.i, 0
  br i1 %cmp.not.i, label %fewbit_divide.exit, label %for.body.i

fewbit_divide.exit:
  ret i32 %quotient.1.i
}

define i32 @fewbit_quotient_signed(i32 noundef %a, i32 noundef %b) local_unnamed_addr #2 {
entry:
  %cond.i = tail call i32 @llvm.abs.i32(i32 %a, i1 false)
  %cond6.i = tail call i32 @llvm.abs.i32(i32 %b, i1 false)
  br label %for.body.i.i

for.body.i.i:
  %i.017.i.i = phi i32 [ 31, %entry ], [ %dec.i.i, %for.body.i.i ]
  %remainder.016.i.i = phi i32 [ 0, %entry ], [ %remainder.1.i.i, %for.body.i.i ]
  %quotient.015.i.i = phi i32 [ 0, %entry ], [ %quotient.1.i.i, %for.body.i.i ]
  %shl.i.i = shl i32 %remainder.016.i.i, 1
  %shr.i.i = lshr i32 %cond.i, %i.017.i.i
  %and.i.i = and i32 %shr.i.i, 1
  %or.i.i = or disjoint i32 %and.i.i, %shl.i.i
  %cmp1.not.i.i = icmp ult i32 %or.i.i, %cond6.i
  %shl2.i.i = shl nuw i32 1, %i.017.i.i
  %or3.i.i = select i1 %cmp1.not.i.i, i32 0, i32 %shl2.i.i
  %quotient.1.i.i = or i32 %or3.i.i, %quotient.015.i.i
  %sub.i.i = select i1 %cmp1.not.i.i, i32 0, i32 %cond6.i
  %remainder.1.i.i = sub nuw i32 %or.i.i, %sub.i.i
  %dec.i.i = add nsw i32 %i.017.i.i, -1
  %cmp.not.i.i = icmp eq i32 %i.017.i.i, 0
  br i1 %cmp.not.i.i, label %fewbit_divide_signed.exit, label %for.body.i.i

fewbit_divide_signed.exit:
  %xor.i = xor i32 %b, %a
  %cmp8.i = icmp slt i32 %xor.i, 0
  %sub11.i = sub i32 0, %quotient.1.i.i
  %cond14.i = select i1 %cmp8.i, i32 %sub11.i, i32 %quotient.1.i.i
  ret i32 %cond14.i
}

define i32 @fewbit_remainder(i32 noundef %a, i32 noundef %b) local_unnamed_addr #2 {
entry:
  br label %for.body.i

for.body.i:
  %i.017.i = phi i32 [ 31, %entry ], [ %dec.i, %for.body.i ]
  %remainder.016.i = phi i32 [ 0, %entry ], [ %remainder.1.i, %for.body.i ]
  %shl.i = shl i32 %remainder.016.i, 1
  %shr.i = lshr i32 %a, %i.017.i
  %and.i = and i32 %shr.i, 1
  %or.i = or disjoint i32 %and.i, %shl.i
  %cmp1.not.i = icmp ult i32 %or.i, %b
  %sub.i = select i1 %cmp1.not.i, i32 0, i32 %b
  %remainder.1.i = sub nuw i32 %or.i, %sub.i
  %dec.i = add nsw i32 %i.017.i, -1
  %cmp.not.i = icmp eq i32 %i.017.i, 0
  br i1 %cmp.not.i, label %fewbit_divide.exit, label %for.body.i

fewbit_divide.exit:
  ret i32 %remainder.1.i
}

define i32 @fewbit_remainder_signed(i32 noundef %a, i32 noundef %b) local_unnamed_addr #2 {
entry:
  %cond.i = tail call i32 @llvm.abs.i32(i32 %a, i1 false)
  %cond6.i = tail call i32 @llvm.abs.i32(i32 %b, i1 false)
  br label %for.body.i.i

for.body.i.i:
  %i.017.i.i = phi i32 [ 31, %entry ], [ %dec.i.i, %for.body.i.i ]
  %remainder.016.i.i = phi i32 [ 0, %entry ], [ %remainder.1.i.i, %for.body.i.i ]
  %shl.i.i = shl i32 %remainder.016.i.i, 1
  %shr.i.i = lshr i32 %cond.i, %i.017.i.i
  %and.i.i = and i32 %shr.i.i, 1
  %or.i.i = or disjoint i32 %and.i.i, %shl.i.i
  %cmp1.not.i.i = icmp ult i32 %or.i.i, %cond6.i
  %sub.i.i = select i1 %cmp1.not.i.i, i32 0, i32 %cond6.i
  %remainder.1.i.i = sub nuw i32 %or.i.i, %sub.i.i
  %dec.i.i = add nsw i32 %i.017.i.i, -1
  %cmp.not.i.i = icmp eq i32 %i.017.i.i, 0
  br i1 %cmp.not.i.i, label %fewbit_divide_signed.exit, label %for.body.i.i

fewbit_divide_signed.exit:
  %cmp.i = icmp slt i32 %a, 0
  %sub18.i = sub i32 0, %remainder.1.i.i
  %cond21.i = select i1 %cmp.i, i32 %sub18.i, i32 %remainder.1.i.i
  ret i32 %cond21.i
}

define i64 @fewbit_multiply(i64 noundef %a, i64 noundef %b) local_unnamed_addr #3 {
entry:
  %conv = trunc i64 %a to i32
  %conv1 = trunc i64 %b to i32
  %shr = lshr i64 %a, 32
  %conv2 = trunc nuw i64 %shr to i32
  %mul = mul i32 %conv2, %conv1
  %shr3 = lshr i64 %b, 32
  %conv4 = trunc nuw i64 %shr3 to i32
  %mul5 = mul i32 %conv4, %conv
  %add = add i32 %mul5, %mul
  %and.i = and i32 %conv, 65535
  %shr.i = lshr i32 %conv, 16
  %and1.i = and i32 %conv1, 65535
  %shr2.i = lshr i32 %conv1, 16
  %mul.i = mul nuw i32 %and1.i, %and.i
  %mul3.i = mul nuw i32 %and1.i, %shr.i
  %shr4.i = lshr i32 %mul.i, 16
  %add.i = add nuw i32 %shr4.i, %mul3.i
  %mul5.i = mul nuw i32 %shr2.i, %and.i
  %and6.i = and i32 %add.i, 65535
  %add7.i = add nuw i32 %and6.i, %mul5.i
  %mul8.i = mul nuw i32 %shr2.i, %shr.i
  %shr9.i = lshr i32 %add.i, 16
  %add10.i = add nuw i32 %shr9.i, %mul8.i
  %shr11.i = lshr i32 %add7.i, 16
  %add12.i = add nuw i32 %add10.i, %shr11.i
  %conv.i = zext i32 %add12.i to i64
  %shl.i = shl nuw i64 %conv.i, 32
  %shl13.i = shl i32 %add7.i, 16
  %and14.i = and i32 %mul.i, 65535
  %or.i = or disjoint i32 %shl13.i, %and14.i
  %conv15.i = zext i32 %or.i to i64
  %conv6 = zext i32 %add to i64
  %shl = shl nuw i64 %conv6, 32
  %or16.i = or disjoint i64 %shl, %conv15.i
  %add7 = add i64 %or16.i, %shl.i
  ret i64 %add7
}

define i64 @fewbit_shift_left(i64 noundef %a, i32 noundef %n) local_unnamed_addr #3 {
entry:
  %conv = trunc i64 %a to i32
  %shr = lshr i64 %a, 32
  %conv1 = trunc nuw i64 %shr to i32
  %cmp = icmp eq i32 %n, 0
  br i1 %cmp, label %cleanup, label %if.end

if.end:
  %cmp3 = icmp sgt i32 %n, 31
  br i1 %cmp3, label %if.then5, label %if.end8

if.then5:
  %sub = add nsw i32 %n, -32
  %shl = shl i32 %conv, %sub
  %conv6 = zext i32 %shl to i64
  %shl7 = shl nuw i64 %conv6, 32
  br label %cleanup

if.end8:
  %shl9 = shl i32 %conv1, %n
  %sub10 = sub nsw i32 32, %n
  %shr11 = lshr i32 %conv, %sub10
  %or = or disjoint i32 %shl9, %shr11
  %conv12 = zext i32 %or to i64
  %shl13 = shl nuw i64 %conv12, 32
  %shl14 = shl i32 %conv, %n
  %conv15 = zext i32 %shl14 to i64
  %or16 = or disjoint i64 %shl13, %conv15
  br label %cleanup

cleanup:
  %retval.0 = phi i64 [ %shl7, %if.then5 ], [ %or16, %if.end8 ], [ %a, %entry ]
  ret i64 %retval.0
}

define i64 @fewbit_shift_right(i64 noundef %a, i32 noundef %n) local_unnamed_addr #3 {
entry:
  %conv = trunc i64 %a to i32
  %shr = lshr i64 %a, 32
  %conv1 = trunc nuw i64 %shr to i32
  %cmp = icmp eq i32 %n, 0
  br i1 %cmp, label %cleanup, label %if.end

if.end:
  %cmp3 = icmp sgt i32 %n, 31
  br i1 %cmp3, label %if.then5, label %if.end8

if.then5:
  %sub = add nsw i32 %n, -32
  %shr6 = lshr i32 %conv1, %sub
  %conv7 = zext i32 %shr6 to i64
  br label %cleanup

if.end8:
  %shr9 = lshr i32 %conv1, %n
  %conv10 = zext nneg i32 %shr9 to i64
  %shl = shl nuw nsw i64 %conv10, 32
  %shr11 = lshr i32 %conv, %n
  %sub12 = sub nsw i32 32, %n
  %shl13 = shl i32 %conv1, %sub12
  %or = or disjoint i32 %shl13, %shr11
  %conv14 = zext i32 %or to i64
  %or15 = or disjoint i64 %shl, %conv14
  br label %cleanup

cleanup:
  %retval.0 = phi i64 [ %conv7, %if.then5 ], [ %or15, %if.end8 ], [ %a, %entry ]
  ret i64 %retval.0
}

define i64 @fewbit_shift_right_signed(i64 noundef %a, i32 noundef %n) local_unnamed_addr #3 {
entry:
  %conv = trunc i64 %a to i32
  %shr = lshr i64 %a, 32
  %conv1 = trunc nuw i64 %shr to i32
  %cmp = icmp eq i32 %n, 0
  br i1 %cmp, label %cleanup, label %if.end

if.end:
  %cmp3 = icmp sgt i32 %n, 31
  br i1 %cmp3, label %if.then5, label %if.end10

if.then5:
  %shr6 = ashr i32 %conv1, 31
  %conv7 = zext i32 %shr6 to i64
  %shl = shl nuw i64 %conv7, 32
  %sub = add nsw i32 %n, -32
  %shr8 = ashr i32 %conv1, %sub
  %conv9 = zext i32 %shr8 to i64
  %or = or disjoint i64 %shl, %conv9
  br label %cleanup

if.end10:
  %shr11 = ashr i32 %conv1, %n
  %conv12 = zext i32 %shr11 to i64
  %shl13 = shl nuw i64 %conv12, 32
  %shr14 = lshr i32 %conv, %n
  %sub15 = sub nsw i32 32, %n
  %shl16 = shl i32 %conv1, %sub15
  %or17 = or disjoint i32 %shl16, %shr14
  %conv18 = zext i32 %or17 to i64
  %or19 = or disjoint i64 %shl13, %conv18
  br label %cleanup

cleanup:
  %retval.0 = phi i64 [ %or, %if.then5 ], [ %or19, %if.end10 ], [ %a, %entry ]
  ret i64 %retval.0
}

define i32 @fewbit_add(i32 noundef %a, i32 noundef %b) local_unnamed_addr #2 {
entry:
  %and = and i32 %a, 2147483647
  %and1 = and i32 %b, 2147483647
  %cmp = icmp samesign ult i32 %and, %and1
  %spec.select77 = select i1 %cmp, i32 %b, i32 %a
  %and2 = and i32 %spec.select77, 2139095040
  %cmp3 = icmp eq i32 %and2, 2139095040
  br i1 %cmp3, label %if.then4, label %if.end6

if.then4:
  %xor = xor i32 %b, %a
  %cmp5 = icmp eq i32 %xor, -2147483648
  %and.i = and i32 %spec.select77, 2147483647
  %cmp.i = icmp samesign ugt i32 %and.i, 2139095040
  %or.cond = or i1 %cmp5, %cmp.i
  %cond = select i1 %or.cond, i32 2143289344, i32 %spec.select77
  br label %return

if.end6:
  %spec.select = select i1 %cmp, i32 %a, i32 %b
  %and7 = and i32 %spec.select77, -2147483648
  %shr.i = lshr i32 %spec.select77, 23
  %and.i78 = and i32 %shr.i, 255
  %cond.i = tail call i32 @llvm.umax.i32(i32 %and.i78, i32 1)
  %shr.i79 = lshr i32 %spec.select, 23
  %and.i80 = and i32 %shr.i79, 255
  %cond.i81 = tail call i32 @llvm.umax.i32(i32 %and.i80, i32 1)
  %sub = sub nsw i32 %cond.i, %cond.i81
  %tobool.not.i = icmp eq i32 %and2, 0
  %and.i83 = shl i32 %spec.select77, 7
  %0 = and i32 %and.i83, 1073741696
  %1 = or disjoint i32 %0, 1073741824
  %shl = select i1 %tobool.not.i, i32 %0, i32 %1
  %and.i85 = and i32 %spec.select, 8388607
  %and1.i86 = and i32 %spec.select, 2139095040
  %tobool.not.i87 = icmp eq i32 %and1.i86, 0
  %or.i88 = or disjoint i32 %and.i85, 8388608
  %cond.i89 = select i1 %tobool.not.i87, i32 %and.i85, i32 %or.i88
  %shl12 = shl nuw nsw i32 %cond.i89, 7
  %cmp13 = icmp sgt i32 %sub, 31
  br i1 %cmp13, label %if.then14, label %if.else

if.then14:
  %cmp15 = icmp ne i32 %cond.i89, 0
  %conv = zext i1 %cmp15 to i32
  br label %if.end24

if.else:
  %cmp16 = icmp sgt i32 %sub, 0
  br i1 %cmp16, label %if.then18, label %if.end24

if.then18:
  %shr = lshr i32 %shl12, %sub
  %sub19 = sub nuw nsw i32 32, %sub
  %shl20 = shl i32 %shl12, %sub19
  %cmp21 = icmp ne i32 %shl20, 0
  %conv22 = zext i1 %cmp21 to i32
  %or = or i32 %shr, %conv22
  br label %if.end24

if.end24:
  %smaller.0 = phi i32 [ %conv, %if.then14 ], [ %or, %if.then18 ], [ %shl12, %if.else ]
  %xor25 = xor i32 %b, %a
  %tobool.not = icmp sgt i32 %xor25, -1
  %2 = sub nsw i32 0, %smaller.0
  %cond31.p = select i1 %tobool.not, i32 %smaller.0, i32 %2
  %cond31 = add i32 %cond31.p, %shl
  %cmp32 = icmp eq i32 %cond31, 0
  br i1 %cmp32, label %if.then34, label %while.cond.preheader.i

if.then34:
  %cond41 = select i1 %tobool.not, i32 %and7, i32 0
  br label %return

while.cond.preheader.i:
  %sub43 = add nsw i32 %cond.i, -157
  %tobool.not55.i = icmp sgt i32 %cond31, -1
  br i1 %tobool.not55.i, label %while.body.i, label %while.end.i

while.body.i:
  %exponent.addr.057.i = phi i32 [ %dec.i, %while.body.i ], [ %sub43, %while.cond.preheader.i ]
  %significand.addr.056.i = phi i32 [ %shl.i, %while.body.i ], [ %cond31, %while.cond.preheader.i ]
  %shl.i = shl nuw i32 %significand.addr.056.i, 1
  %dec.i = add nsw i32 %exponent.addr.057.i, -1
  %tobool.not.i95 = icmp sgt i32 %shl.i, -1
  br i1 %tobool.not.i95, label %while.body.i, label %while.end.i

while.end.i:
  %significand.addr.0.lcssa.i = phi i32 [ %cond31, %while.cond.preheader.i ], [ %shl.i, %while.body.i ]
  %exponent.addr.0.lcssa.i = phi i32 [ %sub43, %while.cond.preheader.i ], [ %dec.i, %while.body.i ]
  %cmp2.i = icmp sgt i32 %exponent.addr.0.lcssa.i, 96
  br i1 %cmp2.i, label %if.then3.i, label %if.end4.i

if.then3.i:
  %or.i94 = or disjoint i32 %and7, 2139095040
  br label %return

if.end4.i:
  %add1.i = add nsw i32 %exponent.addr.0.lcssa.i, 158
  %cmp5.i = icmp slt i32 %exponent.addr.0.lcssa.i, -157
  br i1 %cmp5.i, label %if.then6.i, label %if.end21.i

if.then6.i:
  %sub.i91 = sub nuw nsw i32 -157, %exponent.addr.0.lcssa.i
  %cmp7.i = icmp samesign ult i32 %exponent.addr.0.lcssa.i, -188
  %sub8.i = add nsw i32 %exponent.addr.0.lcssa.i, 189
  %shl9.i = shl i32 %significand.addr.0.lcssa.i, %sub8.i
  %3 = icmp ne i32 %shl9.i, 0
  %narrow.i = select i1 %cmp7.i, i1 true, i1 %3
  %cond.i92 = zext i1 %narrow.i to i32
  %shr.i93 = lshr i32 %significand.addr.0.lcssa.i, %sub.i91
  %or16.i = or i32 %shr.i93, %cond.i92
  %significand.addr.1.i = select i1 %cmp7.i, i32 1, i32 %or16.i
  br label %if.end21.i

if.end21.i:
  %biased.0.i = phi i32 [ 1, %if.then6.i ], [ %add1.i, %if.end4.i ]
  %significand.addr.2.i = phi i32 [ %significand.addr.1.i, %if.then6.i ], [ %significand.addr.0.lcssa.i, %if.end4.i ]
  %shr22.i = lshr i32 %significand.addr.2.i, 8
  %and23.i = and i32 %significand.addr.2.i, 255
  %cmp24.i = icmp samesign ugt i32 %and23.i, 128
  %4 = and i32 %significand.addr.2.i, 511
  %5 = icmp eq i32 %4, 384
  %narrow54.i = or i1 %cmp24.i, %5
  %lor.ext.i = zext i1 %narrow54.i to i32
  %sub30.i = shl nuw nsw i32 %biased.0.i, 23
  %shl31.i = add nsw i32 %sub30.i, -8388608
  %add32.i = add nuw nsw i32 %shl31.i, %shr22.i
  %add33.i = add nuw nsw i32 %add32.i, %lor.ext.i
  %or34.i = or i32 %add33.i, %and7
  br label %return

return:
  %retval.1 = phi i32 [ %cond, %if.then4 ], [ %cond41, %if.then34 ], [ %or.i94, %if.then3.i ], [ %or34.i, %if.end21.i ]
  ret i32 %retval.1
}

define i32 @fewbit_subtract(i32 noundef %a, i32 noundef %b) local_unnamed_addr #2 {
entry:
  %and.i = and i32 %b, 2147483647
  %cmp.i = icmp samesign ugt i32 %and.i, 2139095040
  %xor = xor i32 %b, -2147483648
  %cond = select i1 %cmp.i, i32 %b, i32 %xor
  %call1 = tail call i32 @fewbit_add(i32 noundef %a, i32 noundef %cond) #5
  ret i32 %call1
}

define i32 @fewbit_multiply_floats(i32 noundef %a, i32 noundef %b) local_unnamed_addr #2 {
entry:
  %xor = xor i32 %b, %a
  %and = and i32 %xor, -2147483648
  %and1 = and i32 %a, 2147483647
  %and2 = and i32 %b, 2147483647
  %cmp = icmp samesign ugt i32 %and1, 2139095039
  %cmp3 = icmp samesign ugt i32 %and2, 2139095039
  %or.cond = select i1 %cmp, i1 true, i1 %cmp3
  br i1 %or.cond, label %if.then, label %if.end

if.then:
  %cmp.i = icmp samesign ugt i32 %and1, 2139095040
  br i1 %cmp.i, label %cleanup26, label %lor.lhs.false4

lor.lhs.false4:
  %cmp7 = icmp eq i32 %and1, 0
  %0 = add nsw i32 %and2, -2139095041
  %1 = icmp ult i32 %0, -2139095040
  %or.cond30 = or i1 %cmp7, %1
  %or = or disjoint i32 %and, 2139095040
  %spec.select = select i1 %or.cond30, i32 2143289344, i32 %or
  br label %cleanup26

if.end:
  %and.i49 = and i32 %a, 8388607
  %and1.i = and i32 %a, 2139095040
  %tobool.not.i = icmp eq i32 %and1.i, 0
  %or.i = or disjoint i32 %and.i49, 8388608
  %cond.i = select i1 %tobool.not.i, i32 %and.i49, i32 %or.i
  %and.i50 = and i32 %b, 8388607
  %and1.i51 = and i32 %b, 2139095040
  %tobool.not.i52 = icmp eq i32 %and1.i51, 0
  %or.i53 = or disjoint i32 %and.i50, 8388608
  %cond.i54 = select i1 %tobool.not.i52, i32 %and.i50, i32 %or.i53
  %and.i55 = and i32 %cond.i, 65535
  %shr.i = lshr i32 %cond.i, 16
  %and1.i56 = and i32 %cond.i54, 65535
  %shr2.i = lshr i32 %cond.i54, 16
  %mul.i = mul nuw i32 %and1.i56, %and.i55
  %mul3.i = mul nuw nsw i32 %and1.i56, %shr.i
  %shr4.i = lshr i32 %mul.i, 16
  %add.i = add nuw nsw i32 %shr4.i, %mul3.i
  %mul5.i = mul nuw nsw i32 %shr2.i, %and.i55
  %and6.i = and i32 %add.i, 65535
  %add7.i = add nuw nsw i32 %and6.i, %mul5.i
  %mul8.i = mul nuw nsw i32 %shr2.i, %shr.i
  %shr9.i = lshr i32 %add.i, 16
  %add10.i = add nuw nsw i32 %shr9.i, %mul8.i
  %shr11.i = lshr i32 %add7.i, 16
  %add12.i = add nuw nsw i32 %add10.i, %shr11.i
  %conv.i = zext nneg i32 %add12.i to i64
  %shl.i = shl nuw nsw i64 %conv.i, 32
  %shl13.i = shl i32 %add7.i, 16
  %and14.i = and i32 %mul.i, 65535
  %or.i57 = or disjoint i32 %shl13.i, %and14.i
  %conv15.i = zext i32 %or.i57 to i64
  %or16.i = or disjoint i64 %shl.i, %conv15.i
  %shr.i58 = lshr i32 %a, 23
  %and.i59 = and i32 %shr.i58, 255
  %cond.i60 = tail call i32 @llvm.umax.i32(i32 %and.i59, i32 1)
  %shr.i61 = lshr i32 %b, 23
  %and.i62 = and i32 %shr.i61, 255
  %cond.i63 = tail call i32 @llvm.umax.i32(i32 %and.i62, i32 1)
  %sub.i64 = add nuw nsw i32 %cond.i63, %cond.i60
  %tobool.not = icmp samesign ult i32 %add12.i, 256
  br i1 %tobool.not, label %if.end23, label %if.then15

if.then15:
  %and16 = and i64 %conv15.i, 65535
  %cmp17 = icmp ne i64 %and16, 0
  %add18 = add nsw i32 %sub.i64, -284
  %shr19 = lshr i64 %or16.i, 16
  %conv = trunc nuw i64 %shr19 to i32
  %conv20 = zext i1 %cmp17 to i32
  %or21 = or i32 %conv, %conv20
  %tobool.not55.i = icmp sgt i32 %conv, -1
  br i1 %tobool.not55.i, label %while.body.i, label %while.end.i

while.body.i:
  %exponent.addr.057.i = phi i32 [ %dec.i, %while.body.i ], [ %add18, %if.then15 ]
  %significand.addr.056.i = phi i32 [ %shl.i71, %while.body.i ], [ %or21, %if.then15 ]
  %shl.i71 = shl nuw i32 %significand.addr.056.i, 1
  %dec.i = add nsw i32 %exponent.addr.057.i, -1
  %tobool.not.i72 = icmp sgt i32 %shl.i71, -1
  br i1 %tobool.not.i72, label %while.body.i, label %while.end.i

while.end.i:
  %significand.addr.0.lcssa.i = phi i32 [ %or21, %if.then15 ], [ %shl.i71, %while.body.i ]
  %exponent.addr.0.lcssa.i = phi i32 [ %add18, %if.then15 ], [ %dec.i, %while.body.i ]
  %cmp2.i = icmp sgt i32 %exponent.addr.0.lcssa.i, 96
  br i1 %cmp2.i, label %if.then3.i, label %if.end4.i

if.then3.i:
  %or.i70 = or disjoint i32 %and, 2139095040
  br label %cleanup26

if.end4.i:
  %add1.i = add nsw i32 %exponent.addr.0.lcssa.i, 158
  %cmp5.i = icmp slt i32 %exponent.addr.0.lcssa.i, -157
  br i1 %cmp5.i, label %if.then6.i, label %if.end21.i

if.then6.i:
  %sub.i66 = sub nuw nsw i32 -157, %exponent.addr.0.lcssa.i
  %cmp7.i = icmp samesign ult i32 %exponent.addr.0.lcssa.i, -188
  %sub8.i = add nsw i32 %exponent.addr.0.lcssa.i, 189
  %shl9.i = shl i32 %significand.addr.0.lcssa.i, %sub8.i
  %2 = icmp ne i32 %shl9.i, 0
  %narrow.i = select i1 %cmp7.i, i1 true, i1 %2
  %cond.i67 = zext i1 %narrow.i to i32
  %shr.i68 = lshr i32 %significand.addr.0.lcssa.i, %sub.i66
  %or16.i69 = or i32 %shr.i68, %cond.i67
  %significand.addr.1.i = select i1 %cmp7.i, i32 1, i32 %or16.i69
  br label %if.end21.i

if.end21.i:
  %biased.0.i = phi i32 [ 1, %if.then6.i ], [ %add1.i, %if.end4.i ]
  %significand.addr.2.i = phi i32 [ %significand.addr.1.i, %if.then6.i ], [ %significand.addr.0.lcssa.i, %if.end4.i ]
  %shr22.i = lshr i32 %significand.addr.2.i, 8
  %and23.i = and i32 %significand.addr.2.i, 255
  %cmp24.i = icmp samesign ugt i32 %and23.i, 128
  %3 = and i32 %significand.addr.2.i, 511
  %4 = icmp eq i32 %3, 384
  %narrow54.i = or i1 %cmp24.i, %4
  %lor.ext.i = zext i1 %narrow54.i to i32
  %sub30.i = shl nuw nsw i32 %biased.0.i, 23
  %shl31.i = add nsw i32 %sub30.i, -8388608
  %add32.i = add nuw nsw i32 %shl31.i, %shr22.i
  %add33.i = add nuw nsw i32 %add32.i, %lor.ext.i
  %or34.i = or i32 %add33.i, %and
  br label %cleanup26

if.end23:
  %add = add nsw i32 %sub.i64, -300
  %tobool.not6.i = icmp eq i32 %add12.i, 0
  br i1 %tobool.not6.i, label %for.end.i, label %for.body.i

for.body.i:
  %significand.addr.08.i = phi i64 [ %or.i74, %for.body.i ], [ %or16.i, %if.end23 ]
  %exponent.addr.07.i = phi i32 [ %inc.i, %for.body.i ], [ %add, %if.end23 ]
  %shr1.i = lshr i64 %significand.addr.08.i, 1
  %and.i73 = and i64 %significand.addr.08.i, 1
  %or.i74 = or i64 %shr1.i, %and.i73
  %inc.i = add nsw i32 %exponent.addr.07.i, 1
  %tobool.not.i75 = icmp ult i64 %significand.addr.08.i, 8589934592
  br i1 %tobool.not.i75, label %for.end.loopexit.i, label %for.body.i

for.end.loopexit.i:
  %extract.t10.i = trunc nuw i64 %or.i74 to i32
  br label %for.end.i

for.end.i:
  %exponent.addr.0.lcssa.i76 = phi i32 [ %add, %if.end23 ], [ %inc.i, %for.end.loopexit.i ]
  %significand.addr.0.lcssa.off0.i = phi i32 [ %or.i57, %if.end23 ], [ %extract.t10.i, %for.end.loopexit.i ]
  %cmp.i.i = icmp eq i32 %significand.addr.0.lcssa.off0.i, 0
  br i1 %cmp.i.i, label %cleanup26, label %while.cond.preheader.i.i

while.cond.preheader.i.i:
  %tobool.not55.i.i = icmp sgt i32 %significand.addr.0.lcssa.off0.i, -1
  br i1 %tobool.not55.i.i, label %while.body.i.i, label %while.end.i.i

while.body.i.i:
  %exponent.addr.057.i.i = phi i32 [ %dec.i.i, %while.body.i.i ], [ %exponent.addr.0.lcssa.i76, %while.cond.preheader.i.i ]
  %significand.addr.056.i.i = phi i32 [ %shl.i.i, %while.body.i.i ], [ %significand.addr.0.lcssa.off0.i, %while.cond.preheader.i.i ]
  %shl.i.i = shl nuw i32 %significand.addr.056.i.i, 1
  %dec.i.i = add nsw i32 %exponent.addr.057.i.i, -1
  %tobool.not.i.i = icmp sgt i32 %shl.i.i, -1
  br i1 %tobool.not.i.i, label %while.body.i.i, label %while.end.i.i

while.end.i.i:
  %significand.addr.0.lcssa.i.i = phi i32 [ %significand.addr.0.lcssa.off0.i, %while.cond.preheader.i.i ], [ %shl.i.i, %while.body.i.i ]
  %exponent.addr.0.lcssa.i.i = phi i32 [ %exponent.addr.0.lcssa.i76, %while.cond.preheader.i.i ], [ %dec.i.i, %while.body.i.i ]
  %cmp2.i.i = icmp sgt i32 %exponent.addr.0.lcssa.i.i, 96
  br i1 %cmp2.i.i, label %if.then3.i.i, label %if.end4.i.i

if.then3.i.i:
  %or.i.i = or disjoint i32 %and, 2139095040
  br label %cleanup26

if.end4.i.i:
  %add1.i.i = add nsw i32 %exponent.addr.0.lcssa.i.i, 158
  %cmp5.i.i = icmp slt i32 %exponent.addr.0.lcssa.i.i, -157
  br i1 %cmp5.i.i, label %if.then6.i.i, label %if.end21.i.i

if.then6.i.i:
  %sub.i.i = sub nuw nsw i32 -157, %exponent.addr.0.lcssa.i.i
  %cmp7.i.i = icmp samesign ult i32 %exponent.addr.0.lcssa.i.i, -188
  %sub8.i.i = add nsw i32 %exponent.addr.0.lcssa.i.i, 189
  %shl9.i.i = shl i32 %significand.addr.0.lcssa.i.i, %sub8.i.i
  %5 = icmp ne i32 %shl9.i.i, 0
  %narrow.i.i = select i1 %cmp7.i.i, i1 true, i1 %5
  %cond.i.i = zext i1 %narrow.i.i to i32
  %shr.i.i = lshr i32 %significand.addr.0.lcssa.i.i, %sub.i.i
  %or16.i.i = or i32 %shr.i.i, %cond.i.i
  %significand.addr.1.i.i = select i1 %cmp7.i.i, i32 1, i32 %or16.i.i
  br label %if.end21.i.i

if.end21.i.i:
  %biased.0.i.i = phi i32 [ 1, %if.then6.i.i ], [ %add1.i.i, %if.end4.i.i ]
  %significand.addr.2.i.i = phi i32 [ %significand.addr.1.i.i, %if.then6.i.i ], [ %significand.addr.0.lcssa.i.i, %if.end4.i.i ]
  %shr22.i.i = lshr i32 %significand.addr.2.i.i, 8
  %and23.i.i = and i32 %significand.addr.2.i.i, 255
  %cmp24.i.i = icmp samesign ugt i32 %and23.i.i, 128
  %6 = and i32 %significand.addr.2.i.i, 511
  %7 = icmp eq i32 %6, 384
  %narrow54.i.i = or i1 %cmp24.i.i, %7
  %lor.ext.i.i = zext i1 %narrow54.i.i to i32
  %sub30.i.i = shl nuw nsw i32 %biased.0.i.i, 23
  %shl31.i.i = add nsw i32 %sub30.i.i, -8388608
  %add32.i.i = add nuw nsw i32 %shl31.i.i, %shr22.i.i
  %add33.i.i = add nuw nsw i32 %add32.i.i, %lor.ext.i.i
  %or34.i.i = or i32 %add33.i.i, %and
  br label %cleanup26

cleanup26:
  %retval.1 = phi i32 [ 2143289344, %if.then ], [ %spec.select, %lor.lhs.false4 ], [ %or.i70, %if.then3.i ], [ %or34.i, %if.end21.i ], [ %and, %for.end.i ], [ %or.i.i, %if.then3.i.i ], [ %or34.i.i, %if.end21.i.i ]
  ret i32 %retval.1
}

define i32 @fewbit_divide_floats(i32 noundef %a, i32 noundef %b) local_unnamed_addr #2 {
entry:
  %xor = xor i32 %b, %a
  %and = and i32 %xor, -2147483648
  %and1 = and i32 %a, 2147483647
  %and2 = and i32 %b, 2147483647
  %cmp.i = icmp samesign ugt i32 %and1, 2139095040
  %cmp.i83 = icmp samesign ugt i32 %and2, 2139095040
  %or.cond = select i1 %cmp.i, i1 true, i1 %cmp.i83
  br i1 %or.cond, label %cleanup, label %lor.lhs.false4

lor.lhs.false4:
  %cmp = icmp eq i32 %and1, %and2
  br i1 %cmp, label %land.lhs.true, label %if.end

land.lhs.true:
  switch i32 %a, label %if.end [
    i32 -8388608, label %cleanup
    i32 -2147483648, label %cleanup
    i32 2139095040, label %cleanup
    i32 0, label %cleanup
  ]

if.end:
  %cmp8 = icmp eq i32 %and1, 2139095040
  %cmp10 = icmp eq i32 %and2, 0
  %or.cond51 = or i1 %cmp8, %cmp10
  br i1 %or.cond51, label %if.then11, label %if.end12

if.then11:
  %or = or disjoint i32 %and, 2139095040
  br label %cleanup

if.end12:
  %cmp13 = icmp eq i32 %and1, 0
  %cmp15 = icmp eq i32 %and2, 2139095040
  %or.cond52 = or i1 %cmp13, %cmp15
  br i1 %or.cond52, label %cleanup, label %if.end17

if.end17:
  %and.i84 = and i32 %a, 8388607
  %and1.i = and i32 %a, 2139095040
  %tobool.not.i = icmp eq i32 %and1.i, 0
  %or.i = or disjoint i32 %and.i84, 8388608
  %and.i85 = and i32 %b, 8388607
  %and1.i86 = and i32 %b, 2139095040
  %tobool.not.i87 = icmp eq i32 %and1.i86, 0
  %or.i88 = or disjoint i32 %and.i85, 8388608
  %shr.i = lshr i32 %a, 23
  %and.i90 = and i32 %shr.i, 255
  %cond.i91 = tail call i32 @llvm.umax.i32(i32 %and.i90, i32 1)
  %shr.i92 = lshr i32 %b, 23
  %and.i93 = and i32 %shr.i92, 255
  %cond.i94 = tail call i32 @llvm.umax.i32(i32 %and.i93, i32 1)
  %sub = sub nsw i32 %cond.i91, %cond.i94
  br i1 %tobool.not.i, label %for.body, label %for.cond23.preheader

for.cond23.preheader:
  %remainder.0.lcssa = phi i32 [ %or.i, %if.end17 ], [ %shl, %for.body ]
  %exponent.0.lcssa = phi i32 [ %sub, %if.end17 ], [ %dec, %for.body ]
  br i1 %tobool.not.i87, label %for.body27, label %for.cond31.preheader

for.body:
  %exponent.0105 = phi i32 [ %dec, %for.body ], [ %sub, %if.end17 ]
  %remainder.0104 = phi i32 [ %shl, %for.body ], [ %and.i84, %if.end17 ]
  %shl = shl i32 %remainder.0104, 1
  %dec = add nsw i32 %exponent.0105, -1
  %0 = and i32 %remainder.0104, 4194304
  %tobool.not = icmp eq i32 %0, 0
  br i1 %tobool.not, label %for.body, label %for.cond23.preheader

for.cond31.preheader:
  %divisor.0.lcssa = phi i32 [ %or.i88, %for.cond23.preheader ], [ %shl28, %for.body27 ]
  %exponent.1.lcssa = phi i32 [ %exponent.0.lcssa, %for.cond23.preheader ], [ %inc, %for.body27 ]
  br label %for.body33

for.body27:
  %exponent.1110 = phi i32 [ %inc, %for.body27 ], [ %exponent.0.lcssa, %for.cond23.preheader ]
  %divisor.0109 = phi i32 [ %shl28, %for.body27 ], [ %and.i85, %for.cond23.preheader ]
  %shl28 = shl i32 %divisor.0109, 1
  %inc = add nsw i32 %exponent.1110, 1
  %1 = and i32 %divisor.0109, 4194304
  %tobool25.not = icmp eq i32 %1, 0
  br i1 %tobool25.not, label %for.body27, label %for.cond31.preheader

for.cond.cleanup:
  %shl45 = shl i32 %quotient.1, 1
  %cmp46 = icmp ne i32 %shl40, 0
  %conv = zext i1 %cmp46 to i32
  %or47 = or disjoint i32 %shl45, %conv
  %cmp.i96 = icmp eq i32 %or47, 0
  br i1 %cmp.i96, label %cleanup, label %while.cond.preheader.i

while.cond.preheader.i:
  %sub44 = add nsw i32 %exponent.1.lcssa, -27
  %tobool.not55.i = icmp sgt i32 %shl45, -1
  br i1 %tobool.not55.i, label %while.body.i, label %while.end.i

while.body.i:
  %exponent.addr.057.i = phi i32 [ %dec.i, %while.body.i ], [ %sub44, %while.cond.preheader.i ]
  %significand.addr.056.i = phi i32 [ %shl.i, %while.body.i ], [ %or47, %while.cond.preheader.i ]
  %shl.i = shl nuw i32 %significand.addr.056.i, 1
  %dec.i = add nsw i32 %exponent.addr.057.i, -1
  %tobool.not.i101 = icmp sgt i32 %shl.i, -1
  br i1 %tobool.not.i101, label %while.body.i, label %while.end.i

while.end.i:
  %significand.addr.0.lcssa.i = phi i32 [ %or47, %while.cond.preheader.i ], [ %shl.i, %while.body.i ]
  %exponent.addr.0.lcssa.i = phi i32 [ %sub44, %while.cond.preheader.i ], [ %dec.i, %while.body.i ]
  %cmp2.i = icmp sgt i32 %exponent.addr.0.lcssa.i, 96
  br i1 %cmp2.i, label %if.then3.i, label %if.end4.i

if.then3.i:
  %or.i100 = or disjoint i32 %and, 2139095040
  br label %cleanup

if.end4.i:
  %add1.i = add nsw i32 %exponent.addr.0.lcssa.i, 158
  %cmp5.i = icmp slt i32 %exponent.addr.0.lcssa.i, -157
  br i1 %cmp5.i, label %if.then6.i, label %if.end21.i

if.then6.i:
  %sub.i97 = sub nuw nsw i32 -157, %exponent.addr.0.lcssa.i
  %cmp7.i = icmp samesign ult i32 %exponent.addr.0.lcssa.i, -188
  %sub8.i = add nsw i32 %exponent.addr.0.lcssa.i, 189
  %shl9.i = shl i32 %significand.addr.0.lcssa.i, %sub8.i
  %2 = icmp ne i32 %shl9.i, 0
  %narrow.i = select i1 %cmp7.i, i1 true, i1 %2
  %cond.i98 = zext i1 %narrow.i to i32
  %shr.i99 = lshr i32 %significand.addr.0.lcssa.i, %sub.i97
  %or16.i = or i32 %shr.i99, %cond.i98
  %significand.addr.1.i = select i1 %cmp7.i, i32 1, i32 %or16.i
  br label %if.end21.i

if.end21.i:
  %biased.0.i = phi i32 [ 1, %if.then6.i ], [ %add1.i, %if.end4.i ]
  %significand.addr.2.i = phi i32 [ %significand.addr.1.i, %if.then6.i ], [ %significand.addr.0.lcssa.i, %if.end4.i ]
  %shr22.i = lshr i32 %significand.addr.2.i, 8
  %and23.i = and i32 %significand.addr.2.i, 255
  %cmp24.i = icmp samesign ugt i32 %and23.i, 128
  %3 = and i32 %significand.addr.2.i, 511
  %4 = icmp eq i32 %3, 384
  %narrow54.i = or i1 %cmp24.i, %4
  %lor.ext.i = zext i1 %narrow54.i to i32
  %sub30.i = shl nuw nsw i32 %biased.0.i, 23
  %shl31.i = add nsw i32 %sub30.i, -8388608
  %add32.i = add nuw nsw i32 %shl31.i, %shr22.i
  %add33.i = add nuw nsw i32 %add32.i, %lor.ext.i
  %or34.i = or i32 %add33.i, %and
  br label %cleanup

for.body33:
  %i.0115 = phi i32 [ 0, %for.cond31.preheader ], [ %inc42, %for.body33 ]
  %quotient.0114 = phi i32 [ 0, %for.cond31.preheader ], [ %quotient.1, %for.body33 ]
  %remainder.1113 = phi i32 [ %remainder.0.lcssa, %for.cond31.preheader ], [ %shl40, %for.body33 ]
  %shl34 = shl i32 %quotient.0114, 1
  %cmp35.not = icmp uge i32 %remainder.1113, %divisor.0.lcssa
  %sub37 = select i1 %cmp35.not, i32 %divisor.0.lcssa, i32 0
  %remainder.2 = sub nuw i32 %remainder.1113, %sub37
  %or38 = zext i1 %cmp35.not to i32
  %quotient.1 = or disjoint i32 %shl34, %or38
  %shl40 = shl i32 %remainder.2, 1
  %inc42 = add nuw nsw i32 %i.0115, 1
  %exitcond.not = icmp eq i32 %inc42, 27
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body33

cleanup:
  %retval.0 = phi i32 [ %or, %if.then11 ], [ 2143289344, %land.lhs.true ], [ 2143289344, %land.lhs.true ], [ 2143289344, %land.lhs.true ], [ 2143289344, %land.lhs.true ], [ 2143289344, %entry ], [ %and, %if.end12 ], [ %and, %for.cond.cleanup ], [ %or.i100, %if.then3.i ], [ %or34.i, %if.end21.i ]
  ret i32 %retval.0
}

define range(i32 -1, 3) i32 @fewbit_compare(i32 noundef %a, i32 noundef %b) local_unnamed_addr #3 {
entry:
  %and.i = and i32 %a, 2147483647
  %cmp.i = icmp samesign ugt i32 %and.i, 2139095040
  br i1 %cmp.i, label %return, label %lor.lhs.false

lor.lhs.false:
  %and.i32 = and i32 %b, 2147483647
  %cmp.i33 = icmp samesign ugt i32 %and.i32, 2139095040
  br i1 %cmp.i33, label %return, label %if.end

if.end:
  %or = or i32 %b, %a
  %and = and i32 %or, 2147483647
  %cmp = icmp eq i32 %and, 0
  br i1 %cmp, label %return, label %if.end3

if.end3:
  %not = xor i32 %and.i, -1
  %tobool.not30 = icmp slt i32 %a, 0
  %cond = select i1 %tobool.not30, i32 %not, i32 %a
  %not10 = xor i32 %and.i32, -1
  %tobool7.not31 = icmp slt i32 %b, 0
  %cond13 = select i1 %tobool7.not31, i32 %not10, i32 %b
  %cond19 = tail call i32 @llvm.scmp.i32.i32(i32 %cond, i32 %cond13)
  br label %return

return:
  %retval.0 = phi i32 [ %cond19, %if.end3 ], [ 2, %lor.lhs.false ], [ 2, %entry ], [ 0, %if.end ]
  ret i32 %retval.0
}

define i32 @fewbit_larger(i32 noundef %a, i32 noundef %b) local_unnamed_addr #3 {
entry:
  %and.i = and i32 %a, 2147483647
  %cmp.i = icmp samesign ugt i32 %and.i, 2139095040
  br i1 %cmp.i, label %return, label %lor.lhs.false

lor.lhs.false:
  %and.i8 = and i32 %b, 2147483647
  %cmp.i9 = icmp samesign ugt i32 %and.i8, 2139095040
  br i1 %cmp.i9, label %return, label %if.end

if.end:
  %not.i = xor i32 %and.i, -1
  %tobool.not4.i = icmp slt i32 %a, 0
  %cond.i = select i1 %tobool.not4.i, i32 %not.i, i32 %a
  %not.i11 = xor i32 %and.i8, -1
  %tobool.not4.i12 = icmp slt i32 %b, 0
  %cond.i13 = select i1 %tobool.not4.i12, i32 %not.i11, i32 %b
  %cmp = icmp slt i32 %cond.i, %cond.i13
  %cond = select i1 %cmp, i32 %b, i32 %a
  br label %return

return:
  %retval.0 = phi i32 [ %cond, %if.end ], [ 2143289344, %lor.lhs.false ], [ 2143289344, %entry ]
  ret i32 %retval.0
}

define i32 @fewbit_smaller(i32 noundef %a, i32 noundef %b) local_unnamed_addr #3 {
entry:
  %and.i = and i32 %a, 2147483647
  %cmp.i = icmp samesign ugt i32 %and.i, 2139095040
  br i1 %cmp.i, label %return, label %lor.lhs.false

lor.lhs.false:
  %and.i8 = and i32 %b, 2147483647
  %cmp.i9 = icmp samesign ugt i32 %and.i8, 2139095040
  br i1 %cmp.i9, label %return, label %if.end

if.end:
  %not.i = xor i32 %and.i, -1
  %tobool.not4.i = icmp slt i32 %a, 0
  %cond.i = select i1 %tobool.not4.i, i32 %not.i, i32 %a
  %not.i11 = xor i32 %and.i8, -1
  %tobool.not4.i12 = icmp slt i32 %b, 0
  %cond.i13 = select i1 %tobool.not4.i12, i32 %not.i11, i32 %b
  %cmp = icmp slt i32 %cond.i, %cond.i13
  %cond = select i1 %cmp, i32 %a, i32 %b
  br label %return

return:
  %retval.0 = phi i32 [ %cond, %if.end ], [ 2143289344, %lor.lhs.false ], [ 2143289344, %entry ]
  ret i32 %retval.0
}

define range(i32 0, 2139095041) i32 @fewbit_from_unsigned(i32 noundef %a) local_unnamed_addr #2 {
entry:
  %cmp.i = icmp eq i32 %a, 0
  br i1 %cmp.i, label %round_to_float.exit, label %while.cond.preheader.i

while.cond.preheader.i:
  %tobool.not55.i = icmp sgt i32 %a, -1
  br i1 %tobool.not55.i, label %while.body.i, label %if.end21.i

while.body.i:
  %exponent.addr.057.i = phi i32 [ %dec.i, %while.body.i ], [ 0, %while.cond.preheader.i ]
  %significand.addr.056.i = phi i32 [ %shl.i, %while.body.i ], [ %a, %while.cond.preheader.i ]
  %shl.i = shl nuw i32 %significand.addr.056.i, 1
  %dec.i = add nsw i32 %exponent.addr.057.i, -1
  %tobool.not.i = icmp sgt i32 %shl.i, -1
  br i1 %tobool.not.i, label %while.body.i, label %while.end.i

while.end.i:
  %cmp2.i = icmp sgt i32 %exponent.addr.057.i, 97
  br i1 %cmp2.i, label %round_to_float.exit, label %if.end4.i

if.end4.i:
  %add1.i = add nsw i32 %exponent.addr.057.i, 157
  %cmp5.i = icmp slt i32 %exponent.addr.057.i, -156
  br i1 %cmp5.i, label %if.then6.i, label %if.end21.i

if.then6.i:
  %sub.i = sub nuw nsw i32 -156, %exponent.addr.057.i
  %cmp7.i = icmp samesign ult i32 %exponent.addr.057.i, -187
  %sub8.i = add nsw i32 %exponent.addr.057.i, 188
  %shl9.i = shl i32 %shl.i, %sub8.i
  %0 = icmp ne i32 %shl9.i, 0
  %narrow.i = select i1 %cmp7.i, i1 true, i1 %0
  %cond.i = zext i1 %narrow.i to i32
  %shr.i = lshr i32 %shl.i, %sub.i
  %or16.i = or i32 %shr.i, %cond.i
  %significand.addr.1.i = select i1 %cmp7.i, i32 1, i32 %or16.i
  br label %if.end21.i

if.end21.i:
  %biased.0.i = phi i32 [ 1, %if.then6.i ], [ %add1.i, %if.end4.i ], [ 158, %while.cond.preheader.i ]
  %significand.addr.2.i = phi i32 [ %significand.addr.1.i, %if.then6.i ], [ %shl.i, %if.end4.i ], [ %a, %while.cond.preheader.i ]
  %shr22.i = lshr i32 %significand.addr.2.i, 8
  %and23.i = and i32 %significand.addr.2.i, 255
  %cmp24.i = icmp samesign ugt i32 %and23.i, 128
  %1 = and i32 %significand.addr.2.i, 511
  %2 = icmp eq i32 %1, 384
  %narrow54.i = or i1 %cmp24.i, %2
  %lor.ext.i = zext i1 %narrow54.i to i32
  %sub30.i = shl nuw nsw i32 %biased.0.i, 23
  %shl31.i = add nsw i32 %sub30.i, -8388608
  %add32.i = add nuw nsw i32 %shl31.i, %shr22.i
  %add33.i = add nuw nsw i32 %add32.i, %lor.ext.i
  br label %round_to_float.exit

round_to_float.exit:
  %retval.1.i = phi i32 [ 0, %entry ], [ %add33.i, %if.end21.i ], [ 2139095040, %while.end.i ]
  ret i32 %retval.1.i
}

define range(i32 -2147483648, 2139095041) i32 @fewbit_from_signed(i32 noundef %a) local_unnamed_addr #2 {
entry:
  %cmp = icmp slt i32 %a, 0
  br i1 %cmp, label %while.cond.preheader.i, label %cond.false

while.cond.preheader.i:
  %sub = sub i32 0, %a
  %tobool.not55.i = icmp sgt i32 %sub, -1
  br i1 %tobool.not55.i, label %while.body.i, label %if.end21.i

while.body.i:
  %exponent.addr.057.i = phi i32 [ %dec.i, %while.body.i ], [ 0, %while.cond.preheader.i ]
  %significand.addr.056.i = phi i32 [ %shl.i, %while.body.i ], [ %sub, %while.cond.preheader.i ]
  %shl.i = shl nuw i32 %significand.addr.056.i, 1
  %dec.i = add nsw i32 %exponent.addr.057.i, -1
  %tobool.not.i = icmp sgt i32 %shl.i, -1
  br i1 %tobool.not.i, label %while.body.i, label %while.end.i

while.end.i:
  %cmp2.i = icmp sgt i32 %exponent.addr.057.i, 97
  br i1 %cmp2.i, label %cond.end, label %if.end4.i

if.end4.i:
  %add1.i = add nsw i32 %exponent.addr.057.i, 157
  %cmp5.i = icmp slt i32 %exponent.addr.057.i, -156
  br i1 %cmp5.i, label %if.then6.i, label %if.end21.i

if.then6.i:
  %sub.i = sub nuw nsw i32 -156, %exponent.addr.057.i
  %cmp7.i = icmp samesign ult i32 %exponent.addr.057.i, -187
  %sub8.i = add nsw i32 %exponent.addr.057.i, 188
  %shl9.i = shl i32 %shl.i, %sub8.i
  %0 = icmp ne i32 %shl9.i, 0
  %narrow.i = select i1 %cmp7.i, i1 true, i1 %0
  %cond.i = zext i1 %narrow.i to i32
  %shr.i = lshr i32 %shl.i, %sub.i
  %or16.i = or i32 %shr.i, %cond.i
  %significand.addr.1.i = select i1 %cmp7.i, i32 1, i32 %or16.i
  br label %if.end21.i

if.end21.i:
  %biased.0.i = phi i32 [ 1, %if.then6.i ], [ %add1.i, %if.end4.i ], [ 158, %while.cond.preheader.i ]
  %significand.addr.2.i = phi i32 [ %significand.addr.1.i, %if.then6.i ], [ %shl.i, %if.end4.i ], [ -2147483648, %while.cond.preheader.i ]
  %shr22.i = lshr i32 %significand.addr.2.i, 8
  %and23.i = and i32 %significand.addr.2.i, 255
  %cmp24.i = icmp samesign ugt i32 %and23.i, 128
  %1 = and i32 %significand.addr.2.i, 511
  %2 = icmp eq i32 %1, 384
  %narrow54.i = or i1 %cmp24.i, %2
  %lor.ext.i = zext i1 %narrow54.i to i32
  %sub30.i = shl nuw nsw i32 %biased.0.i, 23
  %shl31.i = add nuw i32 %sub30.i, 2139095040
  %add32.i = add nuw nsw i32 %shl31.i, %shr22.i
  %add33.i = add nuw nsw i32 %add32.i, %lor.ext.i
  %or34.i = or i32 %add33.i, -2147483648
  br label %cond.end

cond.false:
  %cmp.i4 = icmp eq i32 %a, 0
  br i1 %cmp.i4, label %cond.end, label %while.body.i39

while.body.i39:
  %exponent.addr.057.i40 = phi i32 [ %dec.i43, %while.body.i39 ], [ 0, %cond.false ]
  %significand.addr.056.i41 = phi i32 [ %shl.i42, %while.body.i39 ], [ %a, %cond.false ]
  %shl.i42 = shl nuw i32 %significand.addr.056.i41, 1
  %dec.i43 = add nsw i32 %exponent.addr.057.i40, -1
  %tobool.not.i44 = icmp sgt i32 %shl.i42, -1
  br i1 %tobool.not.i44, label %while.body.i39, label %while.end.i7

while.end.i7:
  %cmp2.i10 = icmp sgt i32 %exponent.addr.057.i40, 97
  br i1 %cmp2.i10, label %cond.end, label %if.end4.i11

if.end4.i11:
  %add1.i12 = add nsw i32 %exponent.addr.057.i40, 157
  %cmp5.i13 = icmp slt i32 %exponent.addr.057.i40, -156
  br i1 %cmp5.i13, label %if.then6.i28, label %if.end21.i14

if.then6.i28:
  %sub.i29 = sub nuw nsw i32 -156, %exponent.addr.057.i40
  %cmp7.i30 = icmp samesign ult i32 %exponent.addr.057.i40, -187
  %sub8.i31 = add nsw i32 %exponent.addr.057.i40, 188
  %shl9.i32 = shl i32 %shl.i42, %sub8.i31
  %3 = icmp ne i32 %shl9.i32, 0
  %narrow.i33 = select i1 %cmp7.i30, i1 true, i1 %3
  %cond.i34 = zext i1 %narrow.i33 to i32
  %shr.i35 = lshr i32 %shl.i42, %sub.i29
  %or16.i36 = or i32 %shr.i35, %cond.i34
  %significand.addr.1.i37 = select i1 %cmp7.i30, i32 1, i32 %or16.i36
  br label %if.end21.i14

if.end21.i14:
  %biased.0.i15 = phi i32 [ 1, %if.then6.i28 ], [ %add1.i12, %if.end4.i11 ]
  %significand.addr.2.i16 = phi i32 [ %significand.addr.1.i37, %if.then6.i28 ], [ %shl.i42, %if.end4.i11 ]
  %shr22.i17 = lshr i32 %significand.addr.2.i16, 8
  %and23.i18 = and i32 %significand.addr.2.i16, 255
  %cmp24.i19 = icmp samesign ugt i32 %and23.i18, 128
  %4 = and i32 %significand.addr.2.i16, 511
  %5 = icmp eq i32 %4, 384
  %narrow54.i20 = or i1 %cmp24.i19, %5
  %lor.ext.i21 = zext i1 %narrow54.i20 to i32
  %sub30.i22 = shl nuw nsw i32 %biased.0.i15, 23
  %shl31.i23 = add nsw i32 %sub30.i22, -8388608
  %add32.i24 = add nuw nsw i32 %shl31.i23, %shr22.i17
  %add33.i25 = add nuw nsw i32 %add32.i24, %lor.ext.i21
  br label %cond.end

cond.end:
  %cond = phi i32 [ %or34.i, %if.end21.i ], [ -8388608, %while.end.i ], [ 0, %cond.false ], [ %add33.i25, %if.end21.i14 ], [ 2139095040, %while.end.i7 ]
  ret i32 %cond
}

define range(i32 -2147483648, 2139095041) i32 @fewbit_from_wide(i64 noundef %a) local_unnamed_addr #2 {
entry:
  %cmp = icmp slt i64 %a, 0
  br i1 %cmp, label %cond.true, label %cond.false

cond.true:
  %sub = sub i64 0, %a
  %tobool.not6.i = icmp ult i64 %sub, 4294967296
  %extract.t.i = trunc nuw i64 %sub to i32
  br i1 %tobool.not6.i, label %for.end.i, label %for.body.i

for.body.i:
  %significand.addr.08.i = phi i64 [ %or.i, %for.body.i ], [ %sub, %cond.true ]
  %exponent.addr.07.i = phi i32 [ %inc.i, %for.body.i ], [ 0, %cond.true ]
  %shr1.i = lshr i64 %significand.addr.08.i, 1
  %and.i = and i64 %significand.addr.08.i, 1
  %or.i = or i64 %shr1.i, %and.i
  %inc.i = add nuw nsw i32 %exponent.addr.07.i, 1
  %tobool.not.i = icmp ult i64 %significand.addr.08.i, 8589934592
  br i1 %tobool.not.i, label %for.end.loopexit.i, label %for.body.i

for.end.loopexit.i:
  %extract.t10.i = trunc nuw i64 %or.i to i32
  br label %for.end.i

for.end.i:
  %exponent.addr.0.lcssa.i = phi i32 [ 0, %cond.true ], [ %inc.i, %for.end.loopexit.i ]
  %significand.addr.0.lcssa.off0.i = phi i32 [ %extract.t.i, %cond.true ], [ %extract.t10.i, %for.end.loopexit.i ]
  %cmp.i.i = icmp eq i32 %significand.addr.0.lcssa.off0.i, 0
  br i1 %cmp.i.i, label %cond.end, label %while.cond.preheader.i.i

while.cond.preheader.i.i:
  %tobool.not55.i.i = icmp sgt i32 %significand.addr.0.lcssa.off0.i, -1
  br i1 %tobool.not55.i.i, label %while.body.i.i, label %while.end.i.i

while.body.i.i:
  %exponent.addr.057.i.i = phi i32 [ %dec.i.i, %while.body.i.i ], [ %exponent.addr.0.lcssa.i, %while.cond.preheader.i.i ]
  %significand.addr.056.i.i = phi i32 [ %shl.i.i, %while.body.i.i ], [ %significand.addr.0.lcssa.off0.i, %while.cond.preheader.i.i ]
  %shl.i.i = shl nuw i32 %significand.addr.056.i.i, 1
  %dec.i.i = add nsw i32 %exponent.addr.057.i.i, -1
  %tobool.not.i.i = icmp sgt i32 %shl.i.i, -1
  br i1 %tobool.not.i.i, label %while.body.i.i, label %while.end.i.i

while.end.i.i:
  %significand.addr.0.lcssa.i.i = phi i32 [ %significand.addr.0.lcssa.off0.i, %while.cond.preheader.i.i ], [ %shl.i.i, %while.body.i.i ]
  %exponent.addr.0.lcssa.i.i = phi i32 [ %exponent.addr.0.lcssa.i, %while.cond.preheader.i.i ], [ %dec.i.i, %while.body.i.i ]
  %cmp2.i.i = icmp sgt i32 %exponent.addr.0.lcssa.i.i, 96
  br i1 %cmp2.i.i, label %cond.end, label %if.end4.i.i

if.end4.i.i:
  %add1.i.i = add nsw i32 %exponent.addr.0.lcssa.i.i, 158
  %cmp5.i.i = icmp slt i32 %exponent.addr.0.lcssa.i.i, -157
  br i1 %cmp5.i.i, label %if.then6.i.i, label %if.end21.i.i

if.then6.i.i:
  %sub.i.i = sub nuw nsw i32 -157, %exponent.addr.0.lcssa.i.i
  %cmp7.i.i = icmp samesign ult i32 %exponent.addr.0.lcssa.i.i, -188
  %sub8.i.i = add nsw i32 %exponent.addr.0.lcssa.i.i, 189
  %shl9.i.i = shl i32 %significand.addr.0.lcssa.i.i, %sub8.i.i
  %0 = icmp ne i32 %shl9.i.i, 0
  %narrow.i.i = select i1 %cmp7.i.i, i1 true, i1 %0
  %cond.i.i = zext i1 %narrow.i.i to i32
  %shr.i.i = lshr i32 %significand.addr.0.lcssa.i.i, %sub.i.i
  %or16.i.i = or i32 %shr.i.i, %cond.i.i
  %significand.addr.1.i.i = select i1 %cmp7.i.i, i32 1, i32 %or16.i.i
  br label %if.end21.i.i

if.end21.i.i:
  %biased.0.i.i = phi i32 [ 1, %if.then6.i.i ], [ %add1.i.i, %if.end4.i.i ]
  %significand.addr.2.i.i = phi i32 [ %significand.addr.1.i.i, %if.then6.i.i ], [ %significand.addr.0.lcssa.i.i, %if.end4.i.i ]
  %shr22.i.i = lshr i32 %significand.addr.2.i.i, 8
  %and23.i.i = and i32 %significand.addr.2.i.i, 255
  %cmp24.i.i = icmp samesign ugt i32 %and23.i.i, 128
  %1 = and i32 %significand.addr.2.i.i, 511
  %2 = icmp eq i32 %1, 384
  %narrow54.i.i = or i1 %cmp24.i.i, %2
  %lor.ext.i.i = zext i1 %narrow54.i.i to i32
  %sub30.i.i = shl nuw nsw i32 %biased.0.i.i, 23
  %shl31.i.i = add nuw i32 %sub30.i.i, 2139095040
  %add32.i.i = add nuw nsw i32 %shl31.i.i, %shr22.i.i
  %add33.i.i = add nuw nsw i32 %add32.i.i, %lor.ext.i.i
  %or34.i.i = or i32 %add33.i.i, -2147483648
  br label %cond.end

cond.false:
  %tobool.not6.i4 = icmp samesign ult i64 %a, 4294967296
  %extract.t.i5 = trunc nuw i64 %a to i32
  br i1 %tobool.not6.i4, label %for.end.i16, label %for.body.i6

for.body.i6:
  %significand.addr.08.i7 = phi i64 [ %or.i11, %for.body.i6 ], [ %a, %cond.false ]
  %exponent.addr.07.i8 = phi i32 [ %inc.i12, %for.body.i6 ], [ 0, %cond.false ]
  %shr1.i9 = lshr i64 %significand.addr.08.i7, 1
  %and.i10 = and i64 %significand.addr.08.i7, 1
  %or.i11 = or i64 %shr1.i9, %and.i10
  %inc.i12 = add nuw nsw i32 %exponent.addr.07.i8, 1
  %tobool.not.i13 = icmp ult i64 %significand.addr.08.i7, 8589934592
  br i1 %tobool.not.i13, label %for.end.loopexit.i14, label %for.body.i6

for.end.loopexit.i14:
  %extract.t10.i15 = trunc nuw i64 %or.i11 to i32
  br label %for.end.i16

for.end.i16:
  %exponent.addr.0.lcssa.i17 = phi i32 [ 0, %cond.false ], [ %inc.i12, %for.end.loopexit.i14 ]
  %significand.addr.0.lcssa.off0.i18 = phi i32 [ %extract.t.i5, %cond.false ], [ %extract.t10.i15, %for.end.loopexit.i14 ]
  %cmp.i.i19 = icmp eq i32 %significand.addr.0.lcssa.off0.i18, 0
  br i1 %cmp.i.i19, label %cond.end, label %while.cond.preheader.i.i20

while.cond.preheader.i.i20:
  %tobool.not55.i.i21 = icmp sgt i32 %significand.addr.0.lcssa.off0.i18, -1
  br i1 %tobool.not55.i.i21, label %while.body.i.i54, label %while.end.i.i22

while.body.i.i54:
  %exponent.addr.057.i.i55 = phi i32 [ %dec.i.i58, %while.body.i.i54 ], [ %exponent.addr.0.lcssa.i17, %while.cond.preheader.i.i20 ]
  %significand.addr.056.i.i56 = phi i32 [ %shl.i.i57, %while.body.i.i54 ], [ %significand.addr.0.lcssa.off0.i18, %while.cond.preheader.i.i20 ]
  %shl.i.i57 = shl nuw i32 %significand.addr.056.i.i56, 1
  %dec.i.i58 = add nsw i32 %exponent.addr.057.i.i55, -1
  %tobool.not.i.i59 = icmp sgt i32 %shl.i.i57, -1
  br i1 %tobool.not.i.i59, label %while.body.i.i54, label %while.end.i.i22

while.end.i.i22:
  %significand.addr.0.lcssa.i.i23 = phi i32 [ %significand.addr.0.lcssa.off0.i18, %while.cond.preheader.i.i20 ], [ %shl.i.i57, %while.body.i.i54 ]
  %exponent.addr.0.lcssa.i.i24 = phi i32 [ %exponent.addr.0.lcssa.i17, %while.cond.preheader.i.i20 ], [ %dec.i.i58, %while.body.i.i54 ]
  %cmp2.i.i25 = icmp sgt i32 %exponent.addr.0.lcssa.i.i24, 96
  br i1 %cmp2.i.i25, label %cond.end, label %if.end4.i.i26

if.end4.i.i26:
  %add1.i.i27 = add nsw i32 %exponent.addr.0.lcssa.i.i24, 158
  %cmp5.i.i28 = icmp slt i32 %exponent.addr.0.lcssa.i.i24, -157
  br i1 %cmp5.i.i28, label %if.then6.i.i43, label %if.end21.i.i29

if.then6.i.i43:
  %sub.i.i44 = sub nuw nsw i32 -157, %exponent.addr.0.lcssa.i.i24
  %cmp7.i.i45 = icmp samesign ult i32 %exponent.addr.0.lcssa.i.i24, -188
  %sub8.i.i46 = add nsw i32 %exponent.addr.0.lcssa.i.i24, 189
  %shl9.i.i47 = shl i32 %significand.addr.0.lcssa.i.i23, %sub8.i.i46
  %3 = icmp ne i32 %shl9.i.i47, 0
  %narrow.i.i48 = select i1 %cmp7.i.i45, i1 true, i1 %3
  %cond.i.i49 = zext i1 %narrow.i.i48 to i32
  %shr.i.i50 = lshr i32 %significand.addr.0.lcssa.i.i23, %sub.i.i44
  %or16.i.i51 = or i32 %shr.i.i50, %cond.i.i49
  %significand.addr.1.i.i52 = select i1 %cmp7.i.i45, i32 1, i32 %or16.i.i51
  br label %if.end21.i.i29

if.end21.i.i29:
  %biased.0.i.i30 = phi i32 [ 1, %if.then6.i.i43 ], [ %add1.i.i27, %if.end4.i.i26 ]
  %significand.addr.2.i.i31 = phi i32 [ %significand.addr.1.i.i52, %if.then6.i.i43 ], [ %significand.addr.0.lcssa.i.i23, %if.end4.i.i26 ]
  %shr22.i.i32 = lshr i32 %significand.addr.2.i.i31, 8
  %and23.i.i33 = and i32 %significand.addr.2.i.i31, 255
  %cmp24.i.i34 = icmp samesign ugt i32 %and23.i.i33, 128
  %4 = and i32 %significand.addr.2.i.i31, 511
  %5 = icmp eq i32 %4, 384
  %narrow54.i.i35 = or i1 %cmp24.i.i34, %5
  %lor.ext.i.i36 = zext i1 %narrow54.i.i35 to i32
  %sub30.i.i37 = shl nuw nsw i32 %biased.0.i.i30, 23
  %shl31.i.i38 = add nsw i32 %sub30.i.i37, -8388608
  %add32.i.i39 = add nuw nsw i32 %shl31.i.i38, %shr22.i.i32
  %add33.i.i40 = add nuw nsw i32 %add32.i.i39, %lor.ext.i.i36
  br label %cond.end

cond.end:
  %cond = phi i32 [ -2147483648, %for.end.i ], [ %or34.i.i, %if.end21.i.i ], [ -8388608, %while.end.i.i ], [ 0, %for.end.i16 ], [ %add33.i.i40, %if.end21.i.i29 ], [ 2139095040, %while.end.i.i22 ]
  ret i32 %cond
}

define range(i32 0, 2139095041) i32 @fewbit_from_wide_unsigned(i64 noundef %a) local_unnamed_addr #2 {
entry:
  %tobool.not6.i = icmp ult i64 %a, 4294967296
  %extract.t.i = trunc nuw i64 %a to i32
  br i1 %tobool.not6.i, label %for.end.i, label %for.body.i

for.body.i:
  %significand.addr.08.i = phi i64 [ %or.i, %for.body.i ], [ %a, %entry ]
  %exponent.addr.07.i = phi i32 [ %inc.i, %for.body.i ], [ 0, %entry ]
  %shr1.i = lshr i64 %significand.addr.08.i, 1
  %and.i = and i64 %significand.addr.08.i, 1
  %or.i = or i64 %shr1.i, %and.i
  %inc.i = add nuw nsw i32 %exponent.addr.07.i, 1
  %tobool.not.i = icmp ult i64 %significand.addr.08.i, 8589934592
  br i1 %tobool.not.i, label %for.end.loopexit.i, label %for.body.i

for.end.loopexit.i:
  %extract.t10.i = trunc nuw i64 %or.i to i32
  br label %for.end.i

for.end.i:
  %exponent.addr.0.lcssa.i = phi i32 [ 0, %entry ], [ %inc.i, %for.end.loopexit.i ]
  %significand.addr.0.lcssa.off0.i = phi i32 [ %extract.t.i, %entry ], [ %extract.t10.i, %for.end.loopexit.i ]
  %cmp.i.i = icmp eq i32 %significand.addr.0.lcssa.off0.i, 0
  br i1 %cmp.i.i, label %round_wide_to_float.exit, label %while.cond.preheader.i.i

while.cond.preheader.i.i:
  %tobool.not55.i.i = icmp sgt i32 %significand.addr.0.lcssa.off0.i, -1
  br i1 %tobool.not55.i.i, label %while.body.i.i, label %while.end.i.i

while.body.i.i:
  %exponent.addr.057.i.i = phi i32 [ %dec.i.i, %while.body.i.i ], [ %exponent.addr.0.lcssa.i, %while.cond.preheader.i.i ]
  %significand.addr.056.i.i = phi i32 [ %shl.i.i, %while.body.i.i ], [ %significand.addr.0.lcssa.off0.i, %while.cond.preheader.i.i ]
  %shl.i.i = shl nuw i32 %significand.addr.056.i.i, 1
  %dec.i.i = add nsw i32 %exponent.addr.057.i.i, -1
  %tobool.not.i.i = icmp sgt i32 %shl.i.i, -1
  br i1 %tobool.not.i.i, label %while.body.i.i, label %while.end.i.i

while.end.i.i:
  %significand.addr.0.lcssa.i.i = phi i32 [ %significand.addr.0.lcssa.off0.i, %while.cond.preheader.i.i ], [ %shl.i.i, %while.body.i.i ]
  %exponent.addr.0.lcssa.i.i = phi i32 [ %exponent.addr.0.lcssa.i, %while.cond.preheader.i.i ], [ %dec.i.i, %while.body.i.i ]
  %cmp2.i.i = icmp sgt i32 %exponent.addr.0.lcssa.i.i, 96
  br i1 %cmp2.i.i, label %round_wide_to_float.exit, label %if.end4.i.i

if.end4.i.i:
  %add1.i.i = add nsw i32 %exponent.addr.0.lcssa.i.i, 158
  %cmp5.i.i = icmp slt i32 %exponent.addr.0.lcssa.i.i, -157
  br i1 %cmp5.i.i, label %if.then6.i.i, label %if.end21.i.i

if.then6.i.i:
  %sub.i.i = sub nuw nsw i32 -157, %exponent.addr.0.lcssa.i.i
  %cmp7.i.i = icmp samesign ult i32 %exponent.addr.0.lcssa.i.i, -188
  %sub8.i.i = add nsw i32 %exponent.addr.0.lcssa.i.i, 189
  %shl9.i.i = shl i32 %significand.addr.0.lcssa.i.i, %sub8.i.i
  %0 = icmp ne i32 %shl9.i.i, 0
  %narrow.i.i = select i1 %cmp7.i.i, i1 true, i1 %0
  %cond.i.i = zext i1 %narrow.i.i to i32
  %shr.i.i = lshr i32 %significand.addr.0.lcssa.i.i, %sub.i.i
  %or16.i.i = or i32 %shr.i.i, %cond.i.i
  %significand.addr.1.i.i = select i1 %cmp7.i.i, i32 1, i32 %or16.i.i
  br label %if.end21.i.i

if.end21.i.i:
  %biased.0.i.i = phi i32 [ 1, %if.then6.i.i ], [ %add1.i.i, %if.end4.i.i ]
  %significand.addr.2.i.i = phi i32 [ %significand.addr.1.i.i, %if.then6.i.i ], [ %significand.addr.0.lcssa.i.i, %if.end4.i.i ]
  %shr22.i.i = lshr i32 %significand.addr.2.i.i, 8
  %and23.i.i = and i32 %significand.addr.2.i.i, 255
  %cmp24.i.i = icmp samesign ugt i32 %and23.i.i, 128
  %1 = and i32 %significand.addr.2.i.i, 511
  %2 = icmp eq i32 %1, 384
  %narrow54.i.i = or i1 %cmp24.i.i, %2
  %lor.ext.i.i = zext i1 %narrow54.i.i to i32
  %sub30.i.i = shl nuw nsw i32 %biased.0.i.i, 23
  %shl31.i.i = add nsw i32 %sub30.i.i, -8388608
  %add32.i.i = add nuw nsw i32 %shl31.i.i, %shr22.i.i
  %add33.i.i = add nuw nsw i32 %add32.i.i, %lor.ext.i.i
  br label %round_wide_to_float.exit

round_wide_to_float.exit:
  %retval.1.i.i = phi i32 [ 0, %for.end.i ], [ %add33.i.i, %if.end21.i.i ], [ 2139095040, %while.end.i.i ]
  ret i32 %retval.1.i.i
}

define range(i32 -1, -255) i32 @fewbit_to_unsigned(i32 noundef %a) local_unnamed_addr #3 {
entry:
  %or.cond = icmp ugt i32 %a, 2139095040
  br i1 %or.cond, label %cond.end, label %cond.false

cond.false:
  %shr.i.i = lshr i32 %a, 23
  %cond.i.i = tail call i32 @llvm.umax.i32(i32 %shr.i.i, i32 1)
  %sub.i.i = add nsw i32 %cond.i.i, -150
  %and.i13.i = and i32 %a, 8388607
  %tobool.not.i.i = icmp samesign ult i32 %a, 8388608
  %or.i.i = or disjoint i32 %and.i13.i, 8388608
  %cond.i14.i = select i1 %tobool.not.i.i, i32 %and.i13.i, i32 %or.i.i
  %cmp.i4 = icmp samesign ugt i32 %a, 1333788671
  br i1 %cmp.i4, label %cond.end, label %if.end.i

if.end.i:
  %cmp2.i = icmp samesign ugt i32 %a, 1258291199
  br i1 %cmp2.i, label %if.then3.i, label %if.end4.i

if.then3.i:
  %shl.i = shl nuw i32 %or.i.i, %sub.i.i
  br label %cond.end

if.end4.i:
  %cmp5.i = icmp samesign ugt i32 %sub.i.i, -32
  %sub.i = sub nuw nsw i32 150, %cond.i.i
  %shr.i = lshr i32 %cond.i14.i, %sub.i
  %cond.i = select i1 %cmp5.i, i32 %shr.i, i32 0
  br label %cond.end

cond.end:
  %cond = phi i32 [ 0, %entry ], [ %shl.i, %if.then3.i ], [ %cond.i, %if.end4.i ], [ -1, %cond.false ]
  ret i32 %cond
}

define i32 @fewbit_to_signed(i32 noundef %a) local_unnamed_addr #3 {
entry:
  %and.i = and i32 %a, 2147483647
  %cmp.i = icmp samesign ugt i32 %and.i, 2139095040
  br i1 %cmp.i, label %return, label %if.end

if.end:
  %shr.i.i = lshr i32 %a, 23
  %and.i.i = and i32 %shr.i.i, 255
  %cond.i.i = tail call i32 @llvm.umax.i32(i32 %and.i.i, i32 1)
  %sub.i.i = add nsw i32 %cond.i.i, -150
  %and.i13.i = and i32 %a, 8388607
  %and1.i.i = and i32 %a, 2139095040
  %tobool.not.i.i = icmp eq i32 %and1.i.i, 0
  %or.i.i = or disjoint i32 %and.i13.i, 8388608
  %cond.i14.i = select i1 %tobool.not.i.i, i32 %and.i13.i, i32 %or.i.i
  %cmp.i14 = icmp samesign ugt i32 %and.i.i, 158
  br i1 %cmp.i14, label %truncate_magnitude.exit, label %if.end.i

if.end.i:
  %cmp2.i = icmp samesign ugt i32 %and.i.i, 149
  br i1 %cmp2.i, label %if.then3.i, label %if.end4.i

if.then3.i:
  %shl.i = shl nuw i32 %cond.i14.i, %sub.i.i
  br label %truncate_magnitude.exit

if.end4.i:
  %cmp5.i = icmp samesign ugt i32 %sub.i.i, -32
  %sub.i = sub nuw nsw i32 150, %cond.i.i
  %shr.i = lshr i32 %cond.i14.i, %sub.i
  %cond.i = select i1 %cmp5.i, i32 %shr.i, i32 0
  br label %truncate_magnitude.exit

truncate_magnitude.exit:
  %retval.0.i = phi i32 [ %shl.i, %if.then3.i ], [ %cond.i, %if.end4.i ], [ -1, %if.end ]
  %tobool.not = icmp sgt i32 %a, -1
  br i1 %tobool.not, label %if.end3, label %if.then2

if.then2:
  %cmp = icmp ugt i32 %retval.0.i, -2147483648
  %sub = sub i32 0, %retval.0.i
  %cond = select i1 %cmp, i32 -2147483648, i32 %sub
  br label %return

if.end3:
  %cond8 = tail call i32 @llvm.umin.i32(i32 %retval.0.i, i32 2147483647)
  br label %return

return:
  %retval.1 = phi i32 [ 0, %entry ], [ %cond, %if.then2 ], [ %cond8, %if.end3 ]
  ret i32 %retval.1
}

define i32 @fewbit_round(i32 noundef %a) local_unnamed_addr #3 {
entry:
  %shr.i = lshr i32 %a, 23
  %and.i = and i32 %shr.i, 255
  %cond.i = tail call i32 @llvm.umax.i32(i32 %and.i, i32 1)
  %sub.i = add nsw i32 %cond.i, -150
  %cmp = icmp samesign ugt i32 %and.i, 149
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %and.i.i = and i32 %a, 2147483647
  %cmp.i.i = icmp samesign ugt i32 %and.i.i, 2139095040
  br i1 %cmp.i.i, label %cleanup, label %if.end.i

if.end.i:
  %and.i13.i.i = and i32 %a, 8388607
  %and1.i.i.i = and i32 %a, 2139095040
  %tobool.not.i.i.i = icmp eq i32 %and1.i.i.i, 0
  %or.i.i.i = or disjoint i32 %and.i13.i.i, 8388608
  %cond.i14.i.i = select i1 %tobool.not.i.i.i, i32 %and.i13.i.i, i32 %or.i.i.i
  %cmp.i14.i = icmp samesign ugt i32 %and.i, 158
  %shl.i.i = shl nuw i32 %cond.i14.i.i, %sub.i
  %retval.0.i.i = select i1 %cmp.i14.i, i32 -1, i32 %shl.i.i
  %tobool.not.i = icmp sgt i32 %a, -1
  br i1 %tobool.not.i, label %if.end3.i, label %if.then2.i

if.then2.i:
  %cmp.i = icmp ugt i32 %retval.0.i.i, -2147483648
  %sub.i31 = sub i32 0, %retval.0.i.i
  %cond.i32 = select i1 %cmp.i, i32 -2147483648, i32 %sub.i31
  br label %cleanup

if.end3.i:
  %cond8.i = tail call i32 @llvm.umin.i32(i32 %retval.0.i.i, i32 2147483647)
  br label %cleanup

if.end:
  %cmp3 = icmp samesign ugt i32 %sub.i, -26
  br i1 %cmp3, label %if.then4, label %if.end12

if.then4:
  %and1.i = and i32 %a, 2139095040
  %tobool.not.i34 = icmp eq i32 %and1.i, 0
  %and.i33 = and i32 %a, 8388607
  %or.i = or disjoint i32 %and.i33, 8388608
  %cond.i35 = select i1 %tobool.not.i34, i32 %and.i33, i32 %or.i
  %sub = sub nuw nsw i32 150, %cond.i
  %sub5 = sub nuw nsw i32 149, %cond.i
  %shl = shl nuw nsw i32 1, %sub5
  %add = shl nuw nsw i32 2, %sub5
  %sub6 = add nuw nsw i32 %add, 16777215
  %and = and i32 %sub6, %cond.i35
  %shr = lshr i32 %cond.i35, %sub
  %cmp8 = icmp samesign ugt i32 %and, %shl
  br i1 %cmp8, label %lor.end, label %lor.rhs

lor.rhs:
  %cmp9 = icmp eq i32 %and, %shl
  %and10 = and i32 %shr, 1
  %tobool = icmp ne i32 %and10, 0
  %0 = select i1 %cmp9, i1 %tobool, i1 false
  %1 = zext i1 %0 to i32
  br label %lor.end

lor.end:
  %lor.ext = phi i32 [ 1, %if.then4 ], [ %1, %lor.rhs ]
  %add11 = add nuw nsw i32 %lor.ext, %shr
  br label %if.end12

if.end12:
  %whole.0 = phi i32 [ %add11, %lor.end ], [ 0, %if.end ]
  %sub15 = sub nsw i32 0, %whole.0
  %tobool14.not30 = icmp slt i32 %a, 0
  %cond = select i1 %tobool14.not30, i32 %sub15, i32 %whole.0
  br label %cleanup

cleanup:
  %retval.0 = phi i32 [ %cond, %if.end12 ], [ 0, %if.then ], [ %cond.i32, %if.then2.i ], [ %cond8.i, %if.end3.i ]
  ret i32 %retval.0
}

define i32 @fewbit_round_float(i32 noundef %a) local_unnamed_addr #2 {
entry:
  %shr.i = lshr i32 %a, 23
  %and.i = and i32 %shr.i, 255
  %cond.i = tail call i32 @llvm.umax.i32(i32 %and.i, i32 1)
  %cmp = icmp samesign ugt i32 %and.i, 149
  br i1 %cmp, label %if.then, label %if.end.i

if.then:
  %and.i9 = and i32 %a, 2147483647
  %cmp.i = icmp samesign ugt i32 %and.i9, 2139095040
  %cond = select i1 %cmp.i, i32 2143289344, i32 %a
  br label %return

if.end.i:
  %0 = add nsw i32 %cond.i, -125
  %cmp3.i = icmp ult i32 %0, 25
  br i1 %cmp3.i, label %if.then4.i, label %if.end12.i

if.then4.i:
  %and1.i.i = and i32 %a, 2139095040
  %tobool.not.i34.i = icmp eq i32 %and1.i.i, 0
  %and.i33.i = and i32 %a, 8388607
  %or.i.i = or disjoint i32 %and.i33.i, 8388608
  %cond.i35.i = select i1 %tobool.not.i34.i, i32 %and.i33.i, i32 %or.i.i
  %sub.i12 = sub nuw nsw i32 150, %cond.i
  %sub5.i = sub nuw nsw i32 149, %cond.i
  %shl.i = shl nuw nsw i32 1, %sub5.i
  %add.i = shl nuw nsw i32 2, %sub5.i
  %sub6.i = add nuw nsw i32 %add.i, 16777215
  %and.i13 = and i32 %sub6.i, %cond.i35.i
  %shr.i14 = lshr i32 %cond.i35.i, %sub.i12
  %cmp8.i = icmp samesign ugt i32 %and.i13, %shl.i
  br i1 %cmp8.i, label %lor.end.i, label %lor.rhs.i

lor.rhs.i:
  %cmp9.i = icmp eq i32 %and.i13, %shl.i
  %and10.i = and i32 %shr.i14, 1
  %tobool.i = icmp ne i32 %and10.i, 0
  %1 = select i1 %cmp9.i, i1 %tobool.i, i1 false
  %2 = zext i1 %1 to i32
  br label %lor.end.i

lor.end.i:
  %lor.ext.i = phi i32 [ 1, %if.then4.i ], [ %2, %lor.rhs.i ]
  %add11.i = add nuw nsw i32 %lor.ext.i, %shr.i14
  br label %if.end12.i

if.end12.i:
  %whole.0.i = phi i32 [ %add11.i, %lor.end.i ], [ 0, %if.end.i ]
  %sub15.i = sub nsw i32 0, %whole.0.i
  %tobool14.not30.i = icmp slt i32 %a, 0
  %cond.i11 = select i1 %tobool14.not30.i, i32 %sub15.i, i32 %whole.0.i
  %and = and i32 %a, -2147483648
  %call3 = tail call i32 @fewbit_from_signed(i32 noundef %cond.i11) #5
  %and4 = and i32 %call3, 2147483647
  %or = or disjoint i32 %and4, %and
  br label %return

return:
  %retval.0 = phi i32 [ %cond, %if.then ], [ %or, %if.end12.i ]
  ret i32 %retval.0
}

define i64 @fewbit_add64(i64 noundef %a, i64 noundef %b) local_unnamed_addr #2 {
entry:
  %and = and i64 %a, 9223372036854775807
  %and1 = and i64 %b, 9223372036854775807
  %cmp = icmp samesign ult i64 %and, %and1
  %spec.select75 = select i1 %cmp, i64 %b, i64 %a
  %and2 = and i64 %spec.select75, 9218868437227405312
  %cmp3 = icmp eq i64 %and2, 9218868437227405312
  br i1 %cmp3, label %if.then4, label %if.end6

if.then4:
  %xor = xor i64 %b, %a
  %cmp5 = icmp eq i64 %xor, -9223372036854775808
  %and.i = and i64 %spec.select75, 9223372036854775807
  %cmp.i = icmp samesign ugt i64 %and.i, 9218868437227405312
  %or.cond = or i1 %cmp5, %cmp.i
  %cond = select i1 %or.cond, i64 9221120237041090560, i64 %spec.select75
  br label %return

if.end6:
  %spec.select = select i1 %cmp, i64 %a, i64 %b
  %and7 = and i64 %spec.select75, -9223372036854775808
  %shr.i = lshr i64 %spec.select75, 52
  %conv.i = trunc nuw nsw i64 %shr.i to i32
  %and.i76 = and i32 %conv.i, 2047
  %cond.i = tail call i32 @llvm.umax.i32(i32 %and.i76, i32 1)
  %shr.i77 = lshr i64 %spec.select, 52
  %conv.i78 = trunc nuw nsw i64 %shr.i77 to i32
  %and.i79 = and i32 %conv.i78, 2047
  %cond.i80 = tail call i32 @llvm.umax.i32(i32 %and.i79, i32 1)
  %sub = sub nsw i32 %cond.i, %cond.i80
  %tobool.not.i = icmp eq i64 %and2, 0
  %and.i82 = shl i64 %spec.select75, 10
  %0 = and i64 %and.i82, 4611686018427386880
  %1 = or disjoint i64 %0, 4611686018427387904
  %shl = select i1 %tobool.not.i, i64 %0, i64 %1
  %and.i84 = and i64 %spec.select, 4503599627370495
  %and1.i85 = and i64 %spec.select, 9218868437227405312
  %tobool.not.i86 = icmp eq i64 %and1.i85, 0
  %or.i87 = or disjoint i64 %and.i84, 4503599627370496
  %cond.i88 = select i1 %tobool.not.i86, i64 %and.i84, i64 %or.i87
  %shl12 = shl nuw nsw i64 %cond.i88, 10
  %cmp13 = icmp sgt i32 %sub, 63
  %cmp15 = icmp ne i64 %cond.i88, 0
  %conv16 = zext i1 %cmp15 to i64
  %smaller.0 = select i1 %cmp13, i64 %conv16, i64 %shl12
  %2 = add nsw i32 %sub, -1
  %3 = icmp ult i32 %2, 63
  br i1 %3, label %for.body, label %for.end

for.body:
  %4 = phi i32 [ %5, %for.body ], [ %2, %if.end6 ]
  %smaller.195 = phi i64 [ %or, %for.body ], [ %smaller.0, %if.end6 ]
  %shr = lshr i64 %smaller.195, 1
  %and22 = and i64 %smaller.195, 1
  %or = or i64 %shr, %and22
  %5 = add nsw i32 %4, -1
  %6 = icmp ult i32 %5, 63
  br i1 %6, label %for.body, label %for.end

for.end:
  %smaller.1.lcssa = phi i64 [ %smaller.0, %if.end6 ], [ %or, %for.body ]
  %xor23 = xor i64 %b, %a
  %tobool.not = icmp sgt i64 %xor23, -1
  %7 = sub nsw i64 0, %smaller.1.lcssa
  %cond29.p = select i1 %tobool.not, i64 %smaller.1.lcssa, i64 %7
  %cond29 = add i64 %cond29.p, %shl
  %cmp30 = icmp eq i64 %cond29, 0
  br i1 %cmp30, label %if.then32, label %while.cond.preheader.i

if.then32:
  %cond39 = select i1 %tobool.not, i64 %and7, i64 0
  br label %return

while.cond.preheader.i:
  %sub41 = add nsw i32 %cond.i, -1085
  %tobool.not46.i = icmp sgt i64 %cond29, -1
  br i1 %tobool.not46.i, label %while.body.i, label %while.end.i

while.body.i:
  %exponent.addr.048.i = phi i32 [ %dec.i, %while.body.i ], [ %sub41, %while.cond.preheader.i ]
  %significand.addr.047.i = phi i64 [ %shl.i, %while.body.i ], [ %cond29, %while.cond.preheader.i ]
  %shl.i = shl nuw i64 %significand.addr.047.i, 1
  %dec.i = add nsw i32 %exponent.addr.048.i, -1
  %tobool.not.i94 = icmp sgt i64 %shl.i, -1
  br i1 %tobool.not.i94, label %while.body.i, label %while.end.i

while.end.i:
  %significand.addr.0.lcssa.i = phi i64 [ %cond29, %while.cond.preheader.i ], [ %shl.i, %while.body.i ]
  %exponent.addr.0.lcssa.i = phi i32 [ %sub41, %while.cond.preheader.i ], [ %dec.i, %while.body.i ]
  %cmp2.i = icmp sgt i32 %exponent.addr.0.lcssa.i, 960
  br i1 %cmp2.i, label %if.then3.i, label %for.cond.preheader.i

for.cond.preheader.i:
  %add1.i = add nsw i32 %exponent.addr.0.lcssa.i, 1086
  %cmp550.i = icmp slt i32 %exponent.addr.0.lcssa.i, -1085
  br i1 %cmp550.i, label %for.body.i, label %for.end.i

if.then3.i:
  %or.i93 = or disjoint i64 %and7, 9218868437227405312
  br label %return

for.body.i:
  %significand.addr.153.i = phi i64 [ %or8.i, %for.body.i ], [ %significand.addr.0.lcssa.i, %for.cond.preheader.i ]
  %biased.052.i = phi i32 [ %inc.i, %for.body.i ], [ %add1.i, %for.cond.preheader.i ]
  %shr.i92 = lshr i64 %significand.addr.153.i, 1
  %and7.i = and i64 %significand.addr.153.i, 1
  %or8.i = or i64 %shr.i92, %and7.i
  %inc.i = add nsw i32 %biased.052.i, 1
  %cmp5.i = icmp slt i32 %biased.052.i, 0
  %cmp6.i = icmp ugt i64 %significand.addr.153.i, 3
  %8 = select i1 %cmp5.i, i1 %cmp6.i, i1 false
  br i1 %8, label %for.body.i, label %for.end.i

for.end.i:
  %biased.0.lcssa.i = phi i32 [ %add1.i, %for.cond.preheader.i ], [ %inc.i, %for.body.i ]
  %significand.addr.1.lcssa.i = phi i64 [ %significand.addr.0.lcssa.i, %for.cond.preheader.i ], [ %or8.i, %for.body.i ]
  %spec.store.select.i = tail call i32 @llvm.smax.i32(i32 %biased.0.lcssa.i, i32 1)
  %shr12.i = lshr i64 %significand.addr.1.lcssa.i, 11
  %conv.i90 = trunc i64 %significand.addr.1.lcssa.i to i32
  %and13.i = and i32 %conv.i90, 2047
  %cmp14.i = icmp samesign ugt i32 %and13.i, 1024
  br i1 %cmp14.i, label %lor.end.i, label %lor.rhs.i

lor.rhs.i:
  %cmp16.i = icmp eq i32 %and13.i, 1024
  %9 = and i64 %significand.addr.1.lcssa.i, 2048
  %tobool21.i = icmp ne i64 %9, 0
  %10 = and i1 %tobool21.i, %cmp16.i
  %11 = zext i1 %10 to i32
  br label %lor.end.i

lor.end.i:
  %lor.ext.i = phi i32 [ 1, %for.end.i ], [ %11, %lor.rhs.i ]
  %sub.i91 = add nuw nsw i32 %spec.store.select.i, 4095
  %conv23.i = zext nneg i32 %sub.i91 to i64
  %shl24.i = shl i64 %conv23.i, 52
  %add25.i = add nuw nsw i64 %shl24.i, %shr12.i
  %conv26.i = zext nneg i32 %lor.ext.i to i64
  %add27.i = add nuw nsw i64 %add25.i, %conv26.i
  %or28.i = or i64 %add27.i, %and7
  br label %return

return:
  %retval.1 = phi i64 [ %cond, %if.then4 ], [ %cond39, %if.then32 ], [ %or.i93, %if.then3.i ], [ %or28.i, %lor.end.i ]
  ret i64 %retval.1
}

define i64 @fewbit_subtract64(i64 noundef %a, i64 noundef %b) local_unnamed_addr #2 {
entry:
  %and.i = and i64 %b, 9223372036854775807
  %cmp.i = icmp samesign ugt i64 %and.i, 9218868437227405312
  %xor = xor i64 %b, -9223372036854775808
  %cond = select i1 %cmp.i, i64 %b, i64 %xor
  %call1 = tail call i64 @fewbit_add64(i64 noundef %a, i64 noundef %cond) #5
  ret i64 %call1
}

define i64 @fewbit_multiply64(i64 noundef %a, i64 noundef %b) local_unnamed_addr #2 {
entry:
  %xor = xor i64 %b, %a
  %and = and i64 %xor, -9223372036854775808
  %and1 = and i64 %a, 9223372036854775807
  %and2 = and i64 %b, 9223372036854775807
  %cmp = icmp samesign ugt i64 %and1, 9218868437227405311
  %cmp3 = icmp samesign ugt i64 %and2, 9218868437227405311
  %or.cond = select i1 %cmp, i1 true, i1 %cmp3
  br i1 %or.cond, label %if.then, label %if.end

if.then:
  %cmp.i = icmp samesign ugt i64 %and1, 9218868437227405312
  br i1 %cmp.i, label %cleanup68, label %lor.lhs.false4

lor.lhs.false4:
  %cmp7 = icmp eq i64 %and1, 0
  %0 = add nsw i64 %and2, -9218868437227405313
  %1 = icmp ult i64 %0, -9218868437227405312
  %or.cond72 = or i1 %cmp7, %1
  %or = or disjoint i64 %and, 9218868437227405312
  %spec.select = select i1 %or.cond72, i64 9221120237041090560, i64 %or
  br label %cleanup68

if.end:
  %and.i102 = and i64 %a, 4503599627370495
  %and1.i = and i64 %a, 9218868437227405312
  %tobool.not.i = icmp eq i64 %and1.i, 0
  %or.i = or disjoint i64 %and.i102, 4503599627370496
  %cond.i = select i1 %tobool.not.i, i64 %and.i102, i64 %or.i
  %and.i103 = and i64 %b, 4503599627370495
  %and1.i104 = and i64 %b, 9218868437227405312
  %tobool.not.i105 = icmp eq i64 %and1.i104, 0
  %or.i106 = or disjoint i64 %and.i103, 4503599627370496
  %cond.i107 = select i1 %tobool.not.i105, i64 %and.i103, i64 %or.i106
  %conv = trunc i64 %cond.i to i32
  %shr = lshr i64 %cond.i, 32
  %conv12 = trunc nuw nsw i64 %shr to i32
  %conv13 = trunc i64 %cond.i107 to i32
  %shr14 = lshr i64 %cond.i107, 32
  %conv15 = trunc nuw nsw i64 %shr14 to i32
  %and.i108 = and i32 %conv, 65535
  %shr.i = lshr i32 %conv, 16
  %and1.i109 = and i32 %conv13, 65535
  %shr2.i = lshr i32 %conv13, 16
  %mul.i = mul nuw i32 %and1.i109, %and.i108
  %mul3.i = mul nuw i32 %and1.i109, %shr.i
  %shr4.i = lshr i32 %mul.i, 16
  %add.i = add nuw i32 %shr4.i, %mul3.i
  %mul5.i = mul nuw i32 %shr2.i, %and.i108
  %and6.i = and i32 %add.i, 65535
  %add7.i = add nuw i32 %and6.i, %mul5.i
  %mul8.i = mul nuw i32 %shr2.i, %shr.i
  %shr9.i = lshr i32 %add.i, 16
  %add10.i = add nuw i32 %shr9.i, %mul8.i
  %shr11.i = lshr i32 %add7.i, 16
  %add12.i = add nuw i32 %add10.i, %shr11.i
  %conv.i = zext i32 %add12.i to i64
  %shl13.i = shl i32 %add7.i, 16
  %and14.i = and i32 %mul.i, 65535
  %or.i110 = or disjoint i32 %shl13.i, %and14.i
  %and.i111 = and i32 %conv12, 65535
  %shr.i112 = lshr i32 %conv12, 16
  %mul.i115 = mul nuw i32 %and1.i109, %and.i111
  %mul3.i116 = mul nuw nsw i32 %and1.i109, %shr.i112
  %shr4.i117 = lshr i32 %mul.i115, 16
  %add.i118 = add nuw nsw i32 %shr4.i117, %mul3.i116
  %mul5.i119 = mul nuw i32 %shr2.i, %and.i111
  %and6.i120 = and i32 %add.i118, 65535
  %add7.i121 = add nuw i32 %and6.i120, %mul5.i119
  %mul8.i122 = mul nuw nsw i32 %shr2.i, %shr.i112
  %shr9.i123 = lshr i32 %add.i118, 16
  %add10.i124 = add nuw nsw i32 %shr9.i123, %mul8.i122
  %shr11.i125 = lshr i32 %add7.i121, 16
  %add12.i126 = add nuw nsw i32 %add10.i124, %shr11.i125
  %conv.i127 = zext nneg i32 %add12.i126 to i64
  %shl13.i129 = shl i32 %add7.i121, 16
  %and14.i130 = and i32 %mul.i115, 65535
  %or.i131 = or disjoint i32 %shl13.i129, %and14.i130
  %conv15.i132 = zext i32 %or.i131 to i64
  %or16.i133 = add nuw nsw i64 %conv.i, %conv15.i132
  %and1.i136 = and i32 %conv15, 65535
  %shr2.i137 = lshr i32 %conv15, 16
  %mul.i138 = mul nuw i32 %and1.i136, %and.i108
  %mul3.i139 = mul nuw i32 %and1.i136, %shr.i
  %shr4.i140 = lshr i32 %mul.i138, 16
  %add.i141 = add nuw i32 %shr4.i140, %mul3.i139
  %mul5.i142 = mul nuw nsw i32 %shr2.i137, %and.i108
  %and6.i143 = and i32 %add.i141, 65535
  %add7.i144 = add nuw nsw i32 %and6.i143, %mul5.i142
  %mul8.i145 = mul nuw nsw i32 %shr2.i137, %shr.i
  %shr9.i146 = lshr i32 %add.i141, 16
  %add10.i147 = add nuw nsw i32 %shr9.i146, %mul8.i145
  %shr11.i148 = lshr i32 %add7.i144, 16
  %add12.i149 = add nuw nsw i32 %add10.i147, %shr11.i148
  %conv.i150 = zext nneg i32 %add12.i149 to i64
  %shl.i151 = shl nuw nsw i64 %conv.i150, 32
  %shl13.i152 = shl i32 %add7.i144, 16
  %and14.i153 = and i32 %mul.i138, 65535
  %or.i154 = or disjoint i32 %shl13.i152, %and14.i153
  %conv15.i155 = zext i32 %or.i154 to i64
  %or16.i156 = or disjoint i64 %shl.i151, %conv15.i155
  %conv21 = and i64 %or16.i133, 4294967295
  %add22 = add nuw nsw i64 %or16.i156, %conv21
  %mul.i161 = mul nuw i32 %and1.i136, %and.i111
  %mul3.i162 = mul nuw nsw i32 %and1.i136, %shr.i112
  %shr4.i163 = lshr i32 %mul.i161, 16
  %add.i164 = add nuw nsw i32 %shr4.i163, %mul3.i162
  %mul5.i165 = mul nuw nsw i32 %shr2.i137, %and.i111
  %and6.i166 = and i32 %add.i164, 65535
  %add7.i167 = add nuw nsw i32 %and6.i166, %mul5.i165
  %mul8.i168 = mul nuw nsw i32 %shr2.i137, %shr.i112
  %shr9.i169 = lshr i32 %add.i164, 16
  %add10.i170 = add nuw nsw i32 %shr9.i169, %mul8.i168
  %shr11.i171 = lshr i32 %add7.i167, 16
  %add12.i172 = add nuw nsw i32 %add10.i170, %shr11.i171
  %conv.i173 = zext nneg i32 %add12.i172 to i64
  %shl.i174 = shl nuw nsw i64 %conv.i173, 32
  %shl13.i175 = shl i32 %add7.i167, 16
  %and14.i176 = and i32 %mul.i161, 65535
  %or.i177 = or disjoint i32 %shl13.i175, %and14.i176
  %conv15.i178 = zext i32 %or.i177 to i64
  %or16.i179 = or disjoint i64 %shl.i174, %conv15.i178
  %2 = lshr i64 %or16.i133, 32
  %shr24 = add nuw nsw i64 %2, %conv.i127
  %add25 = add nuw nsw i64 %or16.i179, %shr24
  %shr26 = lshr i64 %add22, 32
  %add27 = add nuw nsw i64 %add25, %shr26
  %cmp30 = icmp eq i64 %add27, 0
  br i1 %cmp30, label %if.then32, label %if.end40

if.then32:
  %conv15.i = zext i32 %or.i110 to i64
  %conv36 = shl i64 %add22, 32
  %or38 = or disjoint i64 %conv36, %conv15.i
  %cmp.i189 = icmp eq i64 %or38, 0
  br i1 %cmp.i189, label %cleanup68, label %while.cond.preheader.i

while.cond.preheader.i:
  %shr.i184 = lshr i64 %b, 52
  %conv.i185 = trunc nuw nsw i64 %shr.i184 to i32
  %and.i186 = and i32 %conv.i185, 2047
  %cond.i187 = tail call i32 @llvm.umax.i32(i32 %and.i186, i32 1)
  %shr.i180 = lshr i64 %a, 52
  %conv.i181 = trunc nuw nsw i64 %shr.i180 to i32
  %and.i182 = and i32 %conv.i181, 2047
  %cond.i183 = tail call i32 @llvm.umax.i32(i32 %and.i182, i32 1)
  %sub.i188 = add nuw nsw i32 %cond.i183, -2150
  %add35 = add nsw i32 %sub.i188, %cond.i187
  %tobool.not46.i = icmp sgt i64 %conv36, -1
  br i1 %tobool.not46.i, label %while.body.i, label %while.end.i

while.body.i:
  %exponent.addr.048.i = phi i32 [ %dec.i, %while.body.i ], [ %add35, %while.cond.preheader.i ]
  %significand.addr.047.i = phi i64 [ %shl.i194, %while.body.i ], [ %or38, %while.cond.preheader.i ]
  %shl.i194 = shl nuw i64 %significand.addr.047.i, 1
  %dec.i = add nsw i32 %exponent.addr.048.i, -1
  %tobool.not.i195 = icmp sgt i64 %shl.i194, -1
  br i1 %tobool.not.i195, label %while.body.i, label %while.end.i

while.end.i:
  %significand.addr.0.lcssa.i = phi i64 [ %or38, %while.cond.preheader.i ], [ %shl.i194, %while.body.i ]
  %exponent.addr.0.lcssa.i = phi i32 [ %add35, %while.cond.preheader.i ], [ %dec.i, %while.body.i ]
  %cmp2.i = icmp sgt i32 %exponent.addr.0.lcssa.i, 960
  br i1 %cmp2.i, label %if.then3.i, label %for.cond.preheader.i

for.cond.preheader.i:
  %add1.i = add nsw i32 %exponent.addr.0.lcssa.i, 1086
  %cmp550.i = icmp slt i32 %exponent.addr.0.lcssa.i, -1085
  br i1 %cmp550.i, label %for.body.i, label %for.end.i

if.then3.i:
  %or.i193 = or disjoint i64 %and, 9218868437227405312
  br label %cleanup68

for.body.i:
  %significand.addr.153.i = phi i64 [ %or8.i, %for.body.i ], [ %significand.addr.0.lcssa.i, %for.cond.preheader.i ]
  %biased.052.i = phi i32 [ %inc.i, %for.body.i ], [ %add1.i, %for.cond.preheader.i ]
  %shr.i192 = lshr i64 %significand.addr.153.i, 1
  %and7.i = and i64 %significand.addr.153.i, 1
  %or8.i = or i64 %shr.i192, %and7.i
  %inc.i = add nsw i32 %biased.052.i, 1
  %cmp5.i = icmp slt i32 %biased.052.i, 0
  %cmp6.i = icmp ugt i64 %significand.addr.153.i, 3
  %3 = select i1 %cmp5.i, i1 %cmp6.i, i1 false
  br i1 %3, label %for.body.i, label %for.end.i

for.end.i:
  %biased.0.lcssa.i = phi i32 [ %add1.i, %for.cond.preheader.i ], [ %inc.i, %for.body.i ]
  %significand.addr.1.lcssa.i = phi i64 [ %significand.addr.0.lcssa.i, %for.cond.preheader.i ], [ %or8.i, %for.body.i ]
  %spec.store.select.i = tail call i32 @llvm.smax.i32(i32 %biased.0.lcssa.i, i32 1)
  %shr12.i = lshr i64 %significand.addr.1.lcssa.i, 11
  %conv.i190 = trunc i64 %significand.addr.1.lcssa.i to i32
  %and13.i = and i32 %conv.i190, 2047
  %cmp14.i = icmp samesign ugt i32 %and13.i, 1024
  br i1 %cmp14.i, label %lor.end.i, label %lor.rhs.i

lor.rhs.i:
  %cmp16.i = icmp eq i32 %and13.i, 1024
  %4 = and i64 %significand.addr.1.lcssa.i, 2048
  %tobool21.i = icmp ne i64 %4, 0
  %5 = and i1 %tobool21.i, %cmp16.i
  %6 = zext i1 %5 to i32
  br label %lor.end.i

lor.end.i:
  %lor.ext.i = phi i32 [ 1, %for.end.i ], [ %6, %lor.rhs.i ]
  %sub.i191 = add nuw nsw i32 %spec.store.select.i, 4095
  %conv23.i = zext nneg i32 %sub.i191 to i64
  %shl24.i = shl i64 %conv23.i, 52
  %add25.i = add nuw nsw i64 %shl24.i, %shr12.i
  %conv26.i = zext nneg i32 %lor.ext.i to i64
  %add27.i = add nuw nsw i64 %add25.i, %conv26.i
  %or28.i = or i64 %add27.i, %and
  br label %cleanup68

if.end40:
  %conv28 = trunc i64 %add22 to i32
  %shl41 = shl nuw nsw i64 %add27, 20
  %shr42 = lshr i32 %conv28, 12
  %conv43 = zext nneg i32 %shr42 to i64
  %or44 = or disjoint i64 %shl41, %conv43
  %and45 = and i32 %conv28, 4095
  %cmp46 = icmp ne i32 %and45, 0
  %cmp48 = icmp ne i32 %or.i110, 0
  %7 = select i1 %cmp46, i1 true, i1 %cmp48
  %shr.i196 = lshr i64 %a, 52
  %conv.i197 = trunc nuw nsw i64 %shr.i196 to i32
  %and.i198 = and i32 %conv.i197, 2047
  %cond.i199 = tail call i32 @llvm.umax.i32(i32 %and.i198, i32 1)
  %shr.i201 = lshr i64 %b, 52
  %conv.i202 = trunc nuw nsw i64 %shr.i201 to i32
  %and.i203 = and i32 %conv.i202, 2047
  %cond.i204 = tail call i32 @llvm.umax.i32(i32 %and.i203, i32 1)
  %sub.i205 = add nuw nsw i32 %cond.i199, -2106
  %add53 = add nsw i32 %sub.i205, %cond.i204
  %conv54 = zext i1 %7 to i64
  %or55 = or i64 %or44, %conv54
  br label %while.body.i248

while.body.i248:
  %exponent.addr.048.i249 = phi i32 [ %dec.i252, %while.body.i248 ], [ %add53, %if.end40 ]
  %significand.addr.047.i250 = phi i64 [ %shl.i251, %while.body.i248 ], [ %or55, %if.end40 ]
  %shl.i251 = shl nuw i64 %significand.addr.047.i250, 1
  %dec.i252 = add nsw i32 %exponent.addr.048.i249, -1
  %tobool.not.i253 = icmp sgt i64 %shl.i251, -1
  br i1 %tobool.not.i253, label %while.body.i248, label %while.end.i209

while.end.i209:
  %cmp2.i212 = icmp sgt i32 %exponent.addr.048.i249, 961
  br i1 %cmp2.i212, label %if.then3.i246, label %for.cond.preheader.i213

for.cond.preheader.i213:
  %add1.i214 = add nsw i32 %exponent.addr.048.i249, 1085
  %cmp550.i215 = icmp slt i32 %exponent.addr.048.i249, -1084
  br i1 %cmp550.i215, label %for.body.i237, label %for.end.i216

if.then3.i246:
  %or.i247 = or disjoint i64 %and, 9218868437227405312
  br label %cleanup68

for.body.i237:
  %significand.addr.153.i238 = phi i64 [ %or8.i242, %for.body.i237 ], [ %shl.i251, %for.cond.preheader.i213 ]
  %biased.052.i239 = phi i32 [ %inc.i243, %for.body.i237 ], [ %add1.i214, %for.cond.preheader.i213 ]
  %shr.i240 = lshr i64 %significand.addr.153.i238, 1
  %and7.i241 = and i64 %significand.addr.153.i238, 1
  %or8.i242 = or i64 %shr.i240, %and7.i241
  %inc.i243 = add nsw i32 %biased.052.i239, 1
  %cmp5.i244 = icmp slt i32 %biased.052.i239, 0
  %cmp6.i245 = icmp ugt i64 %significand.addr.153.i238, 3
  %8 = select i1 %cmp5.i244, i1 %cmp6.i245, i1 false
  br i1 %8, label %for.body.i237, label %for.end.i216

for.end.i216:
  %biased.0.lcssa.i217 = phi i32 [ %add1.i214, %for.cond.preheader.i213 ], [ %inc.i243, %for.body.i237 ]
  %significand.addr.1.lcssa.i218 = phi i64 [ %shl.i251, %for.cond.preheader.i213 ], [ %or8.i242, %for.body.i237 ]
  %spec.store.select.i219 = tail call i32 @llvm.smax.i32(i32 %biased.0.lcssa.i217, i32 1)
  %shr12.i220 = lshr i64 %significand.addr.1.lcssa.i218, 11
  %conv.i221 = trunc i64 %significand.addr.1.lcssa.i218 to i32
  %and13.i222 = and i32 %conv.i221, 2047
  %cmp14.i223 = icmp samesign ugt i32 %and13.i222, 1024
  br i1 %cmp14.i223, label %lor.end.i227, label %lor.rhs.i224

lor.rhs.i224:
  %cmp16.i225 = icmp eq i32 %and13.i222, 1024
  %9 = and i64 %significand.addr.1.lcssa.i218, 2048
  %tobool21.i226 = icmp ne i64 %9, 0
  %10 = and i1 %tobool21.i226, %cmp16.i225
  %11 = zext i1 %10 to i32
  br label %lor.end.i227

lor.end.i227:
  %lor.ext.i228 = phi i32 [ 1, %for.end.i216 ], [ %11, %lor.rhs.i224 ]
  %sub.i229 = add nuw nsw i32 %spec.store.select.i219, 4095
  %conv23.i230 = zext nneg i32 %sub.i229 to i64
  %shl24.i231 = shl i64 %conv23.i230, 52
  %add25.i232 = add nuw nsw i64 %shl24.i231, %shr12.i220
  %conv26.i233 = zext nneg i32 %lor.ext.i228 to i64
  %add27.i234 = add nuw nsw i64 %add25.i232, %conv26.i233
  %or28.i235 = or i64 %add27.i234, %and
  br label %cleanup68

cleanup68:
  %retval.1 = phi i64 [ 9221120237041090560, %if.then ], [ %spec.select, %lor.lhs.false4 ], [ %and, %if.then32 ], [ %or.i193, %if.then3.i ], [ %or28.i, %lor.end.i ], [ %or.i247, %if.then3.i246 ], [ %or28.i235, %lor.end.i227 ]
  ret i64 %retval.1
}

define i64 @fewbit_divide64(i64 noundef %a, i64 noundef %b) local_unnamed_addr #2 {
entry:
  %xor = xor i64 %b, %a
  %and = and i64 %xor, -9223372036854775808
  %and1 = and i64 %a, 9223372036854775807
  %and2 = and i64 %b, 9223372036854775807
  %cmp.i = icmp samesign ugt i64 %and1, 9218868437227405312
  %cmp.i83 = icmp samesign ugt i64 %and2, 9218868437227405312
  %or.cond = select i1 %cmp.i, i1 true, i1 %cmp.i83
  br i1 %or.cond, label %cleanup, label %lor.lhs.false4

lor.lhs.false4:
  %cmp = icmp eq i64 %and1, %and2
  br i1 %cmp, label %land.lhs.true, label %if.end

land.lhs.true:
  switch i64 %a, label %if.end [
    i64 -4503599627370496, label %cleanup
    i64 -9223372036854775808, label %cleanup
    i64 9218868437227405312, label %cleanup
    i64 0, label %cleanup
  ]

if.end:
  %cmp8 = icmp eq i64 %and1, 9218868437227405312
  %cmp10 = icmp eq i64 %and2, 0
  %or.cond51 = or i1 %cmp8, %cmp10
  br i1 %or.cond51, label %if.then11, label %if.end12

if.then11:
  %or = or disjoint i64 %and, 9218868437227405312
  br label %cleanup

if.end12:
  %cmp13 = icmp eq i64 %and1, 0
  %cmp15 = icmp eq i64 %and2, 9218868437227405312
  %or.cond52 = or i1 %cmp13, %cmp15
  br i1 %or.cond52, label %cleanup, label %if.end17

if.end17:
  %and.i84 = and i64 %a, 4503599627370495
  %and1.i = and i64 %a, 9218868437227405312
  %tobool.not.i = icmp eq i64 %and1.i, 0
  %or.i = or disjoint i64 %and.i84, 4503599627370496
  %and.i85 = and i64 %b, 4503599627370495
  %and1.i86 = and i64 %b, 9218868437227405312
  %tobool.not.i87 = icmp eq i64 %and1.i86, 0
  %or.i88 = or disjoint i64 %and.i85, 4503599627370496
  %shr.i = lshr i64 %a, 52
  %conv.i = trunc nuw nsw i64 %shr.i to i32
  %and.i90 = and i32 %conv.i, 2047
  %cond.i91 = tail call i32 @llvm.umax.i32(i32 %and.i90, i32 1)
  %shr.i92 = lshr i64 %b, 52
  %conv.i93 = trunc nuw nsw i64 %shr.i92 to i32
  %and.i94 = and i32 %conv.i93, 2047
  %cond.i95 = tail call i32 @llvm.umax.i32(i32 %and.i94, i32 1)
  %sub = sub nsw i32 %cond.i91, %cond.i95
  br i1 %tobool.not.i, label %for.body, label %for.cond22.preheader

for.cond22.preheader:
  %remainder.0.lcssa = phi i64 [ %or.i, %if.end17 ], [ %shl, %for.body ]
  %exponent.0.lcssa = phi i32 [ %sub, %if.end17 ], [ %dec, %for.body ]
  br i1 %tobool.not.i87, label %for.body26, label %for.cond30.preheader

for.body:
  %exponent.0104 = phi i32 [ %dec, %for.body ], [ %sub, %if.end17 ]
  %remainder.0103 = phi i64 [ %shl, %for.body ], [ %and.i84, %if.end17 ]
  %shl = shl nuw nsw i64 %remainder.0103, 1
  %dec = add nsw i32 %exponent.0104, -1
  %tobool.not = icmp samesign ult i64 %remainder.0103, 2251799813685248
  br i1 %tobool.not, label %for.body, label %for.cond22.preheader

for.cond30.preheader:
  %divisor.0.lcssa = phi i64 [ %or.i88, %for.cond22.preheader ], [ %shl27, %for.body26 ]
  %exponent.1.lcssa = phi i32 [ %exponent.0.lcssa, %for.cond22.preheader ], [ %inc, %for.body26 ]
  br label %for.body32

for.body26:
  %exponent.1107 = phi i32 [ %inc, %for.body26 ], [ %exponent.0.lcssa, %for.cond22.preheader ]
  %divisor.0106 = phi i64 [ %shl27, %for.body26 ], [ %and.i85, %for.cond22.preheader ]
  %shl27 = shl nuw nsw i64 %divisor.0106, 1
  %inc = add nsw i32 %exponent.1107, 1
  %tobool24.not = icmp samesign ult i64 %divisor.0106, 2251799813685248
  br i1 %tobool24.not, label %for.body26, label %for.cond30.preheader

for.cond.cleanup:
  %shl44 = shl i64 %quotient.1, 1
  %cmp45 = icmp ne i64 %shl39, 0
  %conv46 = zext i1 %cmp45 to i64
  %or47 = or disjoint i64 %shl44, %conv46
  %cmp.i97 = icmp eq i64 %or47, 0
  br i1 %cmp.i97, label %cleanup, label %while.cond.preheader.i

while.cond.preheader.i:
  %sub43 = add nsw i32 %exponent.1.lcssa, -56
  %tobool.not46.i = icmp sgt i64 %shl44, -1
  br i1 %tobool.not46.i, label %while.body.i, label %while.end.i

while.body.i:
  %exponent.addr.048.i = phi i32 [ %dec.i, %while.body.i ], [ %sub43, %while.cond.preheader.i ]
  %significand.addr.047.i = phi i64 [ %shl.i, %while.body.i ], [ %or47, %while.cond.preheader.i ]
  %shl.i = shl nuw i64 %significand.addr.047.i, 1
  %dec.i = add nsw i32 %exponent.addr.048.i, -1
  %tobool.not.i102 = icmp sgt i64 %shl.i, -1
  br i1 %tobool.not.i102, label %while.body.i, label %while.end.i

while.end.i:
  %significand.addr.0.lcssa.i = phi i64 [ %or47, %while.cond.preheader.i ], [ %shl.i, %while.body.i ]
  %exponent.addr.0.lcssa.i = phi i32 [ %sub43, %while.cond.preheader.i ], [ %dec.i, %while.body.i ]
  %cmp2.i = icmp sgt i32 %exponent.addr.0.lcssa.i, 960
  br i1 %cmp2.i, label %if.then3.i, label %for.cond.preheader.i

for.cond.preheader.i:
  %add1.i = add nsw i32 %exponent.addr.0.lcssa.i, 1086
  %cmp550.i = icmp slt i32 %exponent.addr.0.lcssa.i, -1085
  br i1 %cmp550.i, label %for.body.i, label %for.end.i

if.then3.i:
  %or.i101 = or disjoint i64 %and, 9218868437227405312
  br label %cleanup

for.body.i:
  %significand.addr.153.i = phi i64 [ %or8.i, %for.body.i ], [ %significand.addr.0.lcssa.i, %for.cond.preheader.i ]
  %biased.052.i = phi i32 [ %inc.i, %for.body.i ], [ %add1.i, %for.cond.preheader.i ]
  %shr.i100 = lshr i64 %significand.addr.153.i, 1
  %and7.i = and i64 %significand.addr.153.i, 1
  %or8.i = or i64 %shr.i100, %and7.i
  %inc.i = add nsw i32 %biased.052.i, 1
  %cmp5.i = icmp slt i32 %biased.052.i, 0
  %cmp6.i = icmp ugt i64 %significand.addr.153.i, 3
  %0 = select i1 %cmp5.i, i1 %cmp6.i, i1 false
  br i1 %0, label %for.body.i, label %for.end.i

for.end.i:
  %biased.0.lcssa.i = phi i32 [ %add1.i, %for.cond.preheader.i ], [ %inc.i, %for.body.i ]
  %significand.addr.1.lcssa.i = phi i64 [ %significand.addr.0.lcssa.i, %for.cond.preheader.i ], [ %or8.i, %for.body.i ]
  %spec.store.select.i = tail call i32 @llvm.smax.i32(i32 %biased.0.lcssa.i, i32 1)
  %shr12.i = lshr i64 %significand.addr.1.lcssa.i, 11
  %conv.i98 = trunc i64 %significand.addr.1.lcssa.i to i32
  %and13.i = and i32 %conv.i98, 2047
  %cmp14.i = icmp samesign ugt i32 %and13.i, 1024
  br i1 %cmp14.i, label %lor.end.i, label %lor.rhs.i

lor.rhs.i:
  %cmp16.i = icmp eq i32 %and13.i, 1024
  %1 = and i64 %significand.addr.1.lcssa.i, 2048
  %tobool21.i = icmp ne i64 %1, 0
  %2 = and i1 %tobool21.i, %cmp16.i
  %3 = zext i1 %2 to i32
  br label %lor.end.i

lor.end.i:
  %lor.ext.i = phi i32 [ 1, %for.end.i ], [ %3, %lor.rhs.i ]
  %sub.i99 = add nuw nsw i32 %spec.store.select.i, 4095
  %conv23.i = zext nneg i32 %sub.i99 to i64
  %shl24.i = shl i64 %conv23.i, 52
  %add25.i = add nuw nsw i64 %shl24.i, %shr12.i
  %conv26.i = zext nneg i32 %lor.ext.i to i64
  %add27.i = add nuw nsw i64 %add25.i, %conv26.i
  %or28.i = or i64 %add27.i, %and
  br label %cleanup

for.body32:
  %i.0112 = phi i32 [ 0, %for.cond30.preheader ], [ %inc41, %for.body32 ]
  %quotient.0111 = phi i64 [ 0, %for.cond30.preheader ], [ %quotient.1, %for.body32 ]
  %remainder.1110 = phi i64 [ %remainder.0.lcssa, %for.cond30.preheader ], [ %shl39, %for.body32 ]
  %shl33 = shl i64 %quotient.0111, 1
  %cmp34.not = icmp uge i64 %remainder.1110, %divisor.0.lcssa
  %sub36 = select i1 %cmp34.not, i64 %divisor.0.lcssa, i64 0
  %remainder.2 = sub nuw i64 %remainder.1110, %sub36
  %or37 = zext i1 %cmp34.not to i64
  %quotient.1 = or disjoint i64 %shl33, %or37
  %shl39 = shl i64 %remainder.2, 1
  %inc41 = add nuw nsw i32 %i.0112, 1
  %exitcond.not = icmp eq i32 %inc41, 56
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body32

cleanup:
  %retval.0 = phi i64 [ %or, %if.then11 ], [ 9221120237041090560, %land.lhs.true ], [ 9221120237041090560, %land.lhs.true ], [ 9221120237041090560, %land.lhs.true ], [ 9221120237041090560, %land.lhs.true ], [ 9221120237041090560, %entry ], [ %and, %if.end12 ], [ %and, %for.cond.cleanup ], [ %or.i101, %if.then3.i ], [ %or28.i, %lor.end.i ]
  ret i64 %retval.0
}

define range(i32 -1, 3) i32 @fewbit_compare64(i64 noundef %a, i64 noundef %b) local_unnamed_addr #3 {
entry:
  %and.i = and i64 %a, 9223372036854775807
  %cmp.i = icmp samesign ugt i64 %and.i, 9218868437227405312
  br i1 %cmp.i, label %return, label %lor.lhs.false

lor.lhs.false:
  %and.i30 = and i64 %b, 9223372036854775807
  %cmp.i31 = icmp samesign ugt i64 %and.i30, 9218868437227405312
  br i1 %cmp.i31, label %return, label %if.end

if.end:
  %or = or i64 %b, %a
  %and = and i64 %or, 9223372036854775807
  %cmp = icmp eq i64 %and, 0
  br i1 %cmp, label %return, label %if.end3

if.end3:
  %not = xor i64 %and.i, -1
  %tobool.not32 = icmp slt i64 %a, 0
  %cond = select i1 %tobool.not32, i64 %not, i64 %a
  %not10 = xor i64 %and.i30, -1
  %tobool7.not33 = icmp slt i64 %b, 0
  %cond13 = select i1 %tobool7.not33, i64 %not10, i64 %b
  %cond19 = tail call i32 @llvm.scmp.i32.i64(i64 %cond, i64 %cond13)
  br label %return

return:
  %retval.0 = phi i32 [ %cond19, %if.end3 ], [ 2, %lor.lhs.false ], [ 2, %entry ], [ 0, %if.end ]
  ret i32 %retval.0
}

define i64 @fewbit_widen(i32 noundef %a) local_unnamed_addr #2 {
entry:
  %and = and i32 %a, -2147483648
  %conv = zext i32 %and to i64
  %shl = shl nuw i64 %conv, 32
  %and.i = and i32 %a, 2147483647
  %cmp.i = icmp samesign ugt i32 %and.i, 2139095040
  br i1 %cmp.i, label %cleanup, label %if.end

if.end:
  %cmp = icmp eq i32 %and.i, 2139095040
  br i1 %cmp, label %if.then3, label %if.end4

if.then3:
  %or = or disjoint i64 %shl, 9218868437227405312
  br label %cleanup

if.end4:
  %and.i15 = and i32 %a, 8388607
  %and1.i = and i32 %a, 2139095040
  %tobool.not.i = icmp eq i32 %and1.i, 0
  %or.i = or disjoint i32 %and.i15, 8388608
  %cond.i16 = select i1 %tobool.not.i, i32 %and.i15, i32 %or.i
  %cmp.i17 = icmp eq i32 %cond.i16, 0
  br i1 %cmp.i17, label %cleanup, label %while.body.i.preheader

while.body.i.preheader:
  %conv7 = zext nneg i32 %cond.i16 to i64
  %shr.i = lshr i32 %a, 23
  %and.i14 = and i32 %shr.i, 255
  %cond.i = tail call i32 @llvm.umax.i32(i32 %and.i14, i32 1)
  %sub.i = add nsw i32 %cond.i, -150
  br label %while.body.i

while.body.i:
  %exponent.addr.048.i = phi i32 [ %dec.i, %while.body.i ], [ %sub.i, %while.body.i.preheader ]
  %significand.addr.047.i = phi i64 [ %shl.i, %while.body.i ], [ %conv7, %while.body.i.preheader ]
  %shl.i = shl nuw i64 %significand.addr.047.i, 1
  %dec.i = add nsw i32 %exponent.addr.048.i, -1
  %tobool.not.i21 = icmp sgt i64 %shl.i, -1
  br i1 %tobool.not.i21, label %while.body.i, label %while.end.i

while.end.i:
  %cmp2.i = icmp sgt i32 %exponent.addr.048.i, 961
  br i1 %cmp2.i, label %if.then3.i, label %for.cond.preheader.i

for.cond.preheader.i:
  %add1.i = add nsw i32 %exponent.addr.048.i, 1085
  %cmp550.i = icmp slt i32 %exponent.addr.048.i, -1084
  br i1 %cmp550.i, label %for.body.i, label %for.end.i

if.then3.i:
  %or.i20 = or disjoint i64 %shl, 9218868437227405312
  br label %cleanup

for.body.i:
  %significand.addr.153.i = phi i64 [ %or8.i, %for.body.i ], [ %shl.i, %for.cond.preheader.i ]
  %biased.052.i = phi i32 [ %inc.i, %for.body.i ], [ %add1.i, %for.cond.preheader.i ]
  %shr.i19 = lshr i64 %significand.addr.153.i, 1
  %and7.i = and i64 %significand.addr.153.i, 1
  %or8.i = or i64 %shr.i19, %and7.i
  %inc.i = add nsw i32 %biased.052.i, 1
  %cmp5.i = icmp slt i32 %biased.052.i, 0
  %cmp6.i = icmp ugt i64 %significand.addr.153.i, 3
  %0 = select i1 %cmp5.i, i1 %cmp6.i, i1 false
  br i1 %0, label %for.body.i, label %for.end.i

for.end.i:
  %biased.0.lcssa.i = phi i32 [ %add1.i, %for.cond.preheader.i ], [ %inc.i, %for.body.i ]
  %significand.addr.1.lcssa.i = phi i64 [ %shl.i, %for.cond.preheader.i ], [ %or8.i, %for.body.i ]
  %spec.store.select.i = tail call i32 @llvm.smax.i32(i32 %biased.0.lcssa.i, i32 1)
  %shr12.i = lshr i64 %significand.addr.1.lcssa.i, 11
  %conv.i = trunc i64 %significand.addr.1.lcssa.i to i32
  %and13.i = and i32 %conv.i, 2047
  %cmp14.i = icmp samesign ugt i32 %and13.i, 1024
  br i1 %cmp14.i, label %lor.end.i, label %lor.rhs.i

lor.rhs.i:
  %cmp16.i = icmp eq i32 %and13.i, 1024
  %1 = and i64 %significand.addr.1.lcssa.i, 2048
  %tobool21.i = icmp ne i64 %1, 0
  %2 = and i1 %tobool21.i, %cmp16.i
  %3 = zext i1 %2 to i32
  br label %lor.end.i

lor.end.i:
  %lor.ext.i = phi i32 [ 1, %for.end.i ], [ %3, %lor.rhs.i ]
  %sub.i18 = add nuw nsw i32 %spec.store.select.i, 4095
  %conv23.i = zext nneg i32 %sub.i18 to i64
  %shl24.i = shl i64 %conv23.i, 52
  %add25.i = add nuw nsw i64 %shl24.i, %shr12.i
  %conv26.i = zext nneg i32 %lor.ext.i to i64
  %add27.i = add nuw nsw i64 %add25.i, %conv26.i
  %or28.i = or i64 %add27.i, %shl
  br label %cleanup

cleanup:
  %retval.0 = phi i64 [ %or, %if.then3 ], [ 9221120237041090560, %entry ], [ %shl, %if.end4 ], [ %or.i20, %if.then3.i ], [ %or28.i, %lor.end.i ]
  ret i64 %retval.0
}

define i32 @fewbit_narrow(i64 noundef %a) local_unnamed_addr #2 {
entry:
  %shr = lshr i64 %a, 32
  %conv = trunc nuw i64 %shr to i32
  %and = and i32 %conv, -2147483648
  %and.i = and i64 %a, 9223372036854775807
  %cmp.i = icmp samesign ugt i64 %and.i, 9218868437227405312
  br i1 %cmp.i, label %cleanup, label %if.end

if.end:
  %cmp = icmp eq i64 %and.i, 9218868437227405312
  br i1 %cmp, label %if.then3, label %if.end4

if.then3:
  %or = or disjoint i32 %and, 2139095040
  br label %cleanup

if.end4:
  %shr.i = lshr i64 %a, 52
  %conv.i = trunc nuw nsw i64 %shr.i to i32
  %and.i17 = and i32 %conv.i, 2047
  %cond.i = tail call i32 @llvm.umax.i32(i32 %and.i17, i32 1)
  %sub.i = add nsw i32 %cond.i, -1075
  %and.i18 = and i64 %a, 4503599627370495
  %and1.i = and i64 %a, 9218868437227405312
  %tobool.not.i = icmp eq i64 %and1.i, 0
  %or.i = or disjoint i64 %and.i18, 4503599627370496
  %cond.i19 = select i1 %tobool.not.i, i64 %and.i18, i64 %or.i
  %tobool.not6.i = icmp samesign ult i64 %cond.i19, 4294967296
  %extract.t.i = trunc nuw i64 %cond.i19 to i32
  br i1 %tobool.not6.i, label %for.end.i, label %for.body.i

for.body.i:
  %significand.addr.08.i = phi i64 [ %or.i21, %for.body.i ], [ %cond.i19, %if.end4 ]
  %exponent.addr.07.i = phi i32 [ %inc.i, %for.body.i ], [ %sub.i, %if.end4 ]
  %shr1.i = lshr i64 %significand.addr.08.i, 1
  %and.i20 = and i64 %significand.addr.08.i, 1
  %or.i21 = or i64 %shr1.i, %and.i20
  %inc.i = add nsw i32 %exponent.addr.07.i, 1
  %tobool.not.i22 = icmp ult i64 %significand.addr.08.i, 8589934592
  br i1 %tobool.not.i22, label %for.end.loopexit.i, label %for.body.i

for.end.loopexit.i:
  %extract.t10.i = trunc nuw i64 %or.i21 to i32
  br label %for.end.i

for.end.i:
  %exponent.addr.0.lcssa.i = phi i32 [ %sub.i, %if.end4 ], [ %inc.i, %for.end.loopexit.i ]
  %significand.addr.0.lcssa.off0.i = phi i32 [ %extract.t.i, %if.end4 ], [ %extract.t10.i, %for.end.loopexit.i ]
  %cmp.i.i = icmp eq i32 %significand.addr.0.lcssa.off0.i, 0
  br i1 %cmp.i.i, label %cleanup, label %while.cond.preheader.i.i

while.cond.preheader.i.i:
  %tobool.not55.i.i = icmp sgt i32 %significand.addr.0.lcssa.off0.i, -1
  br i1 %tobool.not55.i.i, label %while.body.i.i, label %while.end.i.i

while.body.i.i:
  %exponent.addr.057.i.i = phi i32 [ %dec.i.i, %while.body.i.i ], [ %exponent.addr.0.lcssa.i, %while.cond.preheader.i.i ]
  %significand.addr.056.i.i = phi i32 [ %shl.i.i, %while.body.i.i ], [ %significand.addr.0.lcssa.off0.i, %while.cond.preheader.i.i ]
  %shl.i.i = shl nuw i32 %significand.addr.056.i.i, 1
  %dec.i.i = add nsw i32 %exponent.addr.057.i.i, -1
  %tobool.not.i.i = icmp sgt i32 %shl.i.i, -1
  br i1 %tobool.not.i.i, label %while.body.i.i, label %while.end.i.i

while.end.i.i:
  %significand.addr.0.lcssa.i.i = phi i32 [ %significand.addr.0.lcssa.off0.i, %while.cond.preheader.i.i ], [ %shl.i.i, %while.body.i.i ]
  %exponent.addr.0.lcssa.i.i = phi i32 [ %exponent.addr.0.lcssa.i, %while.cond.preheader.i.i ], [ %dec.i.i, %while.body.i.i ]
  %cmp2.i.i = icmp sgt i32 %exponent.addr.0.lcssa.i.i, 96
  br i1 %cmp2.i.i, label %if.then3.i.i, label %if.end4.i.i

if.then3.i.i:
  %or.i.i = or disjoint i32 %and, 2139095040
  br label %cleanup

if.end4.i.i:
  %add1.i.i = add nsw i32 %exponent.addr.0.lcssa.i.i, 158
  %cmp5.i.i = icmp slt i32 %exponent.addr.0.lcssa.i.i, -157
  br i1 %cmp5.i.i, label %if.then6.i.i, label %if.end21.i.i

if.then6.i.i:
  %sub.i.i = sub nuw nsw i32 -157, %exponent.addr.0.lcssa.i.i
  %cmp7.i.i = icmp samesign ult i32 %exponent.addr.0.lcssa.i.i, -188
  %sub8.i.i = add nsw i32 %exponent.addr.0.lcssa.i.i, 189
  %shl9.i.i = shl i32 %significand.addr.0.lcssa.i.i, %sub8.i.i
  %0 = icmp ne i32 %shl9.i.i, 0
  %narrow.i.i = select i1 %cmp7.i.i, i1 true, i1 %0
  %cond.i.i = zext i1 %narrow.i.i to i32
  %shr.i.i = lshr i32 %significand.addr.0.lcssa.i.i, %sub.i.i
  %or16.i.i = or i32 %shr.i.i, %cond.i.i
  %significand.addr.1.i.i = select i1 %cmp7.i.i, i32 1, i32 %or16.i.i
  br label %if.end21.i.i

if.end21.i.i:
  %biased.0.i.i = phi i32 [ 1, %if.then6.i.i ], [ %add1.i.i, %if.end4.i.i ]
  %significand.addr.2.i.i = phi i32 [ %significand.addr.1.i.i, %if.then6.i.i ], [ %significand.addr.0.lcssa.i.i, %if.end4.i.i ]
  %shr22.i.i = lshr i32 %significand.addr.2.i.i, 8
  %and23.i.i = and i32 %significand.addr.2.i.i, 255
  %cmp24.i.i = icmp samesign ugt i32 %and23.i.i, 128
  %1 = and i32 %significand.addr.2.i.i, 511
  %2 = icmp eq i32 %1, 384
  %narrow54.i.i = or i1 %cmp24.i.i, %2
  %lor.ext.i.i = zext i1 %narrow54.i.i to i32
  %sub30.i.i = shl nuw nsw i32 %biased.0.i.i, 23
  %shl31.i.i = add nsw i32 %sub30.i.i, -8388608
  %add32.i.i = add nuw nsw i32 %shl31.i.i, %shr22.i.i
  %add33.i.i = add nuw nsw i32 %add32.i.i, %lor.ext.i.i
  %or34.i.i = or i32 %add33.i.i, %and
  br label %cleanup

cleanup:
  %retval.0 = phi i32 [ %or, %if.then3 ], [ 2143289344, %entry ], [ %and, %for.end.i ], [ %or.i.i, %if.then3.i.i ], [ %or34.i.i, %if.end21.i.i ]
  ret i32 %retval.0
}

define range(i64 0, 9218868437227405313) i64 @fewbit_from_unsigned64(i32 noundef %a) local_unnamed_addr #2 {
entry:
  %cmp.i = icmp eq i32 %a, 0
  br i1 %cmp.i, label %round_to_double.exit, label %while.body.i.preheader

while.body.i.preheader:
  %conv = zext i32 %a to i64
  br label %while.body.i

while.body.i:
  %exponent.addr.048.i = phi i32 [ %dec.i, %while.body.i ], [ 0, %while.body.i.preheader ]
  %significand.addr.047.i = phi i64 [ %shl.i, %while.body.i ], [ %conv, %while.body.i.preheader ]
  %shl.i = shl nuw i64 %significand.addr.047.i, 1
  %dec.i = add nsw i32 %exponent.addr.048.i, -1
  %tobool.not.i = icmp sgt i64 %shl.i, -1
  br i1 %tobool.not.i, label %while.body.i, label %while.end.i

while.end.i:
  %cmp2.i = icmp sgt i32 %exponent.addr.048.i, 961
  br i1 %cmp2.i, label %round_to_double.exit, label %for.cond.preheader.i

for.cond.preheader.i:
  %add1.i = add nsw i32 %exponent.addr.048.i, 1085
  %cmp550.i = icmp slt i32 %exponent.addr.048.i, -1084
  br i1 %cmp550.i, label %for.body.i, label %for.end.i

for.body.i:
  %significand.addr.153.i = phi i64 [ %or8.i, %for.body.i ], [ %shl.i, %for.cond.preheader.i ]
  %biased.052.i = phi i32 [ %inc.i, %for.body.i ], [ %add1.i, %for.cond.preheader.i ]
  %shr.i = lshr i64 %significand.addr.153.i, 1
  %and7.i = and i64 %significand.addr.153.i, 1
  %or8.i = or i64 %shr.i, %and7.i
  %inc.i = add nsw i32 %biased.052.i, 1
  %cmp5.i = icmp slt i32 %biased.052.i, 0
  %cmp6.i = icmp ugt i64 %significand.addr.153.i, 3
  %0 = select i1 %cmp5.i, i1 %cmp6.i, i1 false
  br i1 %0, label %for.body.i, label %for.end.i

for.end.i:
  %biased.0.lcssa.i = phi i32 [ %add1.i, %for.cond.preheader.i ], [ %inc.i, %for.body.i ]
  %significand.addr.1.lcssa.i = phi i64 [ %shl.i, %for.cond.preheader.i ], [ %or8.i, %for.body.i ]
  %spec.store.select.i = tail call i32 @llvm.smax.i32(i32 %biased.0.lcssa.i, i32 1)
  %shr12.i = lshr i64 %significand.addr.1.lcssa.i, 11
  %conv.i = trunc i64 %significand.addr.1.lcssa.i to i32
  %and13.i = and i32 %conv.i, 2047
  %cmp14.i = icmp samesign ugt i32 %and13.i, 1024
  br i1 %cmp14.i, label %lor.end.i, label %lor.rhs.i

lor.rhs.i:
  %cmp16.i = icmp eq i32 %and13.i, 1024
  %1 = and i64 %significand.addr.1.lcssa.i, 2048
  %tobool21.i = icmp ne i64 %1, 0
  %2 = and i1 %tobool21.i, %cmp16.i
  %3 = zext i1 %2 to i32
  br label %lor.end.i

lor.end.i:
  %lor.ext.i = phi i32 [ 1, %for.end.i ], [ %3, %lor.rhs.i ]
  %sub.i = add nuw nsw i32 %spec.store.select.i, 4095
  %conv23.i = zext nneg i32 %sub.i to i64
  %shl24.i = shl i64 %conv23.i, 52
  %add25.i = add nuw nsw i64 %shl24.i, %shr12.i
  %conv26.i = zext nneg i32 %lor.ext.i to i64
  %add27.i = add nuw nsw i64 %add25.i, %conv26.i
  br label %round_to_double.exit

round_to_double.exit:
  %retval.1.i = phi i64 [ 0, %entry ], [ %add27.i, %lor.end.i ], [ 9218868437227405312, %while.end.i ]
  ret i64 %retval.1.i
}

define range(i64 -9223372036854775808, 9218868437227405313) i64 @fewbit_from_signed64(i32 noundef %a) local_unnamed_addr #2 {
entry:
  %cmp = icmp slt i32 %a, 0
  br i1 %cmp, label %while.cond.preheader.i, label %cond.false

while.cond.preheader.i:
  %sub = sub i32 0, %a
  %conv = zext i32 %sub to i64
  br label %while.body.i

while.body.i:
  %exponent.addr.048.i = phi i32 [ %dec.i, %while.body.i ], [ 0, %while.cond.preheader.i ]
  %significand.addr.047.i = phi i64 [ %shl.i, %while.body.i ], [ %conv, %while.cond.preheader.i ]
  %shl.i = shl nuw i64 %significand.addr.047.i, 1
  %dec.i = add nsw i32 %exponent.addr.048.i, -1
  %tobool.not.i = icmp sgt i64 %shl.i, -1
  br i1 %tobool.not.i, label %while.body.i, label %while.end.i

while.end.i:
  %cmp2.i = icmp sgt i32 %exponent.addr.048.i, 961
  br i1 %cmp2.i, label %cond.end, label %for.cond.preheader.i

for.cond.preheader.i:
  %add1.i = add nsw i32 %exponent.addr.048.i, 1085
  %cmp550.i = icmp slt i32 %exponent.addr.048.i, -1084
  br i1 %cmp550.i, label %for.body.i, label %for.end.i

for.body.i:
  %significand.addr.153.i = phi i64 [ %or8.i, %for.body.i ], [ %shl.i, %for.cond.preheader.i ]
  %biased.052.i = phi i32 [ %inc.i, %for.body.i ], [ %add1.i, %for.cond.preheader.i ]
  %shr.i = lshr i64 %significand.addr.153.i, 1
  %and7.i = and i64 %significand.addr.153.i, 1
  %or8.i = or i64 %shr.i, %and7.i
  %inc.i = add nsw i32 %biased.052.i, 1
  %cmp5.i = icmp slt i32 %biased.052.i, 0
  %cmp6.i = icmp ugt i64 %significand.addr.153.i, 3
  %0 = select i1 %cmp5.i, i1 %cmp6.i, i1 false
  br i1 %0, label %for.body.i, label %for.end.i

for.end.i:
  %biased.0.lcssa.i = phi i32 [ %add1.i, %for.cond.preheader.i ], [ %inc.i, %for.body.i ]
  %significand.addr.1.lcssa.i = phi i64 [ %shl.i, %for.cond.preheader.i ], [ %or8.i, %for.body.i ]
  %spec.store.select.i = tail call i32 @llvm.smax.i32(i32 %biased.0.lcssa.i, i32 1)
  %shr12.i = lshr i64 %significand.addr.1.lcssa.i, 11
  %conv.i = trunc i64 %significand.addr.1.lcssa.i to i32
  %and13.i = and i32 %conv.i, 2047
  %cmp14.i = icmp samesign ugt i32 %and13.i, 1024
  br i1 %cmp14.i, label %lor.end.i, label %lor.rhs.i

lor.rhs.i:
  %cmp16.i = icmp eq i32 %and13.i, 1024
  %1 = and i64 %significand.addr.1.lcssa.i, 2048
  %tobool21.i = icmp ne i64 %1, 0
  %2 = and i1 %tobool21.i, %cmp16.i
  %3 = zext i1 %2 to i32
  br label %lor.end.i

lor.end.i:
  %lor.ext.i = phi i32 [ 1, %for.end.i ], [ %3, %lor.rhs.i ]
  %sub.i = add nuw nsw i32 %spec.store.select.i, 2047
  %conv23.i = zext nneg i32 %sub.i to i64
  %shl24.i = shl nuw i64 %conv23.i, 52
  %add25.i = add nuw nsw i64 %shl24.i, %shr12.i
  %conv26.i = zext nneg i32 %lor.ext.i to i64
  %add27.i = add nuw nsw i64 %add25.i, %conv26.i
  %or28.i = or i64 %add27.i, -9223372036854775808
  br label %cond.end

cond.false:
  %cmp.i5 = icmp eq i32 %a, 0
  br i1 %cmp.i5, label %cond.end, label %while.body.i43.preheader

while.body.i43.preheader:
  %conv1 = zext nneg i32 %a to i64
  br label %while.body.i43

while.body.i43:
  %exponent.addr.048.i44 = phi i32 [ %dec.i47, %while.body.i43 ], [ 0, %while.body.i43.preheader ]
  %significand.addr.047.i45 = phi i64 [ %shl.i46, %while.body.i43 ], [ %conv1, %while.body.i43.preheader ]
  %shl.i46 = shl nuw i64 %significand.addr.047.i45, 1
  %dec.i47 = add nsw i32 %exponent.addr.048.i44, -1
  %tobool.not.i48 = icmp sgt i64 %shl.i46, -1
  br i1 %tobool.not.i48, label %while.body.i43, label %while.end.i7

while.end.i7:
  %cmp2.i8 = icmp sgt i32 %exponent.addr.048.i44, 961
  br i1 %cmp2.i8, label %cond.end, label %for.cond.preheader.i9

for.cond.preheader.i9:
  %add1.i10 = add nsw i32 %exponent.addr.048.i44, 1085
  %cmp550.i11 = icmp slt i32 %exponent.addr.048.i44, -1084
  br i1 %cmp550.i11, label %for.body.i33, label %for.end.i12

for.body.i33:
  %significand.addr.153.i34 = phi i64 [ %or8.i38, %for.body.i33 ], [ %shl.i46, %for.cond.preheader.i9 ]
  %biased.052.i35 = phi i32 [ %inc.i39, %for.body.i33 ], [ %add1.i10, %for.cond.preheader.i9 ]
  %shr.i36 = lshr i64 %significand.addr.153.i34, 1
  %and7.i37 = and i64 %significand.addr.153.i34, 1
  %or8.i38 = or i64 %shr.i36, %and7.i37
  %inc.i39 = add nsw i32 %biased.052.i35, 1
  %cmp5.i40 = icmp slt i32 %biased.052.i35, 0
  %cmp6.i41 = icmp ugt i64 %significand.addr.153.i34, 3
  %4 = select i1 %cmp5.i40, i1 %cmp6.i41, i1 false
  br i1 %4, label %for.body.i33, label %for.end.i12

for.end.i12:
  %biased.0.lcssa.i13 = phi i32 [ %add1.i10, %for.cond.preheader.i9 ], [ %inc.i39, %for.body.i33 ]
  %significand.addr.1.lcssa.i14 = phi i64 [ %shl.i46, %for.cond.preheader.i9 ], [ %or8.i38, %for.body.i33 ]
  %spec.store.select.i15 = tail call i32 @llvm.smax.i32(i32 %biased.0.lcssa.i13, i32 1)
  %shr12.i16 = lshr i64 %significand.addr.1.lcssa.i14, 11
  %conv.i17 = trunc i64 %significand.addr.1.lcssa.i14 to i32
  %and13.i18 = and i32 %conv.i17, 2047
  %cmp14.i19 = icmp samesign ugt i32 %and13.i18, 1024
  br i1 %cmp14.i19, label %lor.end.i23, label %lor.rhs.i20

lor.rhs.i20:
  %cmp16.i21 = icmp eq i32 %and13.i18, 1024
  %5 = and i64 %significand.addr.1.lcssa.i14, 2048
  %tobool21.i22 = icmp ne i64 %5, 0
  %6 = and i1 %tobool21.i22, %cmp16.i21
  %7 = zext i1 %6 to i32
  br label %lor.end.i23

lor.end.i23:
  %lor.ext.i24 = phi i32 [ 1, %for.end.i12 ], [ %7, %lor.rhs.i20 ]
  %sub.i25 = add nuw nsw i32 %spec.store.select.i15, 4095
  %conv23.i26 = zext nneg i32 %sub.i25 to i64
  %shl24.i27 = shl i64 %conv23.i26, 52
  %add25.i28 = add nuw nsw i64 %shl24.i27, %shr12.i16
  %conv26.i29 = zext nneg i32 %lor.ext.i24 to i64
  %add27.i30 = add nuw nsw i64 %add25.i28, %conv26.i29
  br label %cond.end

cond.end:
  %cond = phi i64 [ %or28.i, %lor.end.i ], [ -4503599627370496, %while.end.i ], [ 0, %cond.false ], [ %add27.i30, %lor.end.i23 ], [ 9218868437227405312, %while.end.i7 ]
  ret i64 %cond
}

define i32 @fewbit_to_unsigned64(i64 noundef %a) local_unnamed_addr #3 {
entry:
  %or.cond = icmp ugt i64 %a, 9218868437227405312
  br i1 %or.cond, label %cond.end, label %cond.false

cond.false:
  %shr.i.i = lshr i64 %a, 52
  %conv.i.i = trunc nuw nsw i64 %shr.i.i to i32
  %cond.i.i = tail call i32 @llvm.umax.i32(i32 %conv.i.i, i32 1)
  %cmp.i4 = icmp samesign ugt i32 %conv.i.i, 1054
  br i1 %cmp.i4, label %cond.end, label %if.end.i

if.end.i:
  %0 = add nsw i32 %cond.i.i, -1012
  %cmp1.i = icmp ult i32 %0, 63
  br i1 %cmp1.i, label %cond.true.i, label %cond.end

cond.true.i:
  %and.i6.i = and i64 %a, 4503599627370495
  %tobool.not.i.i = icmp samesign ult i64 %a, 4503599627370496
  %or.i.i = or disjoint i64 %and.i6.i, 4503599627370496
  %cond.i7.i = select i1 %tobool.not.i.i, i64 %and.i6.i, i64 %or.i.i
  %sub.i = sub nuw nsw i32 1075, %cond.i.i
  %sh_prom.i = zext nneg i32 %sub.i to i64
  %shr.i = lshr i64 %cond.i7.i, %sh_prom.i
  %conv.i = trunc nuw i64 %shr.i to i32
  br label %cond.end

cond.end:
  %cond = phi i32 [ 0, %entry ], [ -1, %cond.false ], [ %conv.i, %cond.true.i ], [ 0, %if.end.i ]
  ret i32 %cond
}

define i32 @fewbit_to_signed64(i64 noundef %a) local_unnamed_addr #3 {
entry:
  %and.i = and i64 %a, 9223372036854775807
  %cmp.i = icmp samesign ugt i64 %and.i, 9218868437227405312
  br i1 %cmp.i, label %return, label %if.end

if.end:
  %shr.i.i = lshr i64 %a, 52
  %conv.i.i = trunc nuw nsw i64 %shr.i.i to i32
  %and.i.i = and i32 %conv.i.i, 2047
  %cond.i.i = tail call i32 @llvm.umax.i32(i32 %and.i.i, i32 1)
  %cmp.i14 = icmp samesign ugt i32 %and.i.i, 1054
  br i1 %cmp.i14, label %truncate_magnitude64.exit, label %if.end.i

if.end.i:
  %0 = add nsw i32 %cond.i.i, -1012
  %cmp1.i = icmp ult i32 %0, 63
  br i1 %cmp1.i, label %cond.true.i, label %truncate_magnitude64.exit

cond.true.i:
  %and.i6.i = and i64 %a, 4503599627370495
  %and1.i.i = and i64 %a, 9218868437227405312
  %tobool.not.i.i = icmp eq i64 %and1.i.i, 0
  %or.i.i = or disjoint i64 %and.i6.i, 4503599627370496
  %cond.i7.i = select i1 %tobool.not.i.i, i64 %and.i6.i, i64 %or.i.i
  %sub.i = sub nuw nsw i32 1075, %cond.i.i
  %sh_prom.i = zext nneg i32 %sub.i to i64
  %shr.i = lshr i64 %cond.i7.i, %sh_prom.i
  %conv.i = trunc nuw i64 %shr.i to i32
  br label %truncate_magnitude64.exit

truncate_magnitude64.exit:
  %retval.0.i = phi i32 [ -1, %if.end ], [ %conv.i, %cond.true.i ], [ 0, %if.end.i ]
  %tobool.not = icmp sgt i64 %a, -1
  br i1 %tobool.not, label %if.end3, label %if.then2

if.then2:
  %cmp = icmp ugt i32 %retval.0.i, -2147483648
  %sub = sub i32 0, %retval.0.i
  %cond = select i1 %cmp, i32 -2147483648, i32 %sub
  br label %return

if.end3:
  %cond8 = tail call i32 @llvm.umin.i32(i32 %retval.0.i, i32 2147483647)
  br label %return

return:
  %retval.1 = phi i32 [ 0, %entry ], [ %cond, %if.then2 ], [ %cond8, %if.end3 ]
  ret i32 %retval.1
}

declare i32 @llvm.abs.i32(i32, i1 immarg) #4

declare i32 @llvm.umax.i32(i32, i32) #4

declare range(i32 -1, 2) i32 @llvm.scmp.i32.i32(i32, i32) #4

declare i32 @llvm.umin.i32(i32, i32) #4

declare i32 @llvm.smax.i32(i32, i32) #4

declare range(i32 -1, 2) i32 @llvm.scmp.i32.i64(i64, i64) #4

attributes #0 = { nounwind "no-builtins" }
attributes #1 = { nounwind "no-builtins" }
attributes #2 = { nounwind "no-builtins" }
attributes #3 = { nounwind "no-builtins" }
attributes #4 = { nounwind }
attributes #5 = { "no-builtins" }
