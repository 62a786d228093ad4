"""A compiled language model behind OpenAI's chat interface, on this machine only.

python examples/openai_server.py build/smollm2 8080
curl localhost:8080/v1/chat/completions -d '{"messages": [{"role": "user", "content": "Hello"}]}'

Clients of OpenAI work with `base_url="http://localhost:8080/v1"`, and with `stream` too. One answer
is decoded at a time; a server for many users would need more than a page.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import fewbit
from fewbit.errors import Error
from fewbit.runtime import Artifact

LONGEST_REQUEST = 1 << 20


class ChatServer(HTTPServer):
    def __init__(self, folder: str, port: int) -> None:
        super().__init__(("localhost", port), ChatHandler)
        self.model: Artifact = fewbit.load(folder)


class ChatHandler(BaseHTTPRequestHandler):
    @property
    def model(self) -> Artifact:
        assert isinstance(self.server, ChatServer)
        return self.server.model

    def do_GET(self) -> None:
        if self.path != "/v1/models":
            return self.refuse(404, f"there is no {self.path}")
        model = {"id": self.model.manifest.name, "object": "model", "owned_by": "fewbit"}
        return self.send(200, {"object": "list", "data": [model]})

    def do_POST(self) -> None:
        if self.path != "/v1/chat/completions":
            return self.refuse(404, f"there is no {self.path}")
        try:
            request = self.read_request()
            answer = self.model.generate(
                request["messages"],
                int(request.get("max_tokens") or 256),
                temperature=float(request.get("temperature") or 0),
                top_p=float(request.get("top_p") or 1),
                seed=request.get("seed"),
            )
        except (Error, KeyError, TypeError, ValueError) as error:
            return self.refuse(400, f"{type(error).__name__}: {error}")
        if request.get("stream"):
            return self.stream(answer)
        message = {"role": "assistant", "content": "".join(answer)}
        usage = {"prompt_tokens": len(answer.prompt), "completion_tokens": len(answer.tokens)}
        usage["total_tokens"] = sum(usage.values())
        choice = {"index": 0, "message": message, "finish_reason": reason(answer.finish)}
        return self.send(200, {**self.head("chat.completion"), "choices": [choice], "usage": usage})

    def read_request(self) -> dict[str, Any]:
        length = int(self.headers.get("Content-Length", 0))
        if length > LONGEST_REQUEST:
            raise ValueError("the request is too long")
        return json.loads(self.rfile.read(length))

    def stream(self, answer: Any) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for delta, finish in self.deltas(answer):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            self.write_event(
                json.dumps({**self.head("chat.completion.chunk"), "choices": [choice]})
            )
        self.write_event("[DONE]")

    def deltas(self, answer: Any) -> Iterator[tuple[dict[str, str], str | None]]:
        yield {"role": "assistant", "content": ""}, None
        for piece in answer:
            yield {"content": piece}, None
        yield {}, reason(answer.finish)

    def write_event(self, text: str) -> None:
        self.wfile.write(f"data: {text}\n\n".encode())
        self.wfile.flush()

    def head(self, kind: str) -> dict[str, Any]:
        now = time.time_ns()
        name = self.model.manifest.name
        return {"id": f"chatcmpl-{now}", "object": kind, "created": now // 10**9, "model": name}

    def refuse(self, status: int, message: str) -> None:
        self.send(status, {"error": {"message": message, "type": "invalid_request_error"}})

    def send(self, status: int, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def reason(finish: str | None) -> str:
    """Return OpenAI's word for why an answer ended."""
    return "stop" if finish == "stop" else "length"


if __name__ == "__main__":
    ChatServer(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 8080).serve_forever()
