// A program that was split between accelerator and host becomes one again, and it is noted which
// layers were the host's: call-streams leaves these.
// RUN: fewbit-opt %s -p rejoin-devices,select-kernels,call-streams -t gemmini --split-input-file | filecheck %s
// RUN: fewbit-opt %s -p rejoin-devices --split-input-file | filecheck %s --check-prefix=JOINED

// JOINED-NOT: graph.subgraph
// JOINED-LABEL: func.func @split
// JOINED-NOT:     graph.
// JOINED:         %[[A:.*]] = mico.bitlinear(%x,
// JOINED:         mico.bitlinear(%[[A]],
// CHECK-LABEL: func.func @split
// CHECK:         func.call @kernel.000_near(
// CHECK:         kernel.matmul
// CHECK-NOT:     func.call
mico.constant @near.scale : tensor<f32> = dense<0.5>
mico.constant @near.weight : tensor<16x16x!mico.int<8>> = dense<1> scale @near.scale
mico.constant @far.scale : tensor<f32> = dense<0.5>
mico.constant @far.weight : tensor<16x16x!mico.int<8>> = dense<1> scale @far.scale
graph.subgraph @model.near on <gemmini>(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %s = arith.constant 0.5 : f32
  %y = mico.bitlinear(%x, @near.weight) act_scale(%s) {act_bits = 8} : (tensor<4x16xf32>, f32) -> tensor<4x16xf32>
  graph.return %y : tensor<4x16xf32>
}
graph.subgraph @model.far on <cpu>(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %s = arith.constant 0.5 : f32
  %y = mico.bitlinear(%x, @far.weight) act_scale(%s) {act_bits = 8} : (tensor<4x16xf32>, f32) -> tensor<4x16xf32>
  graph.return %y : tensor<4x16xf32>
}
func.func @split(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %0 = graph.transfer %x from <cpu> to <gemmini> : tensor<4x16xf32>
  %1 = graph.call @model.near(%0) : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %2 = graph.transfer %1 from <gemmini> to <cpu> : tensor<4x16xf32>
  %3 = graph.call @model.far(%2) : (tensor<4x16xf32>) -> tensor<4x16xf32>
  func.return %3 : tensor<4x16xf32>
}

// -----

// Left alone: subgraphs that are on no device, all of whose layers are the accelerator's.
// JOINED: graph.subgraph @model.layer
// JOINED-LABEL: func.func @whole
// JOINED:         graph.call @model.layer
graph.subgraph @model.layer(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %y = mico.relu(%x) : (tensor<4x16xf32>) -> tensor<4x16xf32>
  graph.return %y : tensor<4x16xf32>
}
func.func @whole(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %y = graph.call @model.layer(%x) : (tensor<4x16xf32>) -> tensor<4x16xf32>
  func.return %y : tensor<4x16xf32>
}
