// Sizes that must be equal are asserted, since inputs may be given with others.
// RUN: fewbit-opt %s -p assert-sizes --split-input-file | filecheck %s
// RUN: fewbit-opt %s -p 'assert-sizes{kernels=true}' --split-input-file | filecheck %s --check-prefix=KERNELS

// One loop runs over all three.
// CHECK-LABEL: func.func @loops
// CHECK:         %[[M:.*]] = tensor.dim %x
// CHECK:         %[[N:.*]] = tensor.dim %y
// CHECK-NEXT:    %[[SAME:.*]] = arith.cmpi eq, %[[M]], %[[N]] : index
// CHECK-NEXT:    cf.assert %[[SAME]], "sizes differ"
// CHECK:         %[[N:.*]] = tensor.dim %y
// CHECK:         %[[O:.*]] = tensor.dim %out
// CHECK-NEXT:    arith.cmpi eq, %[[N]], %[[O]] : index
// CHECK-NEXT:    cf.assert
// CHECK-NEXT:    linalg.add
// KERNELS-LABEL: func.func @loops
// KERNELS-NOT:     cf.assert
// KERNELS:         linalg.add
func.func @loops(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %out: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %z = linalg.add ins(%x, %y : tensor<?x4xf32>, tensor<?x4xf32>) outs(%out : tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %z : tensor<?x4xf32>
}

// -----

// The sizes that a reduction does not have are no concern of its.
// CHECK-LABEL: func.func @reduction
// CHECK:         %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT:    %[[M:.*]] = tensor.dim %x, %[[ONE]]
// CHECK:         %[[N:.*]] = tensor.dim %y
// CHECK-NEXT:    %[[SAME:.*]] = arith.cmpi eq, %[[M]], %[[N]] : index
// CHECK-NEXT:    cf.assert %[[SAME]], "sizes differ"
// CHECK-NOT:     cf.assert
func.func @reduction(%x: tensor<?x?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %z = linalg.reduce ins(%x : tensor<?x?xf32>) outs(%y : tensor<?xf32>) dimensions = [0]
    (%a: f32, %s: f32) {
      %t = arith.addf %a, %s : f32
      linalg.yield %t : f32
    }
  func.return %z : tensor<?xf32>
}

// -----

// The last element of a slice is 2 + 2 * 2.
// CHECK-LABEL: func.func @slice
// CHECK:         %[[REACH:.*]] = arith.muli
// CHECK-NEXT:    %[[LAST:.*]] = arith.addi %{{.*}}, %[[REACH]]
// CHECK-NEXT:    %[[N:.*]] = tensor.dim %x
// CHECK-NEXT:    arith.cmpi slt, %[[LAST]], %[[N]]
// CHECK:         cf.assert %{{.*}}, "a slice is not inside its tensor"
// CHECK-NEXT:    tensor.extract_slice
func.func @slice(%x: tensor<?xf32>) -> tensor<3xf32> {
  %y = tensor.extract_slice %x[2] [3] [2] : tensor<?xf32> to tensor<3xf32>
  func.return %y : tensor<3xf32>
}

// -----

// Sizes that data decides on may differ, though all those of inputs are known.
// CHECK-LABEL: func.func @chosen
// CHECK:         %[[M:.*]] = tensor.dim %a
// CHECK:         %[[N:.*]] = tensor.dim %b
// CHECK-NEXT:    %[[SAME:.*]] = arith.cmpi eq, %[[M]], %[[N]] : index
// CHECK-NEXT:    cf.assert %[[SAME]], "sizes differ"
func.func @chosen(%x: tensor<4xf32>, %m: tensor<index>, %n: tensor<index>) -> tensor<?xf32> {
  %i = tensor.extract %m[] : tensor<index>
  %j = tensor.extract %n[] : tensor<index>
  %a = tensor.extract_slice %x[0] [%i] [1] : tensor<4xf32> to tensor<?xf32>
  %b = tensor.extract_slice %x[0] [%j] [1] : tensor<4xf32> to tensor<?xf32>
  %z = linalg.add ins(%a, %b : tensor<?xf32>, tensor<?xf32>) outs(%b : tensor<?xf32>) -> tensor<?xf32>
  func.return %z : tensor<?xf32>
}

// -----

// Kernels are looked at before they are loops.
// CHECK-LABEL: func.func @kernel
// CHECK-NOT:     cf.assert
// KERNELS-LABEL: func.func @kernel
// KERNELS:         tensor.dim %x
// KERNELS:         tensor.dim %residual
// KERNELS:         cf.assert %{{.*}}, "sizes differ"
// KERNELS-NEXT:    kernel.matmul
func.func @kernel(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>, %residual: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = kernel.matmul(%x, %w) add(%residual) : (tensor<?x8xf32>, tensor<4x8xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// -----

// Left alone: sizes are known, or broadcast.
// CHECK-LABEL: func.func @kept
// CHECK-NOT:     cf.assert
// CHECK:         func.return
func.func @kept(%x: tensor<?x4xf32>, %y: tensor<4xf32>) -> tensor<?x4xf32> {
  %z = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<4xf32>) outs(%x : tensor<?x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<?x4xf32>
  func.return %z : tensor<?x4xf32>
}
