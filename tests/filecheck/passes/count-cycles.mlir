// In a library with a profile, the entry reads the processor's counter around every call.
// RUN: fewbit-opt %s -t cpu:x86-64-v3 --split-input-file \
// RUN:   -p note-layer-depths,call-kernels,rename-entry,bind-memory,to-upstream,empty-tensor-to-alloc-tensor \
// RUN:   -p 'one-shot-bufferize{bufferize-function-boundaries=true function-boundary-type-conversion=identity-layout-map}' \
// RUN:   -p 'canonicalize,place-outputs,plan-memory,share-work{wait-always=true},count-cycles' | filecheck %s
// RUN: not fewbit-opt %s -p count-cycles --split-input-file 2>&1 | filecheck %s --check-prefix=UNKNOWN

// Refused: what is called, and how deep layers are, was noted by passes before.
// UNKNOWN: a pass needs to know the kernel calls

// CHECK-LABEL: func.func @program.entry
// CHECK:         %[[START:.*]] = call @profile.now() : () -> i64
// CHECK-NEXT:    %[[ROW:.*]] = arith.constant 0 : i64
// CHECK-NEXT:    call @kernel.000_fc(
// CHECK-NEXT:    call @threads.barrier(
// CHECK-NEXT:    call @profile.add(%[[ROW]], %[[START]], %arg4)
mico.constant @fc.weight : tensor<4x8xf32> = dense<1.0>
func.func @main(%x: tensor<2x8xf32>) -> tensor<2x4xf32> {
  %y = kernel.matmul(%x, @fc.weight) : (tensor<2x8xf32>) -> tensor<2x4xf32> loc("fc")
  func.return %y : tensor<2x4xf32>
}

// -----

// Left alone: an entry that calls nothing but the barrier.
// CHECK-LABEL: func.func @program.entry
// CHECK-NOT:     call @profile
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
