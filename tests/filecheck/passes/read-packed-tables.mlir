// A table that is packed for a kernel too is read there: 16 rows are 1 panel, 4 columns a step.
// RUN: fewbit-opt %s -p call-kernels,read-packed-tables -t cpu:x86-64-v3 --split-input-file | filecheck %s

mico.constant @w : tensor<16x8xf32> = dense<2.0>

// CHECK-LABEL: func.func @floats
// CHECK:         %[[PANELS:.*]] = mico.get_constant @w.matmul.packed : tensor<128xf32>
// CHECK:         linalg.generic {{.*}} ins(%i : tensor<?xi64>)
// CHECK:           %[[ROW:.*]] = arith.index_cast
// CHECK-NEXT:      %[[COLUMN:.*]] = linalg.index 1
// CHECK-NEXT:      %[[WIDE:.*]] = arith.constant 16 : index
// CHECK-NEXT:      %[[PANEL:.*]] = arith.divui %[[ROW]], %[[WIDE]]
// CHECK-NEXT:      %[[INSIDE:.*]] = arith.remui %[[ROW]], %[[WIDE]]
// CHECK:           tensor.extract %[[PANELS]][%{{.*}}] : tensor<128xf32>
// CHECK-NOT:     mico.embedding
func.func @floats(%i: tensor<?xi64>, %x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x16xf32>) {
  %w = mico.get_constant @w : tensor<16x8xf32>
  %y = mico.embedding(%i, %w) : (tensor<?xi64>, tensor<16x8xf32>) -> tensor<?x8xf32>
  %z = kernel.matmul(%x, %w) : (tensor<?x8xf32>, tensor<16x8xf32>) -> tensor<?x16xf32>
  func.return %y, %z : tensor<?x8xf32>, tensor<?x16xf32>
}

// -----

// The last panel is filled up, which no row reaches; the first may be wider than others.
mico.constant @odd : tensor<35x8xf32> = dense<2.0>

// CHECK-LABEL: func.func @panels_of_two_widths
// CHECK:         mico.get_constant @odd.matmul.packed : tensor<320xf32>
// CHECK:           %[[NARROW:.*]] = arith.constant 32 : index
// CHECK-NEXT:      arith.cmpi ult, %{{.*}}, %[[NARROW]] : index
// CHECK:           tensor.extract
// CHECK-NOT:     mico.embedding
func.func @panels_of_two_widths(%i: tensor<?xi64>, %x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x35xf32>) {
  %o = mico.get_constant @odd : tensor<35x8xf32>
  %v = mico.embedding(%i, %o) : (tensor<?xi64>, tensor<35x8xf32>) -> tensor<?x8xf32>
  %z = kernel.matmul(%x, %o) : (tensor<?x8xf32>, tensor<35x8xf32>) -> tensor<?x35xf32>
  func.return %v, %z : tensor<?x8xf32>, tensor<?x35xf32>
}

// -----

// Left alone: a table of which no kernel has panels.
mico.constant @alone : tensor<16x8xf32> = dense<2.0>

// CHECK-LABEL: func.func @kept
// CHECK:         mico.embedding
func.func @kept(%i: tensor<?xi64>) -> tensor<?x8xf32> {
  %a = mico.get_constant @alone : tensor<16x8xf32>
  %y = mico.embedding(%i, %a) : (tensor<?xi64>, tensor<16x8xf32>) -> tensor<?x8xf32>
  func.return %y : tensor<?x8xf32>
}
