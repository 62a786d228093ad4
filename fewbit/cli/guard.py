"""The one place where a command's failure becomes a message and an exit status.

| status | meaning |
|---|---|
| 0 | done |
| 1 | an error in the input or on this machine, printed as what, where and what to do |
| 2 | the command itself is wrong |
| 3 | valid, and not supported |
| 4 | `--strict`, and weights stay float |
| 70 | a fault in fewbit |
| 130, 141 | interrupted by the user; the reader of our output went away |

An error of a kind has the same status in every verb: it is that of its class. `--debug` anywhere on
the command line adds the traceback.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import TextIO, TypeGuard

from fewbit.errors import Error, Place

_WRITE_ERRORS = frozenset({errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC})

INTERRUPTED, UNREAD = 130, 141


def guarded(main: Callable[[list[str]], int | None], argv: Sequence[str]) -> int:
    """Run `main(argv)` and return its exit status; no exception leaves but `SystemExit`."""
    debug = "--debug" in argv
    if _is_closed(sys.stdout):
        hint = "send it to a file, or to /dev/null"
        return report(Error("the standard output is closed", hint=hint), debug=debug)
    try:
        status = main(list(argv)) or 0
        sys.stdout.flush()
        return status
    except SystemExit as e:
        # This is how rich and typer pass on that nothing reads.
        if not isinstance(e.__context__, BrokenPipeError):
            raise
        _let_go_of_stdout()
        return UNREAD
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _let_go_of_stdout()
        return UNREAD
    except Exception as e:
        if _is_about_output(e):
            _let_go_of_stdout()
        return report(e, debug=debug)


def report(exception: Exception, *, debug: bool) -> int:
    """Print an exception for its reader, and return the exit status that goes with it."""
    error = _as_error(exception)
    if debug:
        traceback.print_exception(exception)
    from rich.console import Console
    from rich.text import Text

    kind = Text(f"{error.kind}: ", style="bold red")
    Console(stderr=True, soft_wrap=True).print(
        kind, str(error), sep="", markup=False, highlight=False
    )
    return error.status


class InternalError(Error):
    """An exception that no user should ever see."""

    kind = "internal error"
    status = 70


def _as_error(exception: Exception) -> Error:
    if isinstance(exception, Error):
        return exception
    if isinstance(exception, OSError) and exception.filename is not None:
        return Error(
            exception.strerror or str(exception), place=Place(file=str(exception.filename))
        )
    if _is_about_output(exception):
        return Error(f"cannot write the output: {exception.strerror or exception}")
    return InternalError(
        f"{type(exception).__name__}: {exception}",
        hint="this is a fault in fewbit; please report it with the output of the same command"
        " and --debug, and of 'fewbit doctor'",
    )


def _is_closed(stream: TextIO | None) -> bool:
    """Return whether stdout is closed: Python has no stream for a descriptor closed before it."""
    return stream is None


def _is_about_output(exception: Exception) -> TypeGuard[OSError]:
    """Return whether the system refused a write to a stream that is already open."""
    if not isinstance(exception, OSError) or exception.filename is not None:
        return False
    return exception.errno in _WRITE_ERRORS


def _let_go_of_stdout() -> None:
    """Replace a broken stdout: Python flushes it at exit, and would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
