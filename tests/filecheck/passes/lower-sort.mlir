// Sorting becomes rounds of merges, from one half of a tensor to the other, in one loop.
// RUN: fewbit-opt %s -p lower-sort | filecheck %s

// 8 elements take 3 rounds of 8 steps, and are in the second half then.
// CHECK-LABEL: func.func @sort
// CHECK:         %[[BOTH:.*]] = tensor.insert_slice %x into %{{.*}}[0, 0] [1, 8] [1, 1] : tensor<8xi32> into tensor<2x8xi32>
// CHECK:         %[[END:.*]] = arith.constant 24 : index
// CHECK:         %[[R:.*]], %{{.*}}, %{{.*}} = scf.for %{{.*}} = %{{.*}} to %[[END]] step %{{.*}} iter_args(%[[X:.*]] = %[[BOTH]], %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<2x8xi32>, index, index) {
// CHECK:           %[[LEFT:.*]] = tensor.extract %[[X]][%[[FROM:.*]], %{{.*}}]
// CHECK:           %[[RIGHT:.*]] = tensor.extract %[[X]][%[[FROM]], %{{.*}}]
// The right one is taken if it stands before the left one, and not if they are equal.
// CHECK:           arith.cmpi sle, %[[RIGHT]], %[[LEFT]] : i32
// CHECK:           arith.cmpi sle, %[[LEFT]], %[[RIGHT]] : i32
// CHECK:           %[[NEXT:.*]] = arith.select %{{.*}}, %[[RIGHT]], %[[LEFT]] : i32
// CHECK:           tensor.insert %[[NEXT]] into %[[X]]
// CHECK:         tensor.extract_slice %[[R]][1, 0] [1, 8] [1, 1] : tensor<2x8xi32> to tensor<8xi32>
func.func @sort(%x: tensor<8xi32>) -> tensor<8xi32> {
  %y = "tm_tensor.sort"(%x) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 0, 1>}> ({
  ^bb0(%a: i32, %b: i32):
    %s = arith.cmpi sle, %a, %b : i32
    "tm_tensor.yield"(%s) : (i1) -> ()
  }) : (tensor<8xi32>) -> tensor<8xi32>
  func.return %y : tensor<8xi32>
}

// Left alone: prefix sums, which are another pass's.
// CHECK-LABEL: func.func @scan
// CHECK-NEXT:    "tm_tensor.scan"
func.func @scan(%x: tensor<8xf32>, %o: tensor<8xf32>, %a: tensor<f32>) -> tensor<8xf32> {
  %y:2 = "tm_tensor.scan"(%x, %o, %a) <{dimension = 0 : i64, inclusive = true, operandSegmentSizes = array<i32: 1, 2>}> ({
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    "tm_tensor.yield"(%s) : (f32) -> ()
  }) : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<f32>)
  func.return %y#0 : tensor<8xf32>
}
