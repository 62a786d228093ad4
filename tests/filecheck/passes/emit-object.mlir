// LLVM IR becomes machine code of the target's processor, shown as assembly.
// RUN: fewbit-opt %s -t cpu:x86-64-v3 \
// RUN:   -p call-kernels,rename-entry,bind-memory,to-upstream,empty-tensor-to-alloc-tensor \
// RUN:   -p 'one-shot-bufferize{bufferize-function-boundaries=true function-boundary-type-conversion=identity-layout-map}' \
// RUN:   -p canonicalize,place-outputs,outline-loops,plan-memory \
// RUN:   -p func.func(convert-linalg-to-affine-loops),lower-affine,share-work,expand-strided-metadata,lower-affine \
// RUN:   -p convert-scf-to-cf,convert-arith-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm,convert-cf-to-llvm \
// RUN:   -p reconcile-unrealized-casts,mark-loops,translate-to-llvm-ir,emit-object | filecheck %s
// RUN: not fewbit-opt %s -p emit-object 2>&1 | filecheck %s --check-prefix=EARLY

// Refused: it is no LLVM IR yet.
// EARLY: in emit-object: machine code is made of LLVM IR, which the program is not yet
// EARLY-NEXT: hint: run translate-to-llvm-ir

// The loop of four elements is one addition of a vector.
// CHECK-LABEL: program.entry_000:
// CHECK:         vmovups (%rdi), %xmm0
// CHECK-NEXT:    vaddps %xmm0, %xmm0, %xmm0
// CHECK-NEXT:    vmovups %xmm0, (%rsi)
// CHECK: .globl model_run

// Left alone: what is internal to the library is not to be called from outside.
// CHECK-NOT: .globl program.entry

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
