// RUN: fewbit-opt %s -p dce | filecheck %s

// Left alone: symbols are for symbol-dce to remove.
// CHECK: mico.constant @k
mico.constant @k : tensor<4xf32> = dense<1.0>

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    func.return %x
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = mico.get_constant @k : tensor<4xf32>
  %a = mico.add(%x, %k) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = mico.relu(%a) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %x : tensor<4xf32>
}
