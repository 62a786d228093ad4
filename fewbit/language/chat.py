"""Chat templates: messages as the text that a model was trained on.

A template comes with a model that a stranger made. It is a program of Jinja, which runs in its
sandbox: it can build text from the messages, and reach nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from fewbit.errors import Error, UnsupportedError
from fewbit.language.tokenizer import require

Message = Mapping[str, str]


def render_chat(
    template: str, messages: Sequence[Message], special_tokens: Mapping[str, str]
) -> str:
    """Return the text of a conversation, up to where the model is to answer."""
    require("jinja2")
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message: str) -> None:
        raise UnsupportedError(f"the chat template refuses these messages: {message}")

    def to_json(value: Any, indent: int | None = None) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent)

    def now(form: str) -> str:
        return datetime.now().strftime(form)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = to_json
    try:
        return environment.from_string(template).render(
            messages=[dict(message) for message in messages],
            add_generation_prompt=True,
            raise_exception=refuse,
            strftime_now=now,
            **special_tokens,
        )
    except Error:
        raise
    except (TemplateError, TypeError, ValueError, LookupError) as error:
        raise Error(f"the model's chat template fails: {error}") from None
