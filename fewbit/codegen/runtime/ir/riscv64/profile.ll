; Written by `make runtime` from profile.c, do not edit.

%struct.row = type { ptr, ptr, i64, i64, i64, i64, i64, i64 }

@profile.table = external global [0 x %struct.row], align 8
@profile.rows = external local_unnamed_addr constant i64, align 8

define i64 @profile.now() local_unnamed_addr #0 {
entry:
  %0 = tail call i64 @llvm.readsteadycounter()
  ret i64 %0
}

define void @profile.add(i64 noundef %number, i64 noundef %start, i64 noundef %thread) local_unnamed_addr #0 {
entry:
  %0 = tail call i64 @llvm.readsteadycounter()
  %cmp.not = icmp eq i64 %thread, 0
  br i1 %cmp.not, label %if.end, label %cleanup

if.end:
  %arrayidx = getelementptr inbounds nuw [0 x %struct.row], ptr @profile.table, i64 0, i64 %number
  %sub = sub i64 %0, %start
  %calls = getelementptr inbounds nuw i8, ptr %arrayidx, i64 40
  %1 = load i64, ptr %calls, align 8
  %inc = add i64 %1, 1
  store i64 %inc, ptr %calls, align 8
  %ticks = getelementptr inbounds nuw i8, ptr %arrayidx, i64 48
  %2 = load i64, ptr %ticks, align 8
  %add = add i64 %2, %sub
  store i64 %add, ptr %ticks, align 8
  %least = getelementptr inbounds nuw i8, ptr %arrayidx, i64 56
  %3 = load i64, ptr %least, align 8
  %sub. = tail call i64 @llvm.umin.i64(i64 %sub, i64 %3)
  store i64 %sub., ptr %least, align 8
  br label %cleanup

cleanup:
  ret void
}

define noundef nonnull ptr @profile.get(ptr noundef writeonly captures(none) initializes((0, 8)) %rows) local_unnamed_addr #1 {
entry:
  %0 = load i64, ptr @profile.rows, align 8
  store i64 %0, ptr %rows, align 8
  ret ptr @profile.table
}

define i64 @profile.ticks() local_unnamed_addr #2 {
entry:
  %0 = tail call i64 @llvm.readsteadycounter()
  ret i64 %0
}

declare i64 @llvm.readsteadycounter() #3

declare i64 @llvm.umin.i64(i64, i64) #4

attributes #0 = { alwaysinline nounwind }
attributes #1 = { nounwind }
attributes #2 = { nounwind }
attributes #3 = { nounwind }
attributes #4 = { nounwind }
