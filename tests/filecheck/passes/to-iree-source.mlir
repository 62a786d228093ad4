// The module is written as generic text for IREE's compiler; locations are numbers into a table.
// RUN: fewbit-opt %s -p lower-elementwise,to-iree-source | filecheck %s
// RUN: fewbit-opt %s -p lower-elementwise,dispatch-kernels,to-iree-source -t cpu:x86-64-v3 | filecheck %s --check-prefix=KERNELS
// RUN: not fewbit-opt %s -p to-iree-source 2>&1 | filecheck %s --check-prefix=OURS

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

// Refused: an op that only we know, which no pass has lowered.
// OURS: in to-iree-source: IREE does not know mico.relu
func.func @ours(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = mico.relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
