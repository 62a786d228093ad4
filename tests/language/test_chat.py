"""Chat templates, which are programs of strangers."""

from __future__ import annotations

import pytest

from fewbit.errors import Error, UnsupportedError
from fewbit.language.chat import render_chat
from tests.language.checkpoints import TEMPLATE

QUESTION = [{"role": "user", "content": "hello"}]


def test_a_template_builds_the_prompt() -> None:
    text = render_chat(TEMPLATE, QUESTION, {})
    assert text == "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"


def test_templates_use_special_tokens_loops_and_json() -> None:
    template = (
        "{{ bos_token }}{% for m in messages %}{% if loop.index > 1 %}{% break %}{% endif %}"
        "{{ m | tojson }}{% endfor %}"
    )
    twice = [*QUESTION, *QUESTION]
    text = render_chat(template, twice, {"bos_token": "<s>"})
    assert text == '<s>{"role": "user", "content": "hello"}'


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update(role='x') }}",
        "{{ raise_exception.__globals__['json'] }}",
        "{% if %}",
    ],
)
def test_the_sandbox_holds(template: str) -> None:
    with pytest.raises(Error, match="template"):
        render_chat(template, QUESTION, {})


def test_a_template_may_refuse() -> None:
    with pytest.raises(UnsupportedError, match="no system messages"):
        render_chat("{{ raise_exception('no system messages') }}", QUESTION, {})
