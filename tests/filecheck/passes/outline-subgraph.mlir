// RUN: fewbit-opt %s -p outline-subgraph | filecheck %s
// RUN: fewbit-opt %s -p 'outline-subgraph{scopes="re:model\\.layers\\.[0-9]+"}' | filecheck %s --check-prefix=SCOPE

// By the attribute. The op between that needs the result moves behind the call.
// CHECK-LABEL: graph.subgraph @block(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT:    %a = mico.relu(%x)
// CHECK-NEXT:    %b = mico.gelu(%a)
// CHECK-NEXT:    graph.return %a, %b
// CHECK-LABEL: func.func @by_attribute
// CHECK-NEXT:    %a, %b = graph.call @block(%x)
// CHECK-NEXT:    %between = mico.silu(%a)
// CHECK-NEXT:    %c = mico.add(%between, %b)
func.func @by_attribute(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = mico.relu(%x) {graph.outline = "block"} : (tensor<4xf32>) -> tensor<4xf32>
  %between = mico.silu(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %b = mico.gelu(%a) {graph.outline = "block"} : (tensor<4xf32>) -> tensor<4xf32>
  %c = mico.add(%between, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %c : tensor<4xf32>
}

// By the module path in the location: one subgraph for each layer, constants copied in.
// SCOPE-LABEL: graph.subgraph @model.layers.0(%x: tensor<4xf32>) -> tensor<4xf32> {
// SCOPE-NEXT:    %k = arith.constant dense<2.000000e+00>
// SCOPE-NEXT:    %a = mico.mul(%x, %k)
// SCOPE-NEXT:    %b = mico.relu(%a)
// SCOPE-NEXT:    graph.return %b
// SCOPE-LABEL: graph.subgraph @model.layers.1(%b: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
// SCOPE-NEXT:    %c = mico.add(%b, %x)
// SCOPE-NEXT:    graph.return %c
// SCOPE-LABEL: func.func @by_location
// SCOPE-NEXT:    %b = graph.call @model.layers.0(%x)
// SCOPE-NEXT:    %c = graph.call @model.layers.1(%b, %x)
// SCOPE-NEXT:    func.return %c
func.func @by_location(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = arith.constant dense<2.0> : tensor<4xf32>
  %a = mico.mul(%x, %k) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("model.layers.0.mlp")
  %b = mico.relu(%a) : (tensor<4xf32>) -> tensor<4xf32> loc("model.layers.0.act")
  %c = mico.add(%b, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("model.layers.1")
  func.return %c : tensor<4xf32>
}

// Left alone: what neither an attribute nor a scope chooses.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT:    mico.relu(%x)
// SCOPE-LABEL: func.func @kept
// SCOPE-NEXT:    mico.relu(%x)
func.func @kept(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = mico.relu(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("model.head")
  func.return %a : tensor<4xf32>
}
