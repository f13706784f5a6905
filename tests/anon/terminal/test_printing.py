"""No text that a command prints is read as markup, and every style stands in a template of ours."""

from __future__ import annotations

import ast
import io
from pathlib import Path

import pytest
from rich.table import Table
from typer.testing import CliRunner

from aggregator.cli.study import app as studies
from anon.kit.terminal.foreign import Foreign, inline
from anon.kit.terminal.printing import Terminal, styled

ROOT = Path(__file__).resolve().parents[3]
TEXTS = [
    "under [design], and cuts", "[bold]loud[/]", "[/]", "a \\[b] c\\", "[link=https://evil.example]x[/link]",
    ":warning: 7", "{name}", "[red",
]
OWN = {"anon/kit/terminal/printing.py"}
"""The module that may ask rich for markup."""
MODULES = [
    file
    for place in ("anon", "peer", "aggregator", "anonml.py")
    for file in ([ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py")))
]


def _printed(*things: object, width: int = 200) -> str:
    out = io.StringIO()
    terminal = Terminal(file=out)
    terminal.width = width
    terminal.print(*things)
    return out.getvalue()


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_printed_as_it_is(text: str) -> None:
    table = Table(text, "other", title=text)
    table.add_row(text, Foreign(text))
    assert _printed(text) == _printed(inline(text)) == f"{text}\n"
    assert _printed(table).count(text) == 4


@pytest.mark.parametrize("text", TEXTS)
def test_a_value_of_a_template_is_plain(text: str) -> None:
    made = styled("[bold]{name}[/]: {text} [red]!{text}![/]", name=text, text=text)
    assert made.plain == f"{text}: {text} !{text}!"
    bold = {index for span in made.spans if span.style == "bold" for index in range(span.start, span.end)}
    assert bold == set(range(len(text)))


def test_a_template_keeps_its_styles_around_its_values() -> None:
    made = styled("[red]no[/]  {line}", line="x" * 5)
    assert made.plain == "no  xxxxx" and [(span.start, span.end, span.style) for span in made.spans] == [(0, 2, "red")]
    with pytest.raises(KeyError):
        styled("{lacking}")


def test_a_question_is_plain_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda: "y")
    out = io.StringIO()
    assert Terminal(file=out).input("Join [design]? [y/N]: ") == "y" and out.getvalue() == "Join [design]? [y/N]: "


@pytest.mark.source
def test_every_module_prints_on_a_terminal_without_markup() -> None:
    """Otherwise somebody's title, a path or `[design]` is eaten. `styled` has its template written out."""
    assert {str(file.relative_to(ROOT)): found for file in MODULES if (found := _faults(file))} == {}


def _faults(file: Path) -> list[str]:
    if str(file.relative_to(ROOT)) in OWN:
        return []
    found = []
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        match node:
            case ast.ImportFrom(module="rich.console", names=names) if file.name != "foreign.py":
                found += [f"{node.lineno}: rich.console.{name.name}" for name in names]
            case ast.ImportFrom(module="rich" | "rich.markup" | "rich.prompt" | "rich.panel"):
                found.append(f"{node.lineno}: {node.module}")
            case ast.Attribute(attr="from_markup") | ast.keyword(arg="markup", value=ast.Constant(value=True)):
                found.append(f"{node.value.lineno}: markup")
            case ast.Call(func=ast.Name(id="Console")):
                found.append(f"{node.lineno}: Console(...)")
            case ast.Call(func=ast.Name(id="styled"), args=[first, *_]) if not isinstance(first, ast.Constant):
                found.append(f"{node.lineno}: a template that is made")
    return found


@pytest.mark.parametrize("line", [
    "from rich.console import Console", "from rich import print", "from rich.markup import escape",
    "styled(f'[bold]{x}[/]')", "Text.from_markup(x)", "terminal.print(x, markup=True)", "styled('[bold]' + x)",
    "from rich.prompt import Confirm",
])
def test_a_way_around_is_found(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "module.py").write_text(line)
    assert _faults(tmp_path / "module.py")


def test_a_study_file_of_a_name_in_brackets_is_named_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "[design].toml"
    said = CliRunner().invoke(studies, ["init", str(file)], env={"COLUMNS": "400"}, catch_exceptions=False).stdout
    assert f"{file} written; edit it, then `anonml study lint {file}`" in " ".join(said.split())
