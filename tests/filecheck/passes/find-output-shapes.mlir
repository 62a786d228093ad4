// The shape function is evaluated on the sizes of inputs that were asked for (1 if none were): a
// plan of launches needs to know the outputs' memory.
// RUN: fewbit-opt %s -t cuda:sm_80 --split-input-file --verify-diagnostics \
// RUN:   -p call-layers,rename-entry,make-shape-function,find-output-shapes,drop-asserts,bind-memory \
// RUN:   -p to-upstream,func.func(linalg-generalize-named-ops),func.func(linalg-fuse-elementwise-ops),empty-tensor-to-alloc-tensor \
// RUN:   -p 'one-shot-bufferize{bufferize-function-boundaries=true function-boundary-type-conversion=identity-layout-map}' \
// RUN:   -p canonicalize,place-outputs,copies-to-linalg,func.func(linalg-generalize-named-ops),plan-memory,plan-launches | filecheck %s
// RUN: not fewbit-opt %s -t cuda:sm_80 --split-input-file -p find-output-shapes 2>&1 | filecheck %s --check-prefix=UNMADE

// Refused: there is no shape function that could be evaluated.
// UNMADE: a pass needs to know the shape function

// An output of 1 + 2 numbers is written by 3 threads.
// CHECK: if (THREAD >= 3ull) return;
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %n = tensor.dim %x, %zero : tensor<?xf32>
  %more = arith.addi %n, %two : index
  %e = tensor.empty(%more) : tensor<?xf32>
  %k = arith.constant 1.5 : f32
  %y = linalg.fill ins(%k : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// -----

// Refused: sizes of 1 do not hold what the program asserts.
// expected-error @unknown {{inputs of 1 do not fit together}}
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %n = tensor.dim %x, %zero : tensor<?xf32>
  %long = arith.cmpi sge, %n, %two : index
  cf.assert %long, "the input is too short"
  func.return %x : tensor<?xf32>
}
