"""`python -m benchmarks.vectors [FOLDER]`: writes all files of vectors, into docs/vectors unless a folder is named."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.vectors import documents, learned, manifests, pages, proofs, results, sums
from benchmarks.vectors.made import Kind

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "vectors"


def kinds() -> Iterator[Kind]:
    """All files, one after the other."""
    yield manifests.kind()
    for module in (documents, proofs, sums, results, learned, pages):
        yield from module.kinds()


def main(folder: Path) -> None:
    """Write each file, and say what is in it."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in kinds():
        (folder / f"{kind.kind}.json").write_text(kind.to_json(), encoding="utf-8")
        print(f"{kind.kind}: {len(kind.cases)} cases, {sum(bool(case.why) for case in kind.cases)} of them fail")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
