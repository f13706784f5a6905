"""A finding as a page in Markdown: the claim, the proof, and a program that repeats it; or a letter to a maintainer.

The program needs Python and SciPy alone, beside the target's own packages. It draws its own runs: it shows that the
proof is there, and no figure of it is copied.
"""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

from attrs import asdict, frozen

from aggregator.auditor import adapters, readings
from aggregator.auditor.runner import OFFERED
from aggregator.auditor.search import AuditEvidence, AuditVerdict
from aggregator.auditor.target import AuditTarget

_LONGEST = 300
_LOOP = '''
PAIR = {pair!r}  # two neighbours
EPSILON, DELTA, RUNS, ERROR = {epsilon!r}, {delta!r}, {runs}, {error!r}


def guess(y):
    """{words}"""
    v = flat(y)[:WIDEST]
    return {source}


def output(given):
    try:
        return plain({function}(given))
    except Exception as fault:
        return {{"raised": type(fault).__name__, "said": str(fault)[:200]}}


if __name__ == "__main__":
    import json
    import os

    from scipy.stats import beta, binomtest

    right = wrong = 0
    for coin in (byte & 1 for byte in os.urandom(RUNS)):
        told = guess(output(json.loads(json.dumps(PAIR[coin]))))
        right, wrong = right + (told == coin), wrong + (told == 1 - coin)
    print("of", RUNS, "runs the neighbour is guessed:", right, "times right,", wrong, "times wrong")
    share = beta.ppf(ERROR / 10, right + wrong, RUNS - right - wrong + 1) if DELTA else 1.0
    most = (math.exp(EPSILON) + {sides} * DELTA / (2 * share)) / (1 + math.exp(EPSILON))
    chance = binomtest(right, right + wrong, min(most, 1.0), alternative="greater").pvalue
    print("if the claim were true, so many would have a chance of at most", chance)
'''


@frozen
class AuditPage:
    """The target, the verdict, and the Python that ran it."""

    target: AuditTarget
    verdict: AuditVerdict
    python: str

    def page(self) -> str:
        """The page. A claim that was not refuted has no reproduction."""
        return "\n".join([f"# Audit of {self._name()}", "", f"**{self.verdict.words()}.**", "", *self._body(), ""])

    def letter(self) -> str:
        """The report to a maintainer."""
        head = [
            f"Subject: {self._name()} exceeds its stated epsilon",
            "",
            "Dear maintainer,",
            "",
            f"an automated audit refutes a privacy claim of {self._name()}.",
            "This report went to nobody else. Please say when it may be published, or where the claim was misread.",
            "",
            f"Result: {self.verdict.words()}.",
            "",
        ]
        return "\n".join([*head, *self._body(), ""])

    def json(self) -> dict[str, Any]:
        """The verdict as values of JSON."""
        verdict, found = self.verdict, self.verdict.best
        best = found and {
            "event": found.words, "pair": found.pair, **asdict(found.counts), "epsilon": found.epsilon,
        }  # fmt: skip
        return {
            "broken": verdict.broken, "claimed": asdict(verdict.claim), "proven": verdict.highest,
            "error": verdict.error, "runs": verdict.runs, "events": verdict.tried, "pairs": verdict.pairs, "best": best,
        }  # fmt: skip

    def reproduction(self, found: AuditEvidence) -> str:
        """A program of its own that draws as many runs, and says how probable its counts are under the claim."""
        event = found.event
        called = self.target.function
        if called.startswith("["):
            called = f"command({called}, {self.target.place == 'lines'})"
        loop = _LOOP.format(
            pair=found.pair,
            epsilon=self.verdict.claim.epsilon,
            delta=self.verdict.claim.delta,
            runs=self.verdict.runs,
            error=found.error,
            words=found.words[:200].replace('"""', "'''"),
            source=event.source(),
            function=called,
            sides=found.counts.sides,
        )
        code = "\n\n".join([_bare(inspect.getsource(readings)), self._mechanism(), loop])
        later = "from __future__ import annotations\n"
        return later + re.sub(r"^from __future__ .*\n", "", code, flags=re.MULTILINE).replace("\n\n\n\n", "\n\n\n")

    def _mechanism(self) -> str:
        """The target's own lines, with the adapters that they import written out."""
        source, imports = self.target.source(), inspect.getsource(adapters)
        if not source:
            if self.target.function.startswith("["):
                return _bare(imports)
            return f"from {self.target.place} import {self.target.function}"
        lines = source.splitlines()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.module == OFFERED:
                lines[node.lineno - 1] = _bare(imports)
                lines[node.lineno : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno)
        return _bare("\n".join(lines))

    def _name(self) -> str:
        return ", ".join(self.target.requirements) or f"{self.target.place}:{self.target.function}"

    def _neighbours(self) -> str:
        if self.target.pairs:
            return "the pairs that were named"
        return f"{self.target.neighbours} of `{self.target.domain}`"

    def _body(self) -> list[str]:
        found, claim = self.verdict.best, self.verdict.claim
        said = f"epsilon {claim.epsilon:g}" + (f", delta {claim.delta:g}" if claim.delta else "")
        lines = [f"* Claim: {said}; neighbours: {self._neighbours()}."]
        lines += [f"* Python {self.python}; packages: {', '.join(self.target.requirements) or 'those of that Python'}."]
        lines += [f"* {self.verdict.runs:,} runs, {self.verdict.tried} events tried on fresh runs."]
        if found is None:
            return lines
        counts = found.counts
        lines += [f"* Best event: {found.words}."]
        lines += [f"* Neighbours: the first is `{_cut(found.pair[0])}`, the second `{_cut(found.pair[1])}`."]
        lines += [f"* {counts.runs:,} fresh runs, each of a neighbour drawn by a fair coin."]
        lines += [f"* The event names the right neighbour {counts.right:,} times, the other {counts.wrong:,} times."]
        *before, _ = found.parts
        for _, earlier in before:
            told = f"{earlier.right:,} times right and {earlier.wrong:,} times wrong in {earlier.runs:,} fresh runs"
            lines += [f"* A rule of a stage before it, for the same neighbours: {told}."]
        joined = f" Stouffer's sum joins the {len(found.parts)}, weighted by their runs." if before else ""
        lines += [f"* Clopper and Pearson test each count exactly.{joined}"]
        lines += [f"* Together: epsilon at least {found.epsilon:.3f}, with an error of {found.error:.2g}."]
        lines += [f"* All events of the audit spend an error of {self.verdict.error:g}."]
        if not self.verdict.broken:
            return lines
        needs = " ".join(f"'{name}'" for name in ("scipy", *self.target.requirements))
        program = ["```python", self.reproduction(found), "```"]
        return [*lines, "", f"To repeat it, run `pip install {needs}` and then this:", "", *program]


def _cut(given: object) -> str:
    return repr(given) if len(repr(given)) <= _LONGEST else repr(given)[:_LONGEST] + " ..."


def _bare(source: str) -> str:
    """Lines of Python without the module's docstring."""
    tree = ast.parse(source)
    first = tree.body[0] if tree.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return "\n".join(source.splitlines()[first.end_lineno :]).strip() + "\n"
    return source
