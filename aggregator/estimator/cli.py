"""`anonml aggregator export-model`: a published model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aggregator.opening import PUBLISH
from anon.errors import Refused
from anon.kit.terminal.options import JsonOption, print_json
from anon.kit.terminal.printing import Terminal
from anon.protocols.installed import load_model


def join(app: typer.Typer) -> None:
    """Add `export-model` to the commands of `anonml aggregator`."""
    app.command("export-model", rich_help_panel=PUBLISH)(export_model)


def export_model(
    model: Annotated[Path, typer.Argument(help="The model document: model.json, as `export` or a peer wrote it.")],
    file: Annotated[Path, typer.Argument(help="The file to write: its name ends in .onnx or .skops.")],
    as_json: JsonOption = False,
) -> None:
    """Write a published model as ONNX or skops. Both predict what the model predicts."""
    from aggregator.estimator.export import to_onnx, to_skops

    found = load_model(model)
    if file.exists():
        raise Refused(f"{file}: is there already; name a new file")
    if file.suffix == ".onnx":
        written = to_onnx(found)
        file.write_bytes(written)
    elif file.suffix == ".skops":
        to_skops(found, file)
    else:
        raise Refused(f"{file.name}: expected a name that ends in .onnx or .skops")
    if as_json:
        print_json({"file": str(file), "bytes": file.stat().st_size, "study": found.study})
    else:
        Terminal().print(f"written to {file}")
