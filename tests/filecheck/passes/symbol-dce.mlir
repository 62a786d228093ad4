// RUN: fewbit-opt %s -p symbol-dce | filecheck %s
// RUN: fewbit-opt %s -p 'symbol-dce{keep="dead"}' | filecheck %s --check-prefix=KEEP

// Left alone: a scale is reached through its weight.
// CHECK: mico.constant @scale
mico.constant @scale : tensor<2xf32> = dense<1.0>
// CHECK: mico.constant @weight
mico.constant @weight : tensor<2x4x!mico.int<4>> = dense<"0x01234567"> scale @scale
// CHECK-NOT: @unused
mico.constant @unused : tensor<2xf32> = dense<1.0>

// CHECK-NOT: @dead
// KEEP: graph.subgraph @dead(
graph.subgraph @dead(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.call @dead.inner(%x) : (tensor<4xf32>) -> tensor<4xf32>
  graph.return %y : tensor<4xf32>
}
// KEEP: graph.subgraph @dead.inner(
graph.subgraph @dead.inner(%x: tensor<4xf32>) -> tensor<4xf32> {
  graph.return %x : tensor<4xf32>
}

// CHECK: func.func @main
func.func @main() -> tensor<2x4x!mico.int<4>> {
  %w = mico.get_constant @weight : tensor<2x4x!mico.int<4>>
  func.return %w : tensor<2x4x!mico.int<4>>
}
