// RUN: fewbit-opt %s -p drop-empty-tensors | filecheck %s

// CHECK-LABEL: func.func @concat
// CHECK:         tensor.empty() : tensor<4x0xf32>
// CHECK-NOT:     tensor.concat
// CHECK:         func.return %x : tensor<4x8xf32>
func.func @concat(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %tail = tensor.extract_slice %x[0, 8] [4, 0] [1, 1] : tensor<4x8xf32> to tensor<4x0xf32>
  %y = tensor.concat dim(1) %x, %tail : (tensor<4x8xf32>, tensor<4x0xf32>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @insert
// CHECK-NOT:     tensor.insert_slice
// CHECK:         func.return %x : tensor<?x8xf32>
func.func @insert(%x: tensor<?x8xf32>, %n: index) -> tensor<?x8xf32> {
  %tail = tensor.extract_slice %x[0, 8] [%n, 0] [1, 1] : tensor<?x8xf32> to tensor<?x0xf32>
  %y = tensor.insert_slice %tail into %x[0, 8] [%n, 0] [1, 1] : tensor<?x0xf32> into tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}

// What is padded to have elements is the padding alone.
// CHECK-LABEL: func.func @pad
// CHECK:         %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
// CHECK-NOT:     tensor.pad
// CHECK:         %[[ALL:.*]] = linalg.fill ins(%[[TWO]] : f32) outs(%{{.*}} : tensor<4x1xf32>)
// CHECK:         %[[SOME:.*]] = linalg.fill ins(%v : f32) outs(%{{.*}} : tensor<?x3xf32>)
// CHECK:         func.return %[[ALL]], %[[SOME]]
func.func @pad(%x: tensor<2x0xf32>, %y: tensor<?x0xf32>, %v: f32) -> (tensor<4x1xf32>, tensor<?x3xf32>) {
  %a = tensor.pad %x low[0, 1] high[2, 0] {
  ^bb0(%i: index, %j: index):
    %two = arith.constant 2.0 : f32
    tensor.yield %two : f32
  } : tensor<2x0xf32> to tensor<4x1xf32>
  %b = tensor.pad %y low[0, 1] high[1, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %v : f32
  } : tensor<?x0xf32> to tensor<?x3xf32>
  func.return %a, %b : tensor<4x1xf32>, tensor<?x3xf32>
}

// Left alone: their shapes, and tensors that have elements.
// CHECK-LABEL: func.func @kept
// CHECK:         [[EMPTY:%.*]] = tensor.empty(%n) : tensor<?x0xf32>
// CHECK:         [[ROW:%.*]] = tensor.extract_slice %x[0, 7]
// CHECK:         [[BOTH:%.*]] = tensor.concat dim(1) %x, [[ROW]]
// CHECK:         func.return [[EMPTY]], [[BOTH]]
func.func @kept(%x: tensor<?x8xf32>, %n: index) -> (tensor<?x0xf32>, tensor<?x9xf32>) {
  %tail = tensor.extract_slice %x[0, 8] [%n, 0] [1, 1] : tensor<?x8xf32> to tensor<?x0xf32>
  %row = tensor.extract_slice %x[0, 7] [%n, 1] [1, 1] : tensor<?x8xf32> to tensor<?x1xf32>
  %both = tensor.concat dim(1) %x, %tail, %row : (tensor<?x8xf32>, tensor<?x0xf32>, tensor<?x1xf32>) -> tensor<?x9xf32>
  func.return %tail, %both : tensor<?x0xf32>, tensor<?x9xf32>
}
