"""How somebody adds an optional part to the program they have: by the wheel's file, since no registry has `anonml`."""

from __future__ import annotations

from importlib.util import find_spec

from anon.text.sentences import Term

_TELLTALE = {
    "aggregator": "sqlalchemy",
    "dask": "distributed",
    "desktop": "pystray",
    "excel": "openpyxl",
    "export": "skops",
    "parquet": "pyarrow",
    "pdf": "weasyprint",
    "qr": "zxingcpp",
}


def install(extra: str) -> Term:
    """The command that adds an extra and keeps those that are there.

    The `./` is needed: without it pipx takes the file for a name and drops the extras without a word.
    """
    names = sorted({extra, *(name for name, module in _TELLTALE.items() if _is_there(module))})
    return Term(f"pipx install --force './anonml-{_version()}-py3-none-any.whl[{','.join(names)}]'")


def lacks(extra: str) -> bool:
    """True where an extra's packages are not installed."""
    return not _is_there(_TELLTALE[extra])


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:  # where imports are forbidden (phones, tests of them) even looking may be
        return False


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # late: `--help` tells no version

    try:
        return version("anonml")
    except PackageNotFoundError:
        return "VERSION"
