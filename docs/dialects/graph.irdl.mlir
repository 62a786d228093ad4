// Generated from the definition of the dialect: fewbit export-dialect graph
irdl.dialect @graph {

  // A module of the model: a named, isolated, single-block function on one device.
  irdl.operation @subgraph {
    %sym_name = irdl.base "#builtin.string"
    %function_type = irdl.base "!builtin.function"
    irdl.attributes {
      "sym_name" = %sym_name,
      "function_type" = %function_type
    }
    %body = irdl.region with size 1
    irdl.regions(body: %body)
  }

  // A call of a subgraph.
  irdl.operation @call {
    %arguments = irdl.any
    irdl.operands(arguments: variadic %arguments)
    %res = irdl.any
    irdl.results(res: variadic %res)
    %callee = irdl.base "#builtin.symbol_ref"
    irdl.attributes {
      "callee" = %callee
    }
  }

  // The results of a subgraph.
  irdl.operation @return {
    %arguments = irdl.any
    irdl.operands(arguments: variadic %arguments)
  }

  // A value moved from one device to another; its content is unchanged.
  irdl.operation @transfer {
    %source = irdl.any
    irdl.operands(source: %source)
    %result = irdl.any
    irdl.results(result: %result)
    %from_device = irdl.base "#builtin.string"
    %to_device = irdl.base "#builtin.string"
    irdl.attributes {
      "from_device" = %from_device,
      "to_device" = %to_device
    }
  }
}
