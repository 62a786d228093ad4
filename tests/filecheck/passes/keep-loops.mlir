// A loop around a long loop is not to be unrolled.
// RUN: fewbit-opt %s -p keep-loops | filecheck %s

// CHECK: #[[UNROLL:.*]] = #llvm.loop_unroll<disable = true>
// CHECK: #[[KEPT:.*]] = #llvm.loop_annotation<unroll = #[[UNROLL]]>

// How many iterations the inner loop has is not known.
// CHECK-LABEL: llvm.func @dynamic
// CHECK:         llvm.store
// CHECK:         llvm.br ^bb2({{.*}} : i64){{$}}
// CHECK:         llvm.br ^bb1({{.*}} : i64) {loop_annotation = #[[KEPT]]}
// CHECK:         llvm.return
llvm.func @dynamic(%p: !llvm.ptr, %n: i64) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %four = llvm.mlir.constant(4 : i64) : i64
  llvm.br ^rows(%zero : i64)
^rows(%i: i64):
  %more_rows = llvm.icmp "slt" %i, %four : i64
  llvm.cond_br %more_rows, ^columns(%zero : i64), ^end
^columns(%j: i64):
  %more = llvm.icmp "slt" %j, %n : i64
  llvm.cond_br %more, ^body, ^next_row
^body:
  %at = llvm.getelementptr %p[%j] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.store %i, %at : i64, !llvm.ptr
  %next = llvm.add %j, %one : i64
  llvm.br ^columns(%next : i64)
^next_row:
  %row = llvm.add %i, %one : i64
  llvm.br ^rows(%row : i64)
^end:
  llvm.return
}

// Left alone: a window, both of whose loops are short.
// CHECK-LABEL: llvm.func @window
// CHECK-NOT:     loop_annotation
// CHECK:         llvm.return
llvm.func @window(%p: !llvm.ptr) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %three = llvm.mlir.constant(3 : i64) : i64
  llvm.br ^rows(%zero : i64)
^rows(%i: i64):
  %more_rows = llvm.icmp "slt" %i, %three : i64
  llvm.cond_br %more_rows, ^columns(%zero : i64), ^end
^columns(%j: i64):
  %more = llvm.icmp "slt" %j, %three : i64
  llvm.cond_br %more, ^body, ^next_row
^body:
  %at = llvm.getelementptr %p[%j] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.store %i, %at : i64, !llvm.ptr
  %next = llvm.add %j, %one : i64
  llvm.br ^columns(%next : i64)
^next_row:
  %row = llvm.add %i, %one : i64
  llvm.br ^rows(%row : i64)
^end:
  llvm.return
}

// Left alone: a long loop that is in no other.
// CHECK-LABEL: llvm.func @alone
// CHECK-NOT:     loop_annotation
// CHECK:         llvm.return
llvm.func @alone(%p: !llvm.ptr, %n: i64) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^columns(%zero : i64)
^columns(%j: i64):
  %more = llvm.icmp "slt" %j, %n : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %at = llvm.getelementptr %p[%j] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.store %j, %at : i64, !llvm.ptr
  %next = llvm.add %j, %one : i64
  llvm.br ^columns(%next : i64)
^end:
  llvm.return
}

// Of three loops the outer one is kept: those in it have 8 x 20 iterations.
// CHECK-LABEL: llvm.func @three
// CHECK:         llvm.br ^bb3({{.*}} : i64){{$}}
// CHECK:         llvm.br ^bb2({{.*}} : i64){{$}}
// CHECK:         llvm.br ^bb1({{.*}} : i64) {loop_annotation = #[[KEPT]]}
// CHECK:         llvm.return
llvm.func @three(%p: !llvm.ptr) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %eight = llvm.mlir.constant(8 : i64) : i64
  %twenty = llvm.mlir.constant(20 : i64) : i64
  llvm.br ^planes(%zero : i64)
^planes(%h: i64):
  %more_planes = llvm.icmp "slt" %h, %eight : i64
  llvm.cond_br %more_planes, ^rows(%zero : i64), ^end
^rows(%i: i64):
  %more_rows = llvm.icmp "slt" %i, %eight : i64
  llvm.cond_br %more_rows, ^columns(%zero : i64), ^next_plane
^columns(%j: i64):
  %more = llvm.icmp "slt" %j, %twenty : i64
  llvm.cond_br %more, ^body, ^next_row
^body:
  %at = llvm.getelementptr %p[%j] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.store %i, %at : i64, !llvm.ptr
  %next = llvm.add %j, %one : i64
  llvm.br ^columns(%next : i64)
^next_row:
  %row = llvm.add %i, %one : i64
  llvm.br ^rows(%row : i64)
^next_plane:
  %plane = llvm.add %h, %one : i64
  llvm.br ^planes(%plane : i64)
^end:
  llvm.return
}
