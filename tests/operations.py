"""The operations of the OpenAPI document, and requests to them. So the tests that use them also test a new endpoint."""

import datetime
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from app import openapi_document
from app.config import API

# As of NOW.
DOCUMENT = json.loads(openapi_document("", datetime.date(2026, 3, 18)))
OPERATIONS = {path: item["get"] for path, item in DOCUMENT["paths"].items()}
REPORT, REPORT_FILE, CHANGES = f"{API}/report", f"{API}/report/{{link}}", f"{API}/changes"
REPORTS, FLEET = f"{API}/reports", f"{API}/fleet"
# The week before that of NOW.
MONDAY = "2026-03-09"


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    """Return what a reference stands for."""
    if "$ref" not in part:
        return part
    _, _, kind, name = part["$ref"].split("/")
    return DOCUMENT["components"][kind][name]


def parameters_of(path: str) -> dict[str, dict[str, Any]]:
    """Return the parameters of an operation by name, headers included, with their schemas in full."""
    return {
        parameter["name"]: {**parameter, "schema": {**parameter["schema"], **resolved(parameter["schema"])}}
        for parameter in map(resolved, OPERATIONS[path]["parameters"])
    }


MASKED = [path for path in OPERATIONS if "X-Fields" in parameters_of(path)]
# Those that return data of drivers and trips, except the change feed.
OF_DATA = [path for path in MASKED if "If-None-Match" in parameters_of(path) and path not in (REPORTS, FLEET)]


def find_endpoints(app: Any) -> dict[str, Any]:
    """Return the declaration of each operation of an application."""
    rules = {re.sub(r"<[^>]*?(\w+)>", r"{\1}", rule.rule): rule for rule in app.url_map.iter_rules()}
    return {path: app.view_functions[rules[path].endpoint].endpoint for path in OPERATIONS}


def get_start_date(path: str, monday: str = MONDAY) -> str:
    """Return a start_date that an operation accepts: a Monday, or the first day of its month."""
    return f"{monday[:7]}-01" if path.endswith("/monthly") else monday


def make_target(path: str, required: Mapping[str, Any] | None = None, *, monday: str = MONDAY, **values: Any) -> str:
    """Return the path and query, below the API, of a request to an operation.

    It has the dates of a week, and those `values` that the operation has parameters for, except None. Other parameters
    that must be given have the values in `required`, or else those in the examples of the document.
    """
    sunday = str(datetime.date.fromisoformat(monday) + datetime.timedelta(days=6))
    values, query = {"start_date": get_start_date(path, monday), "end_date": sunday, **values}, {}
    for name, parameter in parameters_of(path).items():
        value = values.get(name)
        if parameter.get("required") and name not in values:
            value = (required or {}).get(name) or parameter["example"]
        if parameter["in"] == "path":
            path = path.replace(f"{{{name}}}", quote(value, safe=""))
        elif value is not None:
            query[name] = value
    return path.removeprefix(API) + "?" * bool(query) + urlencode(query, doseq=True)
