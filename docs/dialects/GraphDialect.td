// Generated from the definition of the dialect: fewbit export-dialect graph

#ifndef GRAPH_DIALECT_TD
#define GRAPH_DIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Graph_Dialect : Dialect {
  let name = "graph";
  let cppNamespace = "::mlir::graph";
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

class Graph_Type<string name, string word> : TypeDef<Graph_Dialect, name> {
  let mnemonic = word;
}

class Graph_Attr<string name, string word> : AttrDef<Graph_Dialect, name> {
  let mnemonic = word;
}

class Graph_Op<string word, list<Trait> traits> : Op<Graph_Dialect, word, traits>;

def Graph_SubgraphOp : Graph_Op<"subgraph", [DeclareOpInterfaceMethods<CallableOpInterface>, IsolatedFromAbove, ParentOneOf<["ModuleOp"]>, Symbol]> {
  let summary = "A module of the model: a named, isolated, single-block function on one device.";
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    TypeAttrOf<FunctionType>:$function_type,
    OptionalAttr<StrAttr>:$device
  );
  let regions = (region
    SizedRegion<1>:$body
  );
  let hasVerifier = 1;
}

def Graph_CallOp : Graph_Op<"call", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A call of a subgraph.";
  let arguments = (ins
    Variadic<AnyType>:$arguments,
    FlatSymbolRefAttr:$callee
  );
  let results = (outs
    Variadic<AnyType>:$res
  );
}

def Graph_ReturnOp : Graph_Op<"return", [ParentOneOf<["SubgraphOp"]>, ReturnLike, Terminator]> {
  let summary = "The results of a subgraph.";
  let arguments = (ins
    Variadic<AnyType>:$arguments
  );
  let hasVerifier = 1;
}

def Graph_TransferOp : Graph_Op<"transfer", [Pure]> {
  let summary = "A value moved from one device to another; its content is unchanged.";
  let arguments = (ins
    AnyType:$source,
    StrAttr:$from_device,
    StrAttr:$to_device
  );
  let results = (outs
    AnyType:$result
  );
  let hasVerifier = 1;
}

#endif // GRAPH_DIALECT_TD
