"""A published model that reads what the aggregator's study reads."""

from __future__ import annotations

import json

from anon.protocols.models.tables import from_json


def model_of(study: str) -> bytes:
    """A published model that reads what the aggregator's study reads."""
    feature = {
        "name": "cups", "kind": "categorical", "description": "How much coffee you drink.",
        "query": "SELECT cups FROM person", "missing": "own", "range": [], "bins": 0, "cuts": [], "scale": "linear",
        "categories": ["none", "some", "many"], "shares": [],
    }
    age = feature | {
        "name": "age", "kind": "numeric", "description": "Your age.", "query": "SELECT age FROM person",
        "range": [0.0, 100.0], "cuts": [30.0, 60.0], "categories": [],
    }
    table = {"cards": [4], "reports": 100, "f1": 0.7, "auc": 0.7, "weight": 1.0, "votes": [0, 0, 1, 0]}
    plain = {
        "version": 1, "study": study, "title": "Sleep and coffee",
        "label": {
            "name": "tired", "description": "You are tired.", "query": "SELECT tired FROM person",
            "positive": [1], "negative": [0], "missing": "negative",
        },
        "features": [feature, age], "cuts": [{"feature": "age", "cuts": [30.0, 60.0]}],
        "ensemble": "soft", "classifier": "soft", "base_rate": 0.3, "threshold": 0.4,
        "tables": [
            table | {"features": ["cups"], "log_odds": [-1.2, 0.1, 1.9, 0.0]},
            table | {"features": ["age"], "log_odds": [-0.4, 0.2, 0.6, 0.0]},
        ],
    }
    return from_json(json.dumps(plain)).to_json().encode()
