// Prefix sums become one loop over elements, in which each prefix is made from the one before.
// RUN: fewbit-opt %s -p lower-scan | filecheck %s

// The first prefix is the first element; the combination of the whole is not asked for.
// CHECK-LABEL: func.func @inclusive
// CHECK:         %[[Y:.*]] = scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[INTO:.*]] = %o) -> (tensor<8xf32>) {
// CHECK:           %[[FIRST:.*]] = arith.cmpi eq, %[[I]], %{{.*}} : index
// CHECK:           %[[BEFORE:.*]] = arith.select %[[FIRST]], %[[I]], %{{.*}} : index
// CHECK-NEXT:      %[[ITEM:.*]] = tensor.extract %x[%[[I]]]
// CHECK-NEXT:      %[[LAST:.*]] = tensor.extract %[[INTO]][%[[BEFORE]]]
// CHECK-NEXT:      %[[SUM:.*]] = arith.addf %[[LAST]], %[[ITEM]] : f32
// CHECK-NEXT:      %[[PREFIX:.*]] = arith.select %[[FIRST]], %[[ITEM]], %[[SUM]] : f32
// CHECK-NEXT:      tensor.insert %[[PREFIX]] into %[[INTO]][%[[I]]]
// CHECK:         func.return %[[Y]]
func.func @inclusive(%x: tensor<8xf32>, %o: tensor<8xf32>, %a: tensor<f32>) -> tensor<8xf32> {
  %y:2 = "tm_tensor.scan"(%x, %o, %a) <{dimension = 0 : i64, inclusive = true, operandSegmentSizes = array<i32: 1, 2>}> ({
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    "tm_tensor.yield"(%s) : (f32) -> ()
  }) : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<f32>)
  func.return %y#0 : tensor<8xf32>
}

// The first prefix is what is given, and each is without the element at its place.
// CHECK-LABEL: func.func @exclusive
// CHECK:         scf.for {{.*}} -> (tensor<4x8xi32>, tensor<8xi32>) {
// CHECK:           %[[ITEM:.*]] = tensor.extract %x[%[[BEFORE:.*]], %[[LANE:.*]]] : tensor<4x8xi32>
// CHECK-NEXT:      %[[LAST:.*]] = tensor.extract %{{.*}}[%[[BEFORE]], %[[LANE]]] : tensor<4x8xi32>
// CHECK-NEXT:      %[[PRODUCT:.*]] = arith.muli %[[LAST]], %[[ITEM]] : i32
// CHECK-NEXT:      %[[GIVEN:.*]] = tensor.extract %a[%[[LANE]]] : tensor<8xi32>
// CHECK-NEXT:      arith.select %{{.*}}, %[[GIVEN]], %[[PRODUCT]] : i32
func.func @exclusive(%x: tensor<4x8xi32>, %o: tensor<4x8xi32>, %a: tensor<8xi32>) -> (tensor<4x8xi32>, tensor<8xi32>) {
  %y:2 = "tm_tensor.scan"(%x, %o, %a) <{dimension = 0 : i64, inclusive = false, operandSegmentSizes = array<i32: 1, 2>}> ({
  ^bb0(%p: i32, %q: i32):
    %s = arith.muli %p, %q : i32
    "tm_tensor.yield"(%s) : (i32) -> ()
  }) : (tensor<4x8xi32>, tensor<4x8xi32>, tensor<8xi32>) -> (tensor<4x8xi32>, tensor<8xi32>)
  func.return %y#0, %y#1 : tensor<4x8xi32>, tensor<8xi32>
}

// Left alone: a sum of the whole.
// CHECK-LABEL: func.func @sum
// CHECK-NOT:     scf.for
// CHECK:         linalg.reduce
func.func @sum(%x: tensor<8xf32>, %a: tensor<f32>) -> tensor<f32> {
  %y = linalg.reduce ins(%x : tensor<8xf32>) outs(%a : tensor<f32>) dimensions = [0]
  (%p: f32, %q: f32) {
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  }
  func.return %y : tensor<f32>
}
