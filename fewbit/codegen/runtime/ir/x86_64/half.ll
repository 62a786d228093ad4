; Written by `make runtime` from half.c, do not edit.

define float @__extendhfsf2(half noundef %x) local_unnamed_addr #0 {
entry:
  %0 = tail call half @llvm.fabs.f16(half %x)
  %1 = bitcast half %0 to i16
  %and2 = zext nneg i16 %1 to i32
  %cmp = icmp samesign ugt i16 %1, 31743
  br i1 %cmp, label %if.then, label %if.else

if.then:
  %and4 = shl nuw nsw i32 %and2, 13
  %cmp6.not = icmp eq i16 %1, 31744
  %or = select i1 %cmp6.not, i32 2139095040, i32 2143289344
  %or8 = or i32 %or, %and4
  br label %if.end15

if.else:
  %cmp9 = icmp samesign ugt i16 %1, 1023
  br i1 %cmp9, label %if.then11, label %if.else13

if.then11:
  %shl12 = shl nuw nsw i32 %and2, 13
  %add = add nuw nsw i32 %shl12, 939524096
  br label %if.end15

if.else13:
  %conv14 = uitofp nneg i16 %1 to float
  %mul = fmul float %conv14, 0x3E70000000000000
  %2 = bitcast float %mul to i32
  br label %if.end15

if.end15:
  %result.sroa.0.0 = phi i32 [ %or8, %if.then ], [ %add, %if.then11 ], [ %2, %if.else13 ]
  %3 = bitcast half %x to i16
  %.signext = sext i16 %3 to i32
  %shl = and i32 %.signext, -2147483648
  %or16 = or i32 %result.sroa.0.0, %shl
  %4 = bitcast i32 %or16 to float
  ret float %4
}

define half @__truncdfhf2(double noundef %x) local_unnamed_addr #0 {
entry:
  %0 = tail call double @llvm.fabs.f64(double %x)
  %and = bitcast double %0 to i64
  %shr = lshr i64 %and, 52
  %cmp = icmp samesign ugt i64 %and, 9218868437227405312
  br i1 %cmp, label %if.then, label %if.else

if.then:
  %shr2 = lshr i64 %and, 42
  %and3 = and i64 %shr2, 511
  %or = or disjoint i64 %and3, 32256
  br label %if.end23

if.else:
  %cmp4 = icmp samesign ugt i64 %and, 4679237813814689791
  br i1 %cmp4, label %if.end23, label %if.else7

if.else7:
  %cmp8 = icmp samesign ugt i64 %and, 4544132024016830463
  br i1 %cmp8, label %if.then10, label %if.else12

if.then10:
  %add.i = add nsw i64 %and, -4539626225366204417
  %shr.i = lshr i64 %and, 42
  %and.i = and i64 %shr.i, 1
  %add3.i = add nuw nsw i64 %add.i, %and.i
  %shr5.i = lshr i64 %add3.i, 42
  br label %if.end23

if.else12:
  %cmp13 = icmp samesign ugt i64 %and, 4494592428115755007
  br i1 %cmp13, label %if.then15, label %if.end23

if.then15:
  %and16 = and i64 %and, 4503599627370495
  %or17 = or disjoint i64 %and16, 4503599627370496
  %sub18 = sub nuw nsw i64 1051, %shr
  %sub.i = sub nuw nsw i64 1050, %shr
  %notmask.i = shl nsw i64 -1, %sub.i
  %sub1.i = xor i64 %notmask.i, -1
  %add.i36 = add nuw nsw i64 %or17, %sub1.i
  %shr.i37 = lshr i64 %or17, %sub18
  %and.i38 = and i64 %shr.i37, 1
  %add3.i39 = add nuw nsw i64 %add.i36, %and.i38
  %shr5.i40 = lshr i64 %add3.i39, %sub18
  br label %if.end23

if.end23:
  %made.0 = phi i64 [ %or, %if.then ], [ %shr5.i, %if.then10 ], [ %shr5.i40, %if.then15 ], [ 31744, %if.else ], [ 0, %if.else12 ]
  %1 = bitcast double %x to i64
  %2 = lshr i64 %1, 48
  %shl = and i64 %2, 32768
  %or26 = or i64 %made.0, %shl
  %conv27 = trunc i64 %or26 to i16
  %3 = bitcast i16 %conv27 to half
  ret half %3
}

define half @__truncsfhf2(float noundef %x) local_unnamed_addr #0 {
entry:
  %conv = fpext float %x to double
  %0 = tail call double @llvm.fabs.f64(double %conv)
  %and.i = bitcast double %0 to i64
  %shr.i = lshr i64 %and.i, 52
  %cmp.i = icmp samesign ugt i64 %and.i, 9218868437227405312
  br i1 %cmp.i, label %if.then.i, label %if.else.i

if.then.i:
  %shr2.i = lshr i64 %and.i, 42
  %and3.i = and i64 %shr2.i, 511
  %or.i = or disjoint i64 %and3.i, 32256
  br label %__truncdfhf2.exit

if.else.i:
  %cmp4.i = icmp samesign ugt i64 %and.i, 4679237813814689791
  br i1 %cmp4.i, label %__truncdfhf2.exit, label %if.else7.i

if.else7.i:
  %cmp8.i = icmp samesign ugt i64 %and.i, 4544132024016830463
  br i1 %cmp8.i, label %if.then10.i, label %if.else12.i

if.then10.i:
  %add.i.i = add nsw i64 %and.i, -4539626225366204417
  %shr.i.i = lshr i64 %and.i, 42
  %and.i.i = and i64 %shr.i.i, 1
  %add3.i.i = add nuw nsw i64 %add.i.i, %and.i.i
  %shr5.i.i = lshr i64 %add3.i.i, 42
  br label %__truncdfhf2.exit

if.else12.i:
  %cmp13.i = icmp samesign ugt i64 %and.i, 4494592428115755007
  br i1 %cmp13.i, label %if.then15.i, label %__truncdfhf2.exit

if.then15.i:
  %and16.i = and i64 %and.i, 4503599627370495
  %or17.i = or disjoint i64 %and16.i, 4503599627370496
  %sub18.i = sub nuw nsw i64 1051, %shr.i
  %sub.i.i = sub nuw nsw i64 1050, %shr.i
  %notmask.i.i = shl nsw i64 -1, %sub.i.i
  %sub1.i.i = xor i64 %notmask.i.i, -1
  %add.i36.i = add nuw nsw i64 %or17.i, %sub1.i.i
  %shr.i37.i = lshr i64 %or17.i, %sub18.i
  %and.i38.i = and i64 %shr.i37.i, 1
  %add3.i39.i = add nuw nsw i64 %add.i36.i, %and.i38.i
  %shr5.i40.i = lshr i64 %add3.i39.i, %sub18.i
  br label %__truncdfhf2.exit

__truncdfhf2.exit:
  %made.0.i = phi i64 [ %or.i, %if.then.i ], [ %shr5.i.i, %if.then10.i ], [ %shr5.i40.i, %if.then15.i ], [ 31744, %if.else.i ], [ 0, %if.else12.i ]
  %1 = bitcast double %conv to i64
  %2 = lshr i64 %1, 48
  %shl.i = and i64 %2, 32768
  %or26.i = or i64 %made.0.i, %shl.i
  %conv27.i = trunc i64 %or26.i to i16
  %3 = bitcast i16 %conv27.i to half
  ret half %3
}

declare half @llvm.fabs.f16(half) #1

declare double @llvm.fabs.f64(double) #1

attributes #0 = { nounwind }
attributes #1 = { nounwind }
