// Loops of sums whose order is free are to be computed in 16 lanes, on every processor.
// RUN: fewbit-opt %s -p add-in-lanes | filecheck %s

// CHECK: #[[WIDTH:.*]] = #llvm.loop_vectorize<disable = false, scalableEnable = false, width = 16 : i32>
// CHECK: #[[LANES:.*]] = #llvm.loop_annotation<vectorize = #[[WIDTH]]

// CHECK-LABEL: llvm.func @free
// CHECK:         llvm.fadd {{.*}}reassoc
// CHECK:         llvm.cond_br {{.*}} {loop_annotation = #[[LANES]]}
llvm.func @free(%p: !llvm.ptr, %n: i64) -> f32 {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %start = llvm.mlir.constant(0.0 : f32) : f32
  llvm.br ^loop(%zero, %start : i64, f32)
^loop(%i: i64, %total: f32):
  %at = llvm.getelementptr %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %x = llvm.load %at : !llvm.ptr -> f32
  %more = llvm.fadd %total, %x {fastmathFlags = #llvm.fastmath<reassoc>} : f32
  %next = llvm.add %i, %one : i64
  %again = llvm.icmp "slt" %next, %n : i64
  llvm.cond_br %again, ^loop(%next, %more : i64, f32), ^end
^end:
  llvm.return %more : f32
}

// Left alone: the same loop, whose additions are in order.
// CHECK-LABEL: llvm.func @in_order
// CHECK:         llvm.fadd
// CHECK-NOT:     loop_annotation
// CHECK:         llvm.return
llvm.func @in_order(%p: !llvm.ptr, %n: i64) -> f32 {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %start = llvm.mlir.constant(0.0 : f32) : f32
  llvm.br ^loop(%zero, %start : i64, f32)
^loop(%i: i64, %total: f32):
  %at = llvm.getelementptr %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %x = llvm.load %at : !llvm.ptr -> f32
  %more = llvm.fadd %total, %x : f32
  %next = llvm.add %i, %one : i64
  %again = llvm.icmp "slt" %next, %n : i64
  llvm.cond_br %again, ^loop(%next, %more : i64, f32), ^end
^end:
  llvm.return %more : f32
}
