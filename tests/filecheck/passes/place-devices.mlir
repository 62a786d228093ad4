// RUN: fewbit-opt %s -p 'place-devices{rules="re:.*attn=gpu:1","model=npu" default=cpu}' | filecheck %s
// RUN: not fewbit-opt %s -p 'place-devices{rules="model.mpl=npu"}' 2>&1 | filecheck %s --check-prefix=UNMATCHED

// CHECK-LABEL: graph.subgraph @model.attn on <gpu:1>
graph.subgraph @model.attn(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = mico.softmax(%x) : (tensor<4xf32>) -> tensor<4xf32>
  graph.return %y : tensor<4xf32>
}

// CHECK-LABEL: graph.subgraph @model.mlp on <npu>
graph.subgraph @model.mlp(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = mico.relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
  graph.return %y : tensor<4xf32>
}

// The attention's result is transferred once, for two uses on the NPU.
// CHECK-LABEL: graph.subgraph @model on <npu>
// CHECK-NEXT:    %[[X:.*]] = graph.transfer %x from <npu> to <gpu:1> : tensor<4xf32>
// CHECK-NEXT:    %a = graph.call @model.attn(%[[X]])
// CHECK-NEXT:    %[[A:.*]] = graph.transfer %a from <gpu:1> to <npu> : tensor<4xf32>
// CHECK-NEXT:    %b = graph.call @model.mlp(%[[A]])
// CHECK-NEXT:    %c = mico.add(%[[A]], %b)
// CHECK-NEXT:    graph.return %c
graph.subgraph @model(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = graph.call @model.attn(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = graph.call @model.mlp(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %c = mico.add(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  graph.return %c : tensor<4xf32>
}

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[X:.*]] = graph.transfer %x from <cpu> to <npu> : tensor<4xf32>
// CHECK-NEXT:    %y = graph.call @model(%[[X]])
// CHECK-NEXT:    %[[Y:.*]] = graph.transfer %y from <npu> to <cpu> : tensor<4xf32>
// CHECK-NEXT:    func.return %[[Y]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.call @model(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// Refused: a rule that places nothing.
// UNMATCHED: 'model.mpl' matches no name in the module
// UNMATCHED: hint: names are, for example: model.mlp
