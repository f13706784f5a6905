"""The page that says whether a class is large enough, before anybody has written a study."""

from __future__ import annotations

from aiohttp import web

from aggregator.desk import form
from aggregator.desk.form_file import text_of
from aggregator.desk.views.drafts import DraftPages
from aggregator.lab.sample_file import SampleColumn
from anon.errors import Malformed
from anon.study.features import MOST_IN_COHORT

MOST_ASKED = 20
_BOUNDS = {"people": (2, MOST_IN_COHORT), "features": (1, MOST_ASKED), "epsilon": (0.25, 8)}
BEGUN = {"people": "60", "features": "3", "epsilon": "2"}


class ClassSizePages(DraftPages):
    """A study of so many numbers, each in three parts: tried on made-up people without tellers and with two, and with
    two from what staff believe."""

    async def class_size(self, request: web.Request) -> web.Response:
        """The question alone, or with the answer."""
        asked = {name: request.query.get(name, begun).strip() for name, begun in BEGUN.items()}
        figures = {name: _number(name, asked[name]) for name in asked}
        tried = [
            await self._judged(study_text(figures, adds, expects), "", int(figures["people"]))
            for adds, expects in (("", ""), (form.TELLERS, ""), (form.TELLERS_BELIEF, "1"))
        ] if request.query else []
        return self._html("class_size.html", request, asked=asked, outlooks=[linted.outlook for linted in tried])


def _number(name: str, text: str) -> float:
    least, most = _BOUNDS[name]
    try:
        value = float(text) if name == "epsilon" else int(text)
    except ValueError:
        value = -1
    if not least <= value <= most:
        raise Malformed(f"{name}: expected a number from {least} to {most:,}; go back and correct it")
    return value


def study_text(figures: dict[str, float], adds: str, expects: str = "") -> str:
    """A study file with as many features that are nobody's. `expects`: the direction of each, where it is known."""
    columns = [SampleColumn(f"number_{count}", True, 0, 90) for count in range(1, int(figures["features"]) + 1)]
    label = SampleColumn("label", False, values=("yes", "no"), counts=(1, 1))
    fields = form.fields_of({
        **dict.fromkeys(("title", "purpose", "contact", "label_says"), "made up"),
        "label": "label", "positive": "yes", "epsilon": f"{figures['epsilon']:g}", "adds": adds,
    })
    filled = form.with_columns(fields, [*columns, label])
    asked = {**_ASKED, "expects": expects}
    filled |= {f"c{place}_{part}": said for place in range(len(columns)) for part, said in asked.items()}
    return text_of(form.with_unnamed_tellers(filled))


_ASKED = {"use": "on", "says": "a number", "cuts": "30 60"}
