// RUN: fewbit-opt %s -p cse | filecheck %s

mico.constant @k : tensor<4xf32> = dense<1.0>

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %k1 = mico.get_constant @k
// CHECK-NEXT:    %a = mico.add(%x, %k1)
// CHECK-NEXT:    %c = mico.mul(%a, %a)
// CHECK-NEXT:    func.return %c
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k1 = mico.get_constant @k : tensor<4xf32>
  %k2 = mico.get_constant @k : tensor<4xf32>
  %a = mico.add(%x, %k1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = mico.add(%x, %k2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = mico.mul(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %c : tensor<4xf32>
}

// Left alone: the same ops on other values.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT:    mico.relu(%x)
// CHECK-NEXT:    mico.relu(%y)
func.func @kept(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = mico.relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = mico.relu(%y) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}
