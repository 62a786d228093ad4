// Parts of the entry that are alike but for constants become one function.
// RUN: fewbit-opt %s -p outline-repeats --split-input-file | filecheck %s
// RUN: fewbit-opt %s -p outline-repeats,rename-entry,bind-memory -t cpu:x86-64-v3 --split-input-file | filecheck %s --check-prefix=BOUND

// What each call hands to the next is the result of a matmul, which is in memory anyway. Fills stay
// where loops see them.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[A:.*]] = func.call @program.repeated_0(%x) : (tensor<?x2xf32>) -> tensor<?x2xf32>
// CHECK-NEXT:    %[[B:.*]] = func.call @program.repeated_0(%[[A]]) {fewbit.constants = [@w1, @n1]} :
// CHECK-NEXT:    %[[C:.*]] = func.call @program.repeated_0(%[[B]]) {fewbit.constants = [@w2, @n2]} :
// CHECK-NEXT:    func.return %[[C]]
// CHECK-LABEL: func.func private @program.repeated_0(%x: tensor<?x2xf32>) ->
// CHECK-SAME:    {fewbit.sized_like = 0 : i64}
// CHECK-SAME:    fewbit.repeated = 3
// CHECK-SAME:    fewbit.constants = ["w0", "n0"]
// CHECK:         mico.get_constant @w0
// CHECK:         kernel.matmul(%x,
// CHECK:         mico.mul(
// CHECK:         kernel.matmul(

// A call has the memory of what it reads, of what it computes, and its piece of the weights.
// BOUND-LABEL: func.func @program.entry
// BOUND:         func.call @program.repeated_0(%{{.*}}, %{{.*}}, %[[FIRST:.*]]) : (memref<?x2xf32>, memref<?x2xf32>, memref<128xi8>) -> ()
// BOUND:         %[[AT:.*]] = arith.constant 128 : index
// BOUND-NEXT:    %[[SECOND:.*]] = memref.view %weights[%[[AT]]][] : memref<384xi8> to memref<128xi8>
// BOUND:         func.call @program.repeated_0(%{{.*}}, %{{.*}}, %[[SECOND]]) :
// BOUND-LABEL: func.func private @program.repeated_0(%x: memref<?x2xf32>, %0: memref<?x2xf32>, %weights: memref<128xi8>)
mico.constant @w0 : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
mico.constant @w1 : tensor<2x2xf32> = dense<[[5.0, 2.0], [3.0, 4.0]]>
mico.constant @w2 : tensor<2x2xf32> = dense<[[6.0, 2.0], [3.0, 4.0]]>
mico.constant @n0 : tensor<2xf32> = dense<[1.0, 2.0]>
mico.constant @n1 : tensor<2xf32> = dense<[2.0, 2.0]>
mico.constant @n2 : tensor<2xf32> = dense<[3.0, 2.0]>
func.func @main(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %w0 = mico.get_constant @w0 : tensor<2x2xf32>
  %n0 = mico.get_constant @n0 : tensor<2xf32>
  %0 = kernel.matmul(%x, %w0) : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
  %1 = mico.mul(%0, %n0) : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  %2 = kernel.matmul(%1, %w0) add(%x) : (tensor<?x2xf32>, tensor<2x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %w1 = mico.get_constant @w1 : tensor<2x2xf32>
  %n1 = mico.get_constant @n1 : tensor<2xf32>
  %3 = kernel.matmul(%2, %w1) : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
  %4 = mico.mul(%3, %n1) : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  %5 = kernel.matmul(%4, %w1) add(%2) : (tensor<?x2xf32>, tensor<2x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %w2 = mico.get_constant @w2 : tensor<2x2xf32>
  %n2 = mico.get_constant @n2 : tensor<2xf32>
  %6 = kernel.matmul(%5, %w2) : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
  %7 = mico.mul(%6, %n2) : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  %8 = kernel.matmul(%7, %w2) add(%5) : (tensor<?x2xf32>, tensor<2x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  func.return %8 : tensor<?x2xf32>
}

// -----

// State is an argument that a result is the new value of.
// CHECK-LABEL: func.func @state
// CHECK:         %{{.*}}, %{{.*}} = func.call @program.repeated_0(%a, %x)
// CHECK-LABEL: func.func private @program.repeated_0(
// CHECK-SAME:    {fewbit.updates = 0 : i64, fewbit.sized_like = 0 : i64}
// BOUND-LABEL: func.func private @program.repeated_0(
// BOUND:         bufferization.to_tensor %{{.*}} restrict writable
mico.constant @w0 : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
mico.constant @w1 : tensor<2x2xf32> = dense<[[5.0, 2.0], [3.0, 4.0]]>
mico.constant @w2 : tensor<2x2xf32> = dense<[[6.0, 2.0], [3.0, 4.0]]>
mico.constant @s : tensor<2x2xf32> = dense<0.0>
func.func @state(%x: tensor<2x2xf32>, %a: tensor<2x2xf32>, %b: tensor<2x2xf32>, %c: tensor<2x2xf32>)
    -> (tensor<2x2xf32>, tensor<2x2xf32> {fewbit.updates = 1 : i64, fewbit.initial = @s}, tensor<2x2xf32> {fewbit.updates = 2 : i64, fewbit.initial = @s}, tensor<2x2xf32> {fewbit.updates = 3 : i64, fewbit.initial = @s}) {
  %w0 = mico.get_constant @w0 : tensor<2x2xf32>
  %0 = mico.add(%a, %x) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = kernel.matmul(%0, %w0) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %w1 = mico.get_constant @w1 : tensor<2x2xf32>
  %2 = mico.add(%b, %1) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = kernel.matmul(%2, %w1) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %w2 = mico.get_constant @w2 : tensor<2x2xf32>
  %4 = mico.add(%c, %3) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %5 = kernel.matmul(%4, %w2) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %5, %0, %2, %4 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// Left alone: what parts hand on is no result of a contraction, and never in memory.
// CHECK-LABEL: func.func @elementwise
// CHECK-NOT:     func.call
// CHECK:         func.return
mico.constant @w0 : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
func.func @elementwise(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = mico.relu(%x) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = mico.mul(%0, %0) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %2 = mico.relu(%1) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = mico.mul(%2, %2) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %4 = mico.relu(%3) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %5 = mico.mul(%4, %4) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %5 : tensor<2x2xf32>
}

// -----

// Left alone: scales that are numbers of the text are part of the code.
// CHECK-LABEL: func.func @scales
// CHECK-NOT:     func.call
// CHECK:         func.return
mico.constant @w0 : tensor<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
func.func @scales(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %w0 = mico.get_constant @w0 : tensor<2x2xf32>
  %a = arith.constant dense<1.0> : tensor<2x2xf32>
  %0 = mico.mul(%x, %a) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = kernel.matmul(%0, %w0) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %b = arith.constant dense<2.0> : tensor<2x2xf32>
  %2 = mico.mul(%1, %b) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = kernel.matmul(%2, %w0) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %c = arith.constant dense<3.0> : tensor<2x2xf32>
  %4 = mico.mul(%3, %c) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %5 = kernel.matmul(%4, %w0) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %5 : tensor<2x2xf32>
}
