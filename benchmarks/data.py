"""The folder of `--data`: public data sets, which docs/researcher/data.md names file by file."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from pathlib import Path
from types import TracebackType

from anon.errors import AnonmlError

PAGE = "docs/researcher/data.md"


def data_folder(text: str) -> Path:
    """The folder, as argparse's `type`. A file that is missing there later ends the program in one sentence."""
    folder = Path(text)
    if not folder.is_dir():
        raise ArgumentTypeError(f"there is no folder {text}; {PAGE} names the files that belong there")

    def told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        missing = Path(str(error.filename)) if isinstance(error, FileNotFoundError) else None
        if missing is not None and missing.parent == folder:
            print(f"there is no {missing.name} in {folder}; {PAGE} says where it comes from", file=sys.stderr)
        elif isinstance(error, AnonmlError):
            print(f"{error}; {PAGE} names the files", file=sys.stderr)
        else:
            sys.__excepthook__(kind, error, trace)

    sys.excepthook = told
    return folder
