// RUN: fewbit-opt %s -p inline | filecheck %s
// RUN: fewbit-opt %s -p 'inline{across-devices=true}' | filecheck %s --check-prefix=ACROSS
// RUN: fewbit-opt %s -p 'inline{only="model.fc"}' | filecheck %s --check-prefix=ONLY

// CHECK-NOT: @model.fc
// ONLY-NOT: subgraph @model.fc
graph.subgraph @model.fc(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = mico.relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
  graph.return %y : tensor<4xf32>
}

// Left alone: a call of what is on another device.
// CHECK-LABEL: graph.subgraph @model.attn on <npu>
// ACROSS-NOT: graph.subgraph
graph.subgraph @model.attn on <npu>(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = mico.softmax(%x) : (tensor<4xf32>) -> tensor<4xf32>
  graph.return %y : tensor<4xf32>
}

// ONLY-LABEL: graph.subgraph @model(
// ONLY-NEXT:    mico.relu(%x)
// ONLY-NEXT:    graph.call @model.attn
graph.subgraph @model(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = graph.call @model.fc(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = graph.call @model.attn(%a) : (tensor<4xf32>) -> tensor<4xf32>
  graph.return %b : tensor<4xf32>
}

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[A:.*]] = mico.relu(%x)
// CHECK-NEXT:    %[[B:.*]] = graph.call @model.attn(%[[A]])
// CHECK-NEXT:    func.return %[[B]]
// ACROSS-LABEL: func.func @main
// ACROSS-NEXT:    %[[A:.*]] = mico.relu(%x)
// ACROSS-NEXT:    %[[B:.*]] = mico.softmax(%[[A]])
// ACROSS-NEXT:    func.return %[[B]]
// ONLY-LABEL: func.func @main
// ONLY-NEXT:    graph.call @model(%x)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.call @model(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
