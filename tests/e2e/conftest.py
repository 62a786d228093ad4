"""Programs use all threads that they are asked for, small ones too."""

from tests.threads import all_threads

__all__ = ["all_threads"]
