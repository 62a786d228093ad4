"""xDSL's `cse` on fewbit's dialects."""

from collections.abc import Callable

RunPasses = Callable[[str, str], str]

CONSTANT = "mico.constant @k : tensor<4xf32> = dense<1.0>\n"


def test_equal_layers_and_reads_of_one_constant_are_merged(run_passes: RunPasses):
    text = run_passes(
        CONSTANT
        + """
        func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
          %k1 = mico.get_constant @k : tensor<4xf32>
          %k2 = mico.get_constant @k : tensor<4xf32>
          %a = mico.add(%x, %k1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          %b = mico.add(%x, %k2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          func.return %a, %b : tensor<4xf32>, tensor<4xf32>
        }""",
        "cse",
    )
    assert text.count("mico.get_constant") == 1
    assert text.count("mico.add") == 1
    assert "func.return %a, %a" in text


def test_attributes_tell_layers_apart(run_passes: RunPasses):
    text = run_passes(
        """
        func.func @main(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
          %a = mico.softmax(%x) {dim = 0} : (tensor<4x4xf32>) -> tensor<4x4xf32>
          %b = mico.softmax(%x) {dim = 1} : (tensor<4x4xf32>) -> tensor<4x4xf32>
          func.return %a, %b : tensor<4x4xf32>, tensor<4x4xf32>
        }""",
        "cse",
    )
    assert text.count("mico.softmax") == 2


def test_equal_transfers_are_merged_and_calls_are_not(run_passes: RunPasses):
    text = run_passes(
        """
        graph.subgraph @s on <npu>(%x: i32) -> i32 { graph.return %x : i32 }
        func.func @main(%x: i32) -> (i32, i32) {
          %a = graph.transfer %x from <cpu> to <npu> : i32
          %b = graph.transfer %x from <cpu> to <npu> : i32
          %c = graph.call @s(%a) : (i32) -> i32
          %d = graph.call @s(%b) : (i32) -> i32
          func.return %c, %d : i32, i32
        }""",
        "cse",
    )
    assert text.count("graph.transfer") == 1
    assert text.count("graph.call") == 2


def test_subgraphs_are_separate_scopes(run_passes: RunPasses):
    text = run_passes(
        """
        graph.subgraph @a(%x: tensor<4xf32>) -> tensor<4xf32> {
          %y = mico.relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
          graph.return %y : tensor<4xf32>
        }
        graph.subgraph @b(%x: tensor<4xf32>) -> tensor<4xf32> {
          %y = mico.relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
          graph.return %y : tensor<4xf32>
        }""",
        "cse",
    )
    assert text.count("mico.relu") == 2
