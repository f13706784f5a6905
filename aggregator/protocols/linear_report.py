"""The share of the report that shows a linear model, for every protocol that learns one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aggregator.protocols.contract import ReportPart
from anon.protocols.models.linear import LinearModel

_TEMPLATE: Final = """{% extends "report.html" %}
{% block results %}
{% macro weights() %}
{% if drawn %}
<figure><figcaption>The weight of each column, with its 95 % interval</figcaption>
{{ intervals(drawn, "Weight of each column with its 95 % interval; 0 moves nothing", 0) }}</figure>
<p>An interval is of the noise and of who took part. The noise also draws weights to 0, which no interval tells.</p>
{% endif %}
<div class="wide" tabindex="0" role="region" aria-label="weights">
<table><tr><th>column</th><th class="n">centre</th><th class="n">width</th><th class="n">weight</th></tr>
{% for column, weight in weighted %}<tr><td><bdi>{{ column.name }}</bdi>{{ " (log)" if column.scale == "log" }}</td>
<td class="n">{{ "%.6g" | format(column.centre) }}</td><td class="n">{{ "%.6g" | format(column.width) }}</td>
<td class="n">{{ "%+.4g" | format(weight) }}</td></tr>
{% endfor %}<tr><td>intercept</td><td></td><td></td>
<td class="n">{{ "%+.4g" | format(model.intercept) }}</td></tr>
</table>
</div>
{% endmacro %}
<h2>The model</h2>
<p>{% if model.target %}It predicts the number “<bdi>{{ model.target.name }}</bdi>”.
{% else %}It adds up log-odds of “<bdi>{{ model.label.name }}</bdi>”.
{% endif %}
{% if logarithms %}Of columns on a log scale the natural logarithm of 1 + value is taken first.
{% endif %}Each column is centred, divided by its width and cut to lie from -1 to 1.
Then it is multiplied by its weight.
{% if model.target %}A sum of 1 is one width of {{ model.target.width }} above {{ model.target.centre }}{{
" in the logarithm of 1 + number" if model.target.scale == "log" }}.{% endif %}</p>
{% if model.shown is false %}
<details><summary>The model's weights, which were not shown to be more than noise</summary>
{{ weights() }}
</details>
{% else %}
{{ weights() }}
{% endif %}
{% endblock %}
"""


def linear_report(model: LinearModel, errors: Sequence[float] = ()) -> ReportPart:
    """A table of the columns, the heaviest first, and a picture of their intervals where errors are known."""
    pairs = sorted(zip(model.columns, model.weights, strict=True), key=lambda pair: (-abs(pair[1]), pair[0].name))
    spread = dict(zip((column.name for column in model.columns), errors, strict=bool(errors)))
    drawn = [
        (column.name, weight, weight - 1.96 * spread[column.name], weight + 1.96 * spread[column.name])
        for column, weight in pairs
        if spread
    ]
    logarithms = any(column.scale == "log" for column in model.columns)
    return ReportPart(_TEMPLATE, {"weighted": pairs, "drawn": drawn, "logarithms": logarithms})
