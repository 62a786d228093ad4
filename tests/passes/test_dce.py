"""xDSL's `dce` on fewbit's dialects."""

from collections.abc import Callable

RunPasses = Callable[[str, str], str]


def test_chain_of_unused_layers_goes(run_passes: RunPasses):
    text = run_passes(
        """
        mico.constant @k : tensor<4xf32> = dense<1.0>
        func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %k = mico.get_constant @k : tensor<4xf32>
          %a = mico.add(%x, %k) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          %b = mico.relu(%a) : (tensor<4xf32>) -> tensor<4xf32>
          func.return %x : tensor<4xf32>
        }""",
        "dce",
    )
    assert "mico.relu" not in text
    assert "mico.get_constant" not in text
    assert "mico.constant @k" in text


def test_subgraphs_and_calls_stay(run_passes: RunPasses):
    text = """
    graph.subgraph @s(%x: i32) -> i32 { graph.return %x : i32 }
    func.func @main(%x: i32) -> i32 {
      %a = graph.call @s(%x) : (i32) -> i32
      func.return %x : i32
    }"""
    assert "graph.call @s" in run_passes(text, "dce")
    assert "@s" not in run_passes(text, "dce,symbol-dce")
