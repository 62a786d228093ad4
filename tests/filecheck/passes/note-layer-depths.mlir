// The reduction depth of a layer is noted while it is an op; the table of a profile has it, as MACs.
// RUN: fewbit-opt %s -t cpu:x86-64-v3 --split-input-file \
// RUN:   -p note-layer-depths,call-kernels,rename-entry,bind-memory,to-upstream,empty-tensor-to-alloc-tensor \
// RUN:   -p 'one-shot-bufferize{bufferize-function-boundaries=true function-boundary-type-conversion=identity-layout-map}' \
// RUN:   -p 'canonicalize,place-outputs,plan-memory,share-work{wait-always=true},count-cycles' \
// RUN:   -p expand-strided-metadata,lower-affine,convert-scf-to-cf,convert-arith-to-llvm,finalize-memref-to-llvm \
// RUN:   -p convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts,translate-to-llvm-ir | filecheck %s

// 8 multiply-adds for each of 2 x 4 outputs are 64 MACs, over 352 bytes of which 256 are weights.
// CHECK-DAG: @profile.text.0 = {{.*}} c"fc\00"
// CHECK-DAG: @profile.table = {{.*}} { ptr @profile.text.0, ptr @profile.text.1, i64 64, i64 352, i64 256,
mico.constant @fc.weight : tensor<4x8xf32> = dense<1.0>
func.func @main(%x: tensor<2x8xf32>) -> tensor<2x4xf32> {
  %y = kernel.matmul(%x, @fc.weight) : (tensor<2x8xf32>) -> tensor<2x4xf32> loc("fc")
  func.return %y : tensor<2x4xf32>
}

// -----

// Left alone: pooling multiplies nothing, so it has no depth and no MACs.
// CHECK: // -----
// CHECK: @profile.table = {{.*}} { ptr @profile.text.0, ptr @profile.text.1, i64 0, i64
func.func @main(%x: tensor<1x4x4x8xf32>) -> tensor<1x2x2x8xf32> {
  %y = kernel.pool2d(%x) {kind = "max", kernel_size = [2, 2]} : (tensor<1x4x4x8xf32>) -> tensor<1x2x2x8xf32> loc("pool")
  func.return %y : tensor<1x2x2x8xf32>
}
