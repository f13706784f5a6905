"""The share of the report that shows a linear model, for every protocol that learns one."""

from __future__ import annotations

from typing import Final

from aggregator.protocols.contract import ReportPart
from anon.protocols.models.linear import LinearModel

_TEMPLATE: Final = """{% extends "report.html" %}
{% block results %}
<h2>The model</h2>
<p>{% if model.target %}It predicts the number “{{ model.target.name }}”.
{% else %}It adds up log-odds of “{{ model.label.name }}”.{% endif %}
Each column is centred, divided by its width and cut to lie from -1 to 1. Then it is multiplied by its weight.
{% if model.target %}A sum of 1 is one width of {{ model.target.width }} above {{ model.target.centre }}.{% endif %}</p>
<table class="wide"><thead><tr><th>Column</th><th>Centre</th><th>Width</th><th>Weight</th></tr></thead><tbody>
{% for column, weight in weighted %}<tr><th scope="row">{{ column.name }}</th><td class="n">{{ column.centre }}</td>
<td class="n">{{ column.width }}</td><td class="n">{{ "%+.4g" | format(weight) }}</td></tr>
{% endfor %}<tr><th scope="row">intercept</th><td></td><td></td>
<td class="n">{{ "%+.4g" | format(model.intercept) }}</td></tr>
</tbody></table>
{% endblock %}
"""


def linear_report(model: LinearModel) -> ReportPart:
    """A table of the columns, the heaviest first."""
    pairs = sorted(zip(model.columns, model.weights, strict=True), key=lambda pair: (-abs(pair[1]), pair[0].name))
    return ReportPart(_TEMPLATE, {"weighted": pairs})
