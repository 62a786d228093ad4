// A module in the llvm dialect becomes LLVM IR, with the functions of a library that C code calls.
// RUN: fewbit-opt %s -t cpu:x86-64-v3 \
// RUN:   -p call-kernels,rename-entry,bind-memory,to-upstream,empty-tensor-to-alloc-tensor \
// RUN:   -p 'one-shot-bufferize{bufferize-function-boundaries=true function-boundary-type-conversion=identity-layout-map}' \
// RUN:   -p canonicalize,place-outputs,outline-loops,plan-memory \
// RUN:   -p func.func(convert-linalg-to-affine-loops),lower-affine,share-work,expand-strided-metadata,lower-affine \
// RUN:   -p convert-scf-to-cf,convert-arith-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm,convert-cf-to-llvm \
// RUN:   -p reconcile-unrealized-casts,mark-loops,translate-to-llvm-ir | filecheck %s
// RUN: not fewbit-opt %s -p translate-to-llvm-ir 2>&1 | filecheck %s --check-prefix=UNKNOWN

// Refused: without a target nothing is known of the processor.
// UNKNOWN: a pass needs to know the isa

// Memory of a loop nest does not overlap.
// CHECK: target triple = "x86_64
// CHECK: define internal void @program.entry_000(ptr noalias %0, ptr noalias %1,
// CHECK: fadd float

// What may be called from outside; nothing else is.
// CHECK-DAG: define i64 @model_arena_bytes(ptr %inputs)
// CHECK-DAG: define i32 @model_run(ptr %inputs, ptr %outputs, ptr %arena, i32 %threads)
// CHECK-NOT: {{^}}define void

#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
