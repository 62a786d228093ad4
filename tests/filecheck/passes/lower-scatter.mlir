// Scattered writes become one loop that writes element by element, in the order of the updates.
// RUN: fewbit-opt %s -p lower-scatter | filecheck %s

// What is there when its turn comes is added to.
// CHECK-LABEL: func.func @add
// CHECK:         scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[INTO:.*]] = %x) -> (tensor<8xf32>) {
// CHECK:           %[[AT:.*]] = tensor.extract %at[%[[I]], %{{.*}}] : tensor<3x1xi32>
// CHECK-NEXT:      %[[INDEX:.*]] = arith.index_cast %[[AT]] : i32 to index
// CHECK:           %[[PLACE:.*]] = arith.addi %{{.*}}, %[[INDEX]] : index
// CHECK-NEXT:      %[[NEW:.*]] = tensor.extract %new[%[[I]]]
// CHECK-NEXT:      %[[OLD:.*]] = tensor.extract %[[INTO]][%[[PLACE]]]
// CHECK-NEXT:      %[[SUM:.*]] = arith.addf %[[OLD]], %[[NEW]] : f32
// CHECK-NEXT:      tensor.insert %[[SUM]] into %[[INTO]][%[[PLACE]]]
func.func @add(%new: tensor<3xf32>, %at: tensor<3x1xi32>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %y = "tm_tensor.scatter"(%new, %at, %x) <{dimension_map = array<i64: 0>, unique_indices = false, operandSegmentSizes = array<i32: 2, 1>}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %b, %a : f32
    "tm_tensor.yield"(%s) : (f32) -> ()
  }) : (tensor<3xf32>, tensor<3x1xi32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %y : tensor<8xf32>
}

// Left alone: one write, whose place is known.
// CHECK-LABEL: func.func @slice
// CHECK-NEXT:    tensor.insert_slice %new into %x[2] [3] [1]
func.func @slice(%new: tensor<3xf32>, %x: tensor<8xf32>) -> tensor<8xf32> {
  %y = tensor.insert_slice %new into %x[2] [3] [1] : tensor<3xf32> into tensor<8xf32>
  func.return %y : tensor<8xf32>
}
