// Booleans in memory are read and written as bytes: LLVM vectorizes no loop over an i1.
// RUN: fewbit-opt %s -p booleans-to-bytes | filecheck %s

// CHECK-LABEL: llvm.func @copy
// CHECK-NEXT:    %[[B:.*]] = llvm.load %arg0 {alignment = 1 : i64} : !llvm.ptr -> i8
// CHECK-NEXT:    %[[X:.*]] = llvm.trunc %[[B]] : i8 to i1
// CHECK-NEXT:    %[[Z:.*]] = llvm.zext %[[X]] : i1 to i8
// CHECK-NEXT:    llvm.store %[[Z]], %arg1 {alignment = 1 : i64} : i8, !llvm.ptr
llvm.func @copy(%a: !llvm.ptr, %b: !llvm.ptr) {
  %x = llvm.load %a {alignment = 1 : i64} : !llvm.ptr -> i1
  llvm.store %x, %b {alignment = 1 : i64} : i1, !llvm.ptr
  llvm.return
}

// Left alone: numbers, and booleans that are in no memory.
// CHECK-LABEL: llvm.func @kept
// CHECK-NOT:     i8
// CHECK:         llvm.store %{{.*}}, %arg1 {alignment = 4 : i64} : i32, !llvm.ptr
llvm.func @kept(%a: !llvm.ptr, %b: !llvm.ptr) {
  %x = llvm.load %a {alignment = 4 : i64} : !llvm.ptr -> i32
  %is = llvm.icmp "eq" %x, %x : i32
  %y = llvm.select %is, %x, %x : i1, i32
  llvm.store %y, %b {alignment = 4 : i64} : i32, !llvm.ptr
  llvm.return
}
