// Valid modules, with every op of the dialect. In the form that people write.

builtin.module {
  graph.subgraph @model.layers.0.mlp on <npu>(%x: tensor<1x?x8xf32>) -> tensor<1x?x8xf32> {
    graph.return %x : tensor<1x?x8xf32>
  }
  graph.subgraph @model.layers.0(%x: tensor<1x?x8xf32>, %y: tensor<1x?x8xf32>) -> (tensor<1x?x8xf32>, tensor<1x?x8xf32>) {
    %0 = graph.transfer %x from <cpu> to <npu> : tensor<1x?x8xf32>
    %1 = graph.call @model.layers.0.mlp(%0) : (tensor<1x?x8xf32>) -> tensor<1x?x8xf32>
    %2 = graph.transfer %1 from <npu> to <gpu:1> : tensor<1x?x8xf32>
    graph.return %2, %y : tensor<1x?x8xf32>, tensor<1x?x8xf32>
  }
  func.func @main(%x: tensor<1x?x8xf32>) -> tensor<1x?x8xf32> {
    %0, %1 = graph.call @model.layers.0(%x, %x) : (tensor<1x?x8xf32>, tensor<1x?x8xf32>) -> (tensor<1x?x8xf32>, tensor<1x?x8xf32>)
    func.return %1 : tensor<1x?x8xf32>
  }
}
