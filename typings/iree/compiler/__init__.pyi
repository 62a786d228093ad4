from collections.abc import Sequence

def compile_file(
    input_file: str,
    *,
    target_backends: Sequence[str] = (),
    input_type: str = ...,
    extra_args: Sequence[str] = (),
) -> bytes | None: ...
