// The module is written as generic text for IREE's compiler; locations are numbers into a table.
// RUN: fewbit-opt %s -p to-iree-source | filecheck %s
// RUN: fewbit-opt %s -p dispatch-kernels,to-iree-source -t cpu:x86-64-v3 | filecheck %s --check-prefix=KERNELS
// RUN: echo 'func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { %y = mico.relu(%x) : (tensor<4xf32>) -> tensor<4xf32> func.return %y : tensor<4xf32> }' >%t.mlir
// RUN: not fewbit-opt %t.mlir -p to-iree-source 2>&1 | filecheck %s --check-prefix=OURS

// Refused: ops that only we know.
// OURS: IREE does not know mico.relu

// CHECK:      "builtin.module"() ({
// CHECK-NEXT:   "func.func"() <{sym_name = "main"
// CHECK:        "arith.addf"(%x, %x) {{.*}} loc("fewbit":2:1)

// Left alone: where no kernel of ours is called, no executable stands in front.
// CHECK-NOT:  stream.executable
// KERNELS-NOT:  stream.executable
// KERNELS:      "arith.addf"
func.func @main(%x: f32) -> f32 {
  %y = arith.addf %x, %x : f32
  func.return %y : f32
}
