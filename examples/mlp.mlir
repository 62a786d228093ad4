// A layer with 4-bit weights and 8-bit activations, as a subgraph that can be placed on a device.

mico.constant @mlp.scale : tensor<2xf32> = dense<[0.5, 0.25]>
mico.constant @mlp.weight : tensor<2x4x!mico.int<4>> = dense<"0x10325476"> scale @mlp.scale

graph.subgraph @mlp(%x: tensor<1x4xf32>) -> tensor<1x2xf32> {
  %y = mico.bitlinear(%x, @mlp.weight) {act_bits = 8} : (tensor<1x4xf32>) -> tensor<1x2xf32>
  %z = mico.relu(%y) : tensor<1x2xf32> -> tensor<1x2xf32>
  graph.return %z : tensor<1x2xf32>
}

func.func @main(%x: tensor<1x4xf32>) -> tensor<1x2xf32> {
  %y = graph.call @mlp(%x) : (tensor<1x4xf32>) -> tensor<1x2xf32>
  func.return %y : tensor<1x2xf32>
}
