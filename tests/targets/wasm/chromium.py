"""Pages in real Chromium: opened as files, or from a server on this machine to which they answer."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import pytest

SECONDS = 120
TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm"}


def needs_chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if (found := shutil.which(name)) is not None:
            return found
    pytest.skip("Chromium is not installed")


def _command(profile: str, *arguments: str) -> list[str]:
    quiet = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    return [needs_chromium(), *quiet, f"--user-data-dir={profile}", *arguments]


def open_file(path: Path, *arguments: str) -> str:
    """Return what a page is when it has ended its work."""
    with TemporaryDirectory(prefix="chromium-") as profile:
        given = ["--virtual-time-budget=60000", "--dump-dom", *arguments, path.as_uri()]
        done = subprocess.run(
            _command(profile, *given), capture_output=True, text=True, timeout=SECONDS, check=False
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


class _Handler(SimpleHTTPRequestHandler):
    extensions_map = SimpleHTTPRequestHandler.extensions_map | TYPES

    def __init__(self, answers: list[bytes], *arguments: Any, directory: str) -> None:
        self.answers = answers
        super().__init__(*arguments, directory=directory)

    def do_POST(self) -> None:
        self.answers.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def _browser(address: str) -> Generator[None]:
    with TemporaryDirectory(prefix="chromium-") as profile:
        process = subprocess.Popen(
            _command(profile, address),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def ask(folder: Path, page: str) -> str:
    """Serve a folder, open a page of it, and return what it posts."""
    needs_chromium()
    answers: list[bytes] = []
    handler = partial(_Handler, answers, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        with _browser(f"http://127.0.0.1:{server.server_port}/{page}"):
            end = time.monotonic() + SECONDS
            while not answers and time.monotonic() < end:
                time.sleep(0.05)
        server.shutdown()
        thread.join()
    assert answers, "the page did not answer"
    return answers[0].decode()
