; Written by `make runtime` from dispatch.c, do not edit.

@variants.names = external local_unnamed_addr constant [0 x ptr], align 8
@variants.count = external local_unnamed_addr constant i32, align 4
@chosen = internal global i32 0, align 4
@variants.run = external local_unnamed_addr constant [0 x ptr], align 8
@variants.shapes = external local_unnamed_addr constant [0 x ptr], align 8
@variants.static_arena = external local_unnamed_addr constant i64, align 8
@variants.arena_bytes = external local_unnamed_addr constant [0 x ptr], align 8
@variants.profile = external local_unnamed_addr constant [0 x ptr], align 8
@variants.ticks = external local_unnamed_addr constant [0 x ptr], align 8
@.str = private unnamed_addr constant [5 x i8] c"auto\00", align 1

define ptr @dispatch.variant() local_unnamed_addr #0 {
entry:
  %0 = load atomic i32, ptr @chosen monotonic, align 4
  %cmp.not.i.i = icmp eq i32 %0, 0
  br i1 %cmp.not.i.i, label %if.end.i.i, label %current.exit

if.end.i.i:
  %call.i.i = tail call i32 @variants.fitting() #4
  %shl.i.i = shl i32 %call.i.i, 8
  %cmp.i.i.i = icmp eq i32 %call.i.i, 0
  %1 = tail call range(i32 0, 33) i32 @llvm.cttz.i32(i32 %call.i.i, i1 false)
  %add.i.i.i = add nuw nsw i32 %1, 1
  %cond.i.i.i = select i1 %cmp.i.i.i, i32 0, i32 %add.i.i.i
  %or.i.i = or disjoint i32 %cond.i.i.i, %shl.i.i
  %2 = cmpxchg ptr @chosen, i32 0, i32 %or.i.i monotonic monotonic, align 4
  %3 = extractvalue { i32, i1 } %2, 1
  %4 = extractvalue { i32, i1 } %2, 0
  %retval.0.i.i = select i1 %3, i32 %or.i.i, i32 %4
  br label %current.exit

current.exit:
  %retval.1.i.i = phi i32 [ %retval.0.i.i, %if.end.i.i ], [ %0, %entry ]
  %and.i = and i32 %retval.1.i.i, 255
  %cmp = icmp eq i32 %and.i, 0
  br i1 %cmp, label %cond.end, label %cond.false

cond.false:
  %sub = add nsw i32 %and.i, -1
  %idxprom = zext nneg i32 %sub to i64
  %arrayidx = getelementptr inbounds nuw [0 x ptr], ptr @variants.names, i64 0, i64 %idxprom
  %5 = load ptr, ptr %arrayidx, align 8
  br label %cond.end

cond.end:
  %cond = phi ptr [ %5, %cond.false ], [ null, %current.exit ]
  ret ptr %cond
}

define range(i32 0, 7) i32 @dispatch.use_variant(ptr noundef readonly captures(address_is_null) %name) local_unnamed_addr #0 {
entry:
  %cmp = icmp eq ptr %name, null
  br i1 %cmp, label %return, label %if.end

if.end:
  %0 = load i8, ptr %name, align 1
  %cmp10.i.i = icmp eq i8 %0, 97
  br i1 %cmp10.i.i, label %if.end.i.i, label %while.cond.preheader.i

if.end.i.i:
  %b.addr.014.i.i = phi ptr [ %incdec.ptr6.i.i, %if.end.i.i ], [ @.str, %if.end ]
  %a.addr.013.i.i = phi ptr [ %incdec.ptr.i.i, %if.end.i.i ], [ %name, %if.end ]
  %incdec.ptr.i.i = getelementptr inbounds nuw i8, ptr %a.addr.013.i.i, i64 1
  %incdec.ptr6.i.i = getelementptr inbounds nuw i8, ptr %b.addr.014.i.i, i64 1
  %1 = load i8, ptr %incdec.ptr.i.i, align 1
  %2 = load i8, ptr %incdec.ptr6.i.i, align 1
  %cmp.i.i = icmp eq i8 %1, %2
  %cmp4.i.i = icmp ne i8 %1, 0
  %or.cond.not.i.i = and i1 %cmp4.i.i, %cmp.i.i
  br i1 %or.cond.not.i.i, label %if.end.i.i, label %equal.exit.i

equal.exit.i:
  br i1 %cmp.i.i, label %if.end3, label %while.cond.preheader.i

while.cond.preheader.i:
  %3 = load i32, ptr @variants.count, align 4
  %cmp.not18.i = icmp eq i32 %3, 0
  br i1 %cmp.not18.i, label %find.exit, label %land.rhs.lr.ph.i

land.rhs.lr.ph.i:
  %cmp411.i7.i = icmp ne i8 %0, 0
  br label %land.rhs.i

land.rhs.i:
  %number.019.i = phi i32 [ 1, %land.rhs.lr.ph.i ], [ %inc.i, %while.body.i ]
  %sub.i = add i32 %number.019.i, -1
  %idxprom.i = zext i32 %sub.i to i64
  %arrayidx.i = getelementptr inbounds nuw [0 x ptr], ptr @variants.names, i64 0, i64 %idxprom.i
  %4 = load ptr, ptr %arrayidx.i, align 8
  %5 = load i8, ptr %4, align 1
  %cmp10.i6.i = icmp eq i8 %0, %5
  %or.cond.not12.i.i = and i1 %cmp411.i7.i, %cmp10.i6.i
  br i1 %or.cond.not12.i.i, label %if.end.i9.i, label %equal.exit17.i

if.end.i9.i:
  %b.addr.014.i10.i = phi ptr [ %incdec.ptr6.i13.i, %if.end.i9.i ], [ %4, %land.rhs.i ]
  %a.addr.013.i11.i = phi ptr [ %incdec.ptr.i12.i, %if.end.i9.i ], [ %name, %land.rhs.i ]
  %incdec.ptr.i12.i = getelementptr inbounds nuw i8, ptr %a.addr.013.i11.i, i64 1
  %incdec.ptr6.i13.i = getelementptr inbounds nuw i8, ptr %b.addr.014.i10.i, i64 1
  %6 = load i8, ptr %incdec.ptr.i12.i, align 1
  %7 = load i8, ptr %incdec.ptr6.i13.i, align 1
  %cmp.i14.i = icmp eq i8 %6, %7
  %cmp4.i15.i = icmp ne i8 %6, 0
  %or.cond.not.i16.i = and i1 %cmp4.i15.i, %cmp.i14.i
  br i1 %or.cond.not.i16.i, label %if.end.i9.i, label %equal.exit17.i

equal.exit17.i:
  %cmp.lcssa.i8.i = phi i1 [ %cmp10.i6.i, %land.rhs.i ], [ %cmp.i14.i, %if.end.i9.i ]
  br i1 %cmp.lcssa.i8.i, label %find.exit, label %while.body.i

while.body.i:
  %inc.i = add i32 %number.019.i, 1
  %cmp.not.i = icmp ugt i32 %inc.i, %3
  br i1 %cmp.not.i, label %find.exit, label %land.rhs.i

find.exit:
  %retval.0.i = phi i32 [ 1, %while.cond.preheader.i ], [ %number.019.i, %equal.exit17.i ], [ %inc.i, %while.body.i ]
  %cmp1 = icmp ugt i32 %retval.0.i, %3
  br i1 %cmp1, label %return, label %if.end3

if.end3:
  %retval.0.i27 = phi i32 [ %retval.0.i, %find.exit ], [ 0, %equal.exit.i ]
  %8 = load atomic i32, ptr @chosen monotonic, align 4
  %cmp.not.i21 = icmp eq i32 %8, 0
  br i1 %cmp.not.i21, label %if.end.i, label %state.exit

if.end.i:
  %call.i = tail call i32 @variants.fitting() #4
  %shl.i = shl i32 %call.i, 8
  %cmp.i.i22 = icmp eq i32 %call.i, 0
  %9 = tail call range(i32 0, 33) i32 @llvm.cttz.i32(i32 %call.i, i1 false)
  %add.i.i = add nuw nsw i32 %9, 1
  %cond.i.i = select i1 %cmp.i.i22, i32 0, i32 %add.i.i
  %or.i = or disjoint i32 %cond.i.i, %shl.i
  %10 = cmpxchg ptr @chosen, i32 0, i32 %or.i monotonic monotonic, align 4
  %11 = extractvalue { i32, i1 } %10, 1
  %12 = extractvalue { i32, i1 } %10, 0
  %retval.0.i23 = select i1 %11, i32 %or.i, i32 %12
  br label %state.exit

state.exit:
  %retval.1.i = phi i32 [ %retval.0.i23, %if.end.i ], [ %8, %if.end3 ]
  %cmp5 = icmp eq i32 %retval.0.i27, 0
  br i1 %cmp5, label %if.then6, label %lor.lhs.false

if.then6:
  %shr = lshr i32 %retval.1.i, 8
  %cmp.i = icmp ult i32 %retval.1.i, 256
  %13 = tail call range(i32 0, 33) i32 @llvm.cttz.i32(i32 %shr, i1 false)
  %add.i = add nuw nsw i32 %13, 1
  br i1 %cmp.i, label %return, label %lor.lhs.false

lor.lhs.false:
  %number.0.ph = phi i32 [ %retval.0.i27, %state.exit ], [ %add.i, %if.then6 ]
  %sub.i24 = add i32 %number.0.ph, 7
  %14 = shl nuw i32 1, %sub.i24
  %15 = and i32 %14, %retval.1.i
  %tobool.i.not = icmp eq i32 %15, 0
  br i1 %tobool.i.not, label %return, label %if.end12

if.end12:
  %and = and i32 %retval.1.i, -256
  %or = or i32 %number.0.ph, %and
  store atomic i32 %or, ptr @chosen monotonic, align 4
  br label %return

return:
  %retval.2 = phi i32 [ 1, %entry ], [ 6, %find.exit ], [ 0, %if.end12 ], [ 6, %lor.lhs.false ], [ 6, %if.then6 ]
  ret i32 %retval.2
}

define i32 @dispatch.run(ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i32 noundef %threads) local_unnamed_addr #0 {
entry:
  %0 = load atomic i32, ptr @chosen monotonic, align 4
  %cmp.not.i.i = icmp eq i32 %0, 0
  br i1 %cmp.not.i.i, label %if.end.i.i, label %current.exit

if.end.i.i:
  %call.i.i = tail call i32 @variants.fitting() #4
  %shl.i.i = shl i32 %call.i.i, 8
  %cmp.i.i.i = icmp eq i32 %call.i.i, 0
  %1 = tail call range(i32 0, 33) i32 @llvm.cttz.i32(i32 %call.i.i, i1 false)
  %add.i.i.i = add nuw nsw i32 %1, 1
  %cond.i.i.i = select i1 %cmp.i.i.i, i32 0, i32 %add.i.i.i
  %or.i.i = or disjoint i32 %cond.i.i.i, %shl.i.i
  %2 = cmpxchg ptr @chosen, i32 0, i32 %or.i.i monotonic monotonic, align 4
  %3 = extractvalue { i32, i1 } %2, 1
  %4 = extractvalue { i32, i1 } %2, 0
  %retval.0.i.i = select i1 %3, i32 %or.i.i, i32 %4
  br label %current.exit

current.exit:
  %retval.1.i.i = phi i32 [ %retval.0.i.i, %if.end.i.i ], [ %0, %entry ]
  %and.i = and i32 %retval.1.i.i, 255
  %cmp = icmp eq i32 %and.i, 0
  br i1 %cmp, label %cond.end, label %cond.false

cond.false:
  %sub = add nsw i32 %and.i, -1
  %idxprom = zext nneg i32 %sub to i64
  %arrayidx = getelementptr inbounds nuw [0 x ptr], ptr @variants.run, i64 0, i64 %idxprom
  %5 = load ptr, ptr %arrayidx, align 8
  %call1 = tail call i32 %5(ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i32 noundef %threads) #4
  br label %cond.end

cond.end:
  %cond = phi i32 [ %call1, %cond.false ], [ 6, %current.exit ]
  ret i32 %cond
}

define i32 @dispatch.shapes(ptr noundef %inputs, ptr noundef %outputs) local_unnamed_addr #0 {
entry:
  %0 = load atomic i32, ptr @chosen monotonic, align 4
  %cmp.not.i.i = icmp eq i32 %0, 0
  br i1 %cmp.not.i.i, label %if.end.i.i, label %current.exit

if.end.i.i:
  %call.i.i = tail call i32 @variants.fitting() #4
  %shl.i.i = shl i32 %call.i.i, 8
  %cmp.i.i.i = icmp eq i32 %call.i.i, 0
  %1 = tail call range(i32 0, 33) i32 @llvm.cttz.i32(i32 %call.i.i, i1 false)
  %add.i.i.i = add nuw nsw i32 %1, 1
  %cond.i.i.i = select i1 %cmp.i.i.i, i32 0, i32 %add.i.i.i
  %or.i.i = or disjoint i32 %cond.i.i.i, %shl.i.i
  %2 = cmpxchg ptr @chosen, i32 0, i32 %or.i.i monotonic monotonic, align 4
  %3 = extractvalue { i32, i1 } %2, 1
  %4 = extractvalue { i32, i1 } %2, 0
  %retval.0.i.i = select i1 %3, i32 %or.i.i, i32 %4
  br label %current.exit

current.exit:
  %retval.1.i.i = phi i32 [ %retval.0.i.i, %if.end.i.i ], [ %0, %entry ]
  %and.i = and i32 %retval.1.i.i, 255
  %cmp = icmp eq i32 %and.i, 0
  br i1 %cmp, label %cond.end, label %cond.false

cond.false:
  %sub = add nsw i32 %and.i, -1
  %idxprom = zext nneg i32 %sub to i64
  %arrayidx = getelementptr inbounds nuw [0 x ptr], ptr @variants.shapes, i64 0, i64 %idxprom
  %5 = load ptr, ptr %arrayidx, align 8
  %call1 = tail call i32 %5(ptr noundef %inputs, ptr noundef %outputs) #4
  br label %cond.end

cond.end:
  %cond = phi i32 [ %call1, %cond.false ], [ 6, %current.exit ]
  ret i32 %cond
}

define i64 @dispatch.arena_bytes(ptr noundef %inputs) local_unnamed_addr #0 {
entry:
  %0 = load i64, ptr @variants.static_arena, align 8
  %cmp = icmp sgt i64 %0, -1
  br i1 %cmp, label %return, label %if.end

if.end:
  %1 = load atomic i32, ptr @chosen monotonic, align 4
  %cmp.not.i = icmp eq i32 %1, 0
  br i1 %cmp.not.i, label %if.end.i, label %state.exit

if.end.i:
  %call.i = tail call i32 @variants.fitting() #4
  %shl.i = shl i32 %call.i, 8
  %cmp.i.i = icmp eq i32 %call.i, 0
  %2 = tail call range(i32 0, 33) i32 @llvm.cttz.i32(i32 %call.i, i1 false)
  %add.i.i = add nuw nsw i32 %2, 1
  %cond.i.i = select i1 %cmp.i.i, i32 0, i32 %add.i.i
  %or.i = or disjoint i32 %cond.i.i, %shl.i
  %3 = cmpxchg ptr @chosen, i32 0, i32 %or.i monotonic monotonic, align 4
  %4 = extractvalue { i32, i1 } %3, 1
  %5 = extractvalue { i32, i1 } %3, 0
  %retval.0.i = select i1 %4, i32 %or.i, i32 %5
  br label %state.exit

state.exit:
  %retval.1.i = phi i32 [ %retval.0.i, %if.end.i ], [ %1, %if.end ]
  %6 = load i32, ptr @variants.count, align 4
  %cmp1.not13 = icmp eq i32 %6, 0
  br i1 %cmp1.not13, label %return, label %for.body

for.body:
  %number.015 = phi i32 [ %inc, %for.inc ], [ 1, %state.exit ]
  %most.014 = phi i64 [ %most.1, %for.inc ], [ 0, %state.exit ]
  %sub.i = add i32 %number.015, 7
  %7 = shl nuw i32 1, %sub.i
  %8 = and i32 %7, %retval.1.i
  %tobool.i.not = icmp eq i32 %8, 0
  br i1 %tobool.i.not, label %for.inc, label %if.end4

if.end4:
  %sub = add i32 %number.015, -1
  %idxprom = zext i32 %sub to i64
  %arrayidx = getelementptr inbounds nuw [0 x ptr], ptr @variants.arena_bytes, i64 0, i64 %idxprom
  %9 = load ptr, ptr %arrayidx, align 8
  %call5 = tail call i64 %9(ptr noundef %inputs) #4
  %cond = tail call i64 @llvm.umax.i64(i64 %call5, i64 %most.014)
  br label %for.inc

for.inc:
  %most.1 = phi i64 [ %cond, %if.end4 ], [ %most.014, %for.body ]
  %inc = add i32 %number.015, 1
  %cmp1.not = icmp ugt i32 %inc, %6
  br i1 %cmp1.not, label %return, label %for.body

return:
  %retval.0 = phi i64 [ %0, %entry ], [ 0, %state.exit ], [ %most.1, %for.inc ]
  ret i64 %retval.0
}

define ptr @dispatch.profile(ptr noundef %rows) local_unnamed_addr #0 {
entry:
  %0 = load atomic i32, ptr @chosen monotonic, align 4
  %cmp.not.i.i = icmp eq i32 %0, 0
  br i1 %cmp.not.i.i, label %if.end.i.i, label %current.exit

if.end.i.i:
  %call.i.i = tail call i32 @variants.fitting() #4
  %shl.i.i = shl i32 %call.i.i, 8
  %cmp.i.i.i = icmp eq i32 %call.i.i, 0
  %1 = tail call range(i32 0, 33) i32 @llvm.cttz.i32(i32 %call.i.i, i1 false)
  %add.i.i.i = add nuw nsw i32 %1, 1
  %cond.i.i.i = select i1 %cmp.i.i.i, i32 0, i32 %add.i.i.i
  %or.i.i = or disjoint i32 %cond.i.i.i, %shl.i.i
  %2 = cmpxchg ptr @chosen, i32 0, i32 %or.i.i monotonic monotonic, align 4
  %3 = extractvalue { i32, i1 } %2, 1
  %4 = extractvalue { i32, i1 } %2, 0
  %retval.0.i.i = select i1 %3, i32 %or.i.i, i32 %4
  br label %current.exit

current.exit:
  %retval.1.i.i = phi i32 [ %retval.0.i.i, %if.end.i.i ], [ %0, %entry ]
  %and.i = and i32 %retval.1.i.i, 255
  %cmp = icmp eq i32 %and.i, 0
  br i1 %cmp, label %cond.end, label %cond.false

cond.false:
  %sub = add nsw i32 %and.i, -1
  %idxprom = zext nneg i32 %sub to i64
  %arrayidx = getelementptr inbounds nuw [0 x ptr], ptr @variants.profile, i64 0, i64 %idxprom
  %5 = load ptr, ptr %arrayidx, align 8
  %call1 = tail call ptr %5(ptr noundef %rows) #4
  br label %cond.end

cond.end:
  %cond = phi ptr [ %call1, %cond.false ], [ null, %current.exit ]
  ret ptr %cond
}

define i64 @dispatch.ticks() local_unnamed_addr #0 {
entry:
  %0 = load atomic i32, ptr @chosen monotonic, align 4
  %cmp.not.i.i = icmp eq i32 %0, 0
  br i1 %cmp.not.i.i, label %if.end.i.i, label %current.exit

if.end.i.i:
  %call.i.i = tail call i32 @variants.fitting() #4
  %shl.i.i = shl i32 %call.i.i, 8
  %cmp.i.i.i = icmp eq i32 %call.i.i, 0
  %1 = tail call range(i32 0, 33) i32 @llvm.cttz.i32(i32 %call.i.i, i1 false)
  %add.i.i.i = add nuw nsw i32 %1, 1
  %cond.i.i.i = select i1 %cmp.i.i.i, i32 0, i32 %add.i.i.i
  %or.i.i = or disjoint i32 %cond.i.i.i, %shl.i.i
  %2 = cmpxchg ptr @chosen, i32 0, i32 %or.i.i monotonic monotonic, align 4
  %3 = extractvalue { i32, i1 } %2, 1
  %4 = extractvalue { i32, i1 } %2, 0
  %retval.0.i.i = select i1 %3, i32 %or.i.i, i32 %4
  br label %current.exit

current.exit:
  %retval.1.i.i = phi i32 [ %retval.0.i.i, %if.end.i.i ], [ %0, %entry ]
  %and.i = and i32 %retval.1.i.i, 255
  %cmp = icmp eq i32 %and.i, 0
  br i1 %cmp, label %cond.end, label %cond.false

cond.false:
  %sub = add nsw i32 %and.i, -1
  %idxprom = zext nneg i32 %sub to i64
  %arrayidx = getelementptr inbounds nuw [0 x ptr], ptr @variants.ticks, i64 0, i64 %idxprom
  %5 = load ptr, ptr %arrayidx, align 8
  %call1 = tail call i64 %5() #4
  br label %cond.end

cond.end:
  %cond = phi i64 [ %call1, %cond.false ], [ 0, %current.exit ]
  ret i64 %cond
}

declare i32 @variants.fitting() local_unnamed_addr

declare i32 @llvm.cttz.i32(i32, i1 immarg) #2

declare i64 @llvm.umax.i64(i64, i64) #3

attributes #0 = { nounwind }

attributes #2 = { nounwind }
attributes #3 = { nounwind }
attributes #4 = { nounwind }
