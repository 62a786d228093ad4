// RUN: fewbit-opt %s --generic | filecheck %s --check-prefix GENERIC
// RUN: fewbit-opt %s --generic | fewbit-opt | filecheck %s --check-prefix PRETTY
// RUN: fewbit-opt %s --print-locations | filecheck %s --check-prefix LOCATION

// GENERIC: "func.func"() <{sym_name = "same", function_type = (i32) -> i32}> ({
// PRETTY: func.func @same(%x: i32) -> i32 {
// LOCATION: func.return %x : i32 loc({{.*}}forms.mlir":9:3)
func.func @same(%x: i32) -> i32 {
  func.return %x : i32
}
