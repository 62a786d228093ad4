"""Several prompts, decoded together: each weight is read once for all of them.

All sequences are read in one call, padded to the longest prompt, and go on in lockstep. One that
has ended gets no more tokens. More prompts than a program has sequences are decoded in turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fewbit.errors import UsageError
from fewbit.language.sampling import Sampler
from fewbit.language.tokenizer import stream_text
from fewbit.runtime.decode_session import DecodeSession, Tokens
from fewbit.runtime.generation import CONTEXT, LENGTH, STOP, TextModel, choose_token


@dataclass
class Answer:
    """What was decoded behind a prompt, and why it ended."""

    prompt: list[int]
    text: str = ""
    tokens: list[int] = field(default_factory=list[int])
    """Without the token that ends an answer."""
    finish: str = LENGTH


@dataclass
class _Course:
    """A sequence on its way."""

    answer: Answer
    sampler: Sampler
    room: int
    """How many tokens may still be decoded."""
    given: Tokens
    position: int = 0

    def take(self, token: int, ends: Sequence[int]) -> None:
        """Go on behind a token, if it does not end the answer."""
        self.position += len(self.given)
        self.given = []
        if token in ends:
            self.answer.finish = STOP
            return
        self.answer.tokens.append(token)
        self.room -= 1
        self.given = [token] if self.room else []


def decode_together(
    model: TextModel,
    session: DecodeSession,
    prompts: Sequence[Tokens],
    tokens: int,
    make_sampler: Callable[[], Sampler],
) -> list[Answer]:
    """Return up to so many tokens behind each prompt."""
    for prompt in prompts:
        model.check_room(prompt)
    if tokens < 0:
        raise UsageError(f"{tokens} tokens cannot be decoded")
    courses = [_begin(model, prompt, tokens, make_sampler()) for prompt in prompts]
    for start in range(0, len(courses), session.sequences):
        _decode(model, session, courses[start : start + session.sequences])
    for course in courses:
        answer = course.answer
        answer.text = "".join(stream_text(model.tokenizer, answer.tokens, answer.prompt))
    return [course.answer for course in courses]


def _begin(model: TextModel, prompt: Tokens, tokens: int, sampler: Sampler) -> _Course:
    room = min(tokens, model.settings.context - len(prompt))
    finish = CONTEXT if room < tokens else LENGTH
    return _Course(Answer(list(prompt), finish=finish), sampler, room, prompt if room else [])


def _decode(model: TextModel, session: DecodeSession, courses: Sequence[_Course]) -> None:
    ends = model.settings.end_tokens
    while any(course.given for course in courses):
        given = [course.given for course in courses]
        logits = session.decode(given, [course.position for course in courses])
        for course, rows in zip(courses, logits, strict=True):
            if course.given:
                course.take(choose_token(course.sampler, rows), ends)
