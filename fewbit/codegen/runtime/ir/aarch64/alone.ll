; Written by `make runtime` from alone.c, do not edit.

define noundef i32 @threads.run(ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i64 noundef %threads, i64 noundef %sure) local_unnamed_addr #0 {
entry:
  tail call void @threads.part(ptr noundef %inputs, ptr noundef %outputs, ptr noundef %arena, i64 noundef 0, i64 noundef 1) #3
  ret i32 0
}

declare void @threads.part(ptr noundef, ptr noundef, ptr noundef, i64 noundef, i64 noundef) local_unnamed_addr

define void @threads.barrier(ptr noundef readnone captures(none) %arrivals, i64 noundef %threads) local_unnamed_addr #2 {
entry:
  ret void
}

attributes #0 = { nounwind }

attributes #2 = { alwaysinline nounwind }
attributes #3 = { nounwind }
