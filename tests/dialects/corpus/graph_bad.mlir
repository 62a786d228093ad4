// What MLIR must refuse once it has loaded the dialect's IRDL: one fault each.

func.func @callee_as_text(%x: tensor<2xf32>) {
  // expected-error @below {{expected base attribute 'builtin.symbol_ref' but got 'builtin.string'}}
  %0 = "graph.call"(%x) {callee = "model"} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @no_callee(%x: tensor<2xf32>) {
  // expected-error @below {{attribute "callee" is expected but not provided}}
  %0 = "graph.call"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @no_target(%x: tensor<2xf32>) {
  // expected-error @below {{attribute "to_device" is expected but not provided}}
  %0 = "graph.transfer"(%x) {from_device = "cpu"} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @device_as_number(%x: tensor<2xf32>) {
  // expected-error @below {{expected base attribute 'builtin.string' but got 'builtin.integer'}}
  %0 = "graph.transfer"(%x) {from_device = "cpu", to_device = 1 : i32} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @transfer_of_two(%x: tensor<2xf32>) {
  // expected-error @below {{op expects exactly 1 operands, but got 2}}
  %0 = "graph.transfer"(%x, %x) {from_device = "cpu", to_device = "npu"} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// expected-error @below {{expected base type 'builtin.function' but got 'builtin.tensor'}}
"graph.subgraph"() ({
  "outside.return"() : () -> ()
}) {sym_name = "model", function_type = tensor<2xf32>} : () -> ()

// -----

// expected-error @below {{expected region 0 to have 1 block(s) but got 2}}
"graph.subgraph"() ({
  "outside.branch"() [^next] : () -> ()
^next:
  "outside.return"() : () -> ()
}) {sym_name = "model", function_type = () -> ()} : () -> ()

// -----

// expected-error @below {{unexpected number of regions: expected 1 but got 0}}
"graph.subgraph"() {sym_name = "model", function_type = () -> ()} : () -> ()
