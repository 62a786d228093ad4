"""Tries fewbit on models of strangers, and writes what came of it to docs/coverage.md.

python tools/coverage.py                      all of them, hours on a small machine
python tools/coverage.py --only 'timm/*vit*'  some of them
python tools/coverage.py --resume             those that this commit has no result for
python tools/coverage.py --failed             those that did not pass
python tools/coverage.py --page               none: the page alone, of the results that there are

Models without a result on this machine keep the rows that they have.
"""

from __future__ import annotations

import argparse
import signal
import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.strangers.catalog import STRANGERS  # noqa: E402
from tests.strangers.check import Kind, Result  # noqa: E402
from tests.strangers.page import read_page, write_page  # noqa: E402
from tests.strangers.stranger import Stranger  # noqa: E402
from tests.strangers.sweep import (  # noqa: E402
    current_commit,
    load_result,
    results_folder,
    sweep,
)

PAGE = ROOT / "docs" / "coverage.md"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="*", help="a pattern of keys, as 'transformers/*'")
    parser.add_argument(
        "--resume", action="store_true", help="skip what this commit has results of"
    )
    parser.add_argument("--failed", action="store_true", help="skip what passed, at any commit")
    parser.add_argument("--page", action="store_true", help="run nothing, write the page")
    parser.add_argument("--results", type=Path, default=results_folder(), help="where results are")
    given = parser.parse_args()
    commit = current_commit()
    signal.signal(signal.SIGTERM, stop)

    def is_due(stranger: Stranger) -> bool:
        result = load_result(stranger, given.results)
        if result is None:
            return True
        if given.failed and result.kind == Kind.PASSED:
            return False
        return not (given.resume and result.commit == commit)

    due = [each for each in STRANGERS if fnmatch(each.key, given.only) and is_due(each)]
    if not given.page:
        sweep(due, given.results, commit, tell)
    old = read_page(PAGE)
    write_page(
        PAGE,
        {each.key: load_result(each, given.results) or old.get(each.key) for each in STRANGERS},
    )
    return 0


def stop(number: int, frame: object) -> None:
    """End by an exception, so that the check under way ends as well."""
    sys.exit(1)


def tell(result: Result) -> None:
    """Say what came of one."""
    numbers = [result.import_s, result.compile_s, result.compile_w8a8_s, result.snr]
    shown = " ".join("-" if number is None else f"{number:.1f}" for number in numbers)
    print(f"{result.key:50} {result.kind:15} {shown:24} {result.reason[:120]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
