// Functions that hold a loop nest stay functions, with arguments that do not overlap.
// RUN: fewbit-opt %s -t cpu:x86-64-v3 -p mark-loops | filecheck %s
// RUN: fewbit-opt %s -p 'mark-loops{vector-bits=128}' | filecheck %s --check-prefix=GIVEN
// RUN: not fewbit-opt %s -p mark-loops 2>&1 | filecheck %s --check-prefix=UNKNOWN

// Refused: without a target or an option nothing is known of vectors.
// UNKNOWN: a pass needs to know the isa

// CHECK:       llvm.func @apart(%arg0: !llvm.ptr {llvm.noalias}, %arg1: i64, %arg2: !llvm.ptr {llvm.noalias})
// CHECK-SAME:    passthrough = ["noinline", "no-builtins", ["prefer-vector-width", "256"]]
// GIVEN:       passthrough = ["noinline", "no-builtins", ["prefer-vector-width", "128"]]
llvm.func @apart(%a: !llvm.ptr, %n: i64, %b: !llvm.ptr) attributes {loop_nest = {overlaps = false}} {
  llvm.return
}

// CHECK:       llvm.func @in_place(%arg0: !llvm.ptr, %arg1: !llvm.ptr)
// CHECK-SAME:    passthrough = ["noinline"
llvm.func @in_place(%a: !llvm.ptr, %b: !llvm.ptr) attributes {loop_nest = {overlaps = true}} {
  llvm.return
}

// Left alone: a function that is no loop nest.
// CHECK:       llvm.func @other(%arg0: !llvm.ptr) {
llvm.func @other(%a: !llvm.ptr) {
  llvm.return
}
