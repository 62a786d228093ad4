// What MLIR must refuse once it has loaded the dialect's IRDL: one fault each.

// expected-error @below {{'9 : i64' does not satisfy the constraint}}
func.func private @width_nine(tensor<2x!mico.int<9>>)

// -----

// expected-error @below {{'0 : i64' does not satisfy the constraint}}
func.func private @width_zero(tensor<2x!mico.int<0>>)

// -----

// expected-error @below {{'4 : i32' does not satisfy the constraint}}
func.func private @width_of_another_type(tensor<2x!mico.int<4 : i32>>)

// -----

// expected-error @below {{'"four"' does not satisfy the constraint}}
func.func private @width_as_text(tensor<2x!mico.int<"four">>)

// -----

// expected-error @below {{expected 1 type arguments, but had 2}}
func.func private @two_widths(tensor<2x!mico.int<4, 4>>)

// -----

// expected-error @below {{expected 0 type arguments, but had 1}}
func.func private @ternary_width(tensor<2x!mico.ternary<2>>)

// -----

// expected-error @below {{expected 3 type arguments, but had 1}}
func.func private @qtensor_without_scale(!mico.qtensor<tensor<2x!mico.int<4>>>)

// -----

// expected-error @below {{expected base attribute 'builtin.string' but got 'builtin.integer'}}
func.func private @key_not_a_text() attributes {a = #mico.ref<1, "00">}

// -----

// expected-error @below {{attribute "value" is expected but not provided}}
"mico.constant"() {sym_name = "w", type = tensor<1xf32>} : () -> ()

// -----

// expected-error @below {{expected base attribute 'builtin.string' but got 'builtin.symbol_ref'}}
"mico.constant"() {sym_name = @w, type = tensor<1xf32>, value = dense<1.0> : tensor<1xf32>} : () -> ()

// -----

// expected-error @below {{expected base type 'builtin.tensor' but got 'builtin.vector'}}
"mico.constant"() {sym_name = "w", type = vector<1xf32>, value = dense<1.0> : tensor<1xf32>} : () -> ()

// -----

// expected-error @below {{'"0x00"' does not satisfy the constraint}}
"mico.constant"() {sym_name = "w", type = tensor<1xf32>, value = "0x00"} : () -> ()

// -----

func.func @symbol_as_text() {
  // expected-error @below {{expected base attribute 'builtin.symbol_ref' but got 'builtin.string'}}
  %0 = "mico.get_constant"() {symbol = "w"} : () -> tensor<1xf32>
  return
}

// -----

func.func @result_not_a_tensor() {
  // expected-error @below {{expected base type 'builtin.tensor' but got 'builtin.f32'}}
  %0 = "mico.get_constant"() {symbol = @w} : () -> f32
  return
}

// -----

func.func @too_few_operands(%x: tensor<1x8xf32>) {
  // expected-error @below {{op expects exactly 2 operands, but got 1}}
  %0 = "mico.add"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
  return
}

// -----

func.func @no_result(%x: tensor<1x8xf32>) {
  // expected-error @below {{op expects exactly 1 results, but got 0}}
  "mico.relu"(%x) : (tensor<1x8xf32>) -> ()
  return
}

// -----

func.func @operand_not_a_tensor(%x: memref<1x8xf32>, %w: tensor<4x8xf32>) {
  // expected-error @below {{expected base type 'builtin.tensor' but got 'builtin.memref'}}
  %0 = "mico.bitlinear"(%x, %w) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (memref<1x8xf32>, tensor<4x8xf32>) -> tensor<1x4xf32>
  return
}

// -----

func.func @scale_not_a_float(%x: tensor<1x8xf32>, %w: tensor<4x8x!mico.int<4>>, %s: f64) {
  // expected-error @below {{'f64' does not satisfy the constraint}}
  %0 = "mico.bitlinear"(%x, %w, %s) {operandSegmentSizes = array<i32: 1, 1, 0, 1, 0, 0, 0, 0>} : (tensor<1x8xf32>, tensor<4x8x!mico.int<4>>, f64) -> tensor<1x4xf32>
  return
}

// -----

func.func @no_segment_sizes(%x: tensor<1x8xf32>, %w: tensor<4x8xf32>) {
  // expected-error @below {{'operandSegmentSizes' attribute is expected but not provided}}
  %0 = "mico.bitlinear"(%x, %w) : (tensor<1x8xf32>, tensor<4x8xf32>) -> tensor<1x4xf32>
  return
}

// -----

func.func @wrong_segment_sizes(%x: tensor<1x8xf32>, %w: tensor<4x8xf32>) {
  // expected-error @below {{sum of elements in 'operandSegmentSizes' attribute must be equal to the number of operands}}
  %0 = "mico.bitlinear"(%x, %w) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0>} : (tensor<1x8xf32>, tensor<4x8xf32>) -> tensor<1x4xf32>
  return
}

// -----

func.func @attribute_missing(%x: tensor<1x2x4x4xf32>, %w: tensor<4x2x1x1xf32>) {
  // expected-error @below {{attribute "stride" is expected but not provided}}
  %0 = "mico.bitconv2d"(%x, %w) {padding = [0, 0, 0, 0], dilation = [1, 1], groups = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (tensor<1x2x4x4xf32>, tensor<4x2x1x1xf32>) -> tensor<1x4x4x4xf32>
  return
}

// -----

func.func @attribute_of_another_kind(%x: tensor<1x2x4x4xf32>, %w: tensor<4x2x1x1xf32>) {
  // expected-error @below {{expected base attribute 'builtin.integer' but got 'builtin.string'}}
  %0 = "mico.bitconv2d"(%x, %w) {stride = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1], groups = "one", operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (tensor<1x2x4x4xf32>, tensor<4x2x1x1xf32>) -> tensor<1x4x4x4xf32>
  return
}

// -----

func.func @array_of_another_kind(%x: tensor<1x2xf32>) {
  // expected-error @below {{expected base attribute 'builtin.array' but got 'builtin.dense_array'}}
  %0 = "mico.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<1x2xf32>) -> tensor<2x1xf32>
  return
}

// -----

func.func @bits_of_another_kind(%w: tensor<4x8xf32>) {
  // expected-error @below {{'!mico.int<4 : i64>' does not satisfy the constraint}}
  %0, %1 = "mico.weight_quant"(%w) {bits = !mico.int<4>, mode = "max", granularity = "channel", symmetric = true} : (tensor<4x8xf32>) -> (tensor<4x8x!mico.int<4>>, tensor<4xf32>)
  return
}

// -----

func.func @not_a_qtensor(%w: tensor<4x8x!mico.int<4>>) {
  // expected-error @below {{expected base type 'mico.qtensor' but got 'builtin.tensor'}}
  %0, %1 = "mico.unbundle"(%w) : (tensor<4x8x!mico.int<4>>) -> (tensor<4x8x!mico.int<4>>, tensor<4xf32>)
  return
}

// -----

func.func @no_such_op(%x: tensor<1x8xf32>) {
  // expected-error @below {{unregistered operation 'mico.tanh' found in dialect ('mico')}}
  %0 = "mico.tanh"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
  return
}

// -----

// expected-error @below {{expected dynamic type}}
func.func private @no_such_type(tensor<2x!mico.float>)
