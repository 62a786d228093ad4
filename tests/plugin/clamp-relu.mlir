// RUN: fewbit-opt %s -p clamp-relu | filecheck %s
// RUN: fewbit-opt %s -p 'clamp-relu{min-rank=3}' | filecheck %s --check-prefix RANK

// CHECK-LABEL: @floats
// CHECK-NEXT:    mico.relu6(%x)
// RANK-LABEL:  @floats
// RANK-NEXT:     mico.relu(%x)
func.func @floats(%x: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %y = mico.relu(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
  func.return %y : tensor<1x8xf32>
}

// CHECK-LABEL: @integers
// CHECK-NEXT:    mico.relu(%x)
func.func @integers(%x: tensor<1x8x!mico.int<4>>) -> tensor<1x8x!mico.int<4>> {
  %y = mico.relu(%x) : (tensor<1x8x!mico.int<4>>) -> tensor<1x8x!mico.int<4>>
  func.return %y : tensor<1x8x!mico.int<4>>
}
