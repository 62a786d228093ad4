// RUN: fewbit-opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: func.func @relus
// CHECK-NEXT:    %[[Y:.*]] = mico.relu6(%x)
// CHECK-NEXT:    func.return %[[Y]]
func.func @relus(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = mico.relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = mico.relu6(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %c = mico.relu(%b) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %c : tensor<4xf32>
}

// CHECK-LABEL: func.func @transposes
// CHECK-NEXT:    func.return %x
func.func @transposes(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = mico.transpose(%x) {permutation = [1, 0]} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %b = mico.transpose(%a) {permutation = [1, 0]} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  func.return %b : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @reshapes
// CHECK-NEXT:    %[[Y:.*]] = mico.reshape(%x) {shape = [6]}
// CHECK-NEXT:    func.return %[[Y]]
func.func @reshapes(%x: tensor<1x2x3xf32>) -> tensor<6xf32> {
  %a = mico.flatten(%x) : (tensor<1x2x3xf32>) -> tensor<1x6xf32>
  %b = mico.reshape(%a) {shape = [-1]} : (tensor<1x6xf32>) -> tensor<6xf32>
  func.return %b : tensor<6xf32>
}

// CHECK-LABEL: func.func @transfers
// CHECK-NEXT:    %[[C:.*]] = graph.transfer %x from <cpu> to <gpu>
// CHECK-NEXT:    func.return %x, %[[C]]
func.func @transfers(%x: i32) -> (i32, i32) {
  %a = graph.transfer %x from <cpu> to <npu> : i32
  %b = graph.transfer %a from <npu> to <cpu> : i32
  %c = graph.transfer %a from <npu> to <gpu> : i32
  func.return %b, %c : i32, i32
}

// Left alone: transposes and transfers that do not undo one another.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT:    %[[T:.*]] = mico.transpose(%x)
// CHECK-NEXT:    graph.transfer %[[T]] from <cpu> to <npu>
func.func @kept(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %a = mico.transpose(%x) {permutation = [1, 0]} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %b = graph.transfer %a from <cpu> to <npu> : tensor<3x2xf32>
  func.return %b : tensor<3x2xf32>
}
