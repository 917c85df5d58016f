"""The part of the API's description that no framework writes: the plain routes."""

from __future__ import annotations

from typing import Any

from sottovoce.device.messages import BINARY
from sottovoce.service.problems import MEDIA_TYPE, PROBLEMS

_HEX32 = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_HEX64 = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_REPORT: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["id", "sottovoce", "plan", "cohort", "payload"],
    "properties": {
        "id": _HEX32,
        "sottovoce": {"const": 1, "type": "integer"},
        "plan": _HEX64,
        "cohort": {"type": "integer", "minimum": 0, "maximum": (1 << 32) - 1},
        "payload": {"type": "string", "pattern": "^([0-9a-f]{2})*$"},
        "public": {
            "type": "object",
            "additionalProperties": {"type": ["boolean", "integer", "string"]},
        },
        "expires": {"type": "integer", "minimum": 0, "maximum": (1 << 53) - 1},
        "signature": _HEX64,
    },
}
_BATCH: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["reports"],
    "properties": {"reports": {"type": "array", "minItems": 1, "items": _REPORT}},
}
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}
_ANY = (
    "malformed-body", "unauthorized", "forbidden", "unknown-plan", "body-too-slow", "survey-exists",
    "no-reports", "no-next-round", "body-too-large", "invalid-input", "too-many-requests", "busy",
    "estimate-under-way", "estimate-failed",
)  # fmt: skip
_PLAN_ID = {"name": "id", "in": "path", "required": True, "schema": _HEX64}


def _refusals(*names: str) -> dict[str, Any]:
    """The answers of some problems, by status."""
    out: dict[str, Any] = {}
    for name in names:
        status, title = PROBLEMS[name]
        known = out.setdefault(
            str(status), {"description": "", "content": {MEDIA_TYPE: {"schema": _PROBLEM}}}
        )
        known["description"] = "; ".join(filter(None, [known["description"], f"{name}: {title}"]))
    return out


def _ok(description: str, schema: dict[str, Any], kind: str = "application/json") -> dict[str, Any]:
    return {"200": {"description": description, "content": {kind: {"schema": schema}}}}


PATHS: dict[str, Any] = {
    "/v1/reports": {
        "post": {
            "summary": "Send one report or a batch of one plan; answered when it is durable",
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": {
                        "schema": {"anyOf": [_REPORT, _BATCH, _BATCH["properties"]["reports"]]}
                    },
                    BINARY: {"schema": {"type": "string", "format": "binary"}},
                },
            },
            "responses": _ok(
                "Every report is stored, or was before",
                {
                    "type": "object",
                    "required": ["stored", "duplicates"],
                    "properties": {
                        "stored": {"type": "integer"},
                        "duplicates": {"type": "integer"},
                    },
                },
            )
            | _refusals(
                "malformed-body",
                "bad-assignment",
                "unknown-plan",
                "body-too-slow",
                "id-reused",
                "assignment-used",
                "survey-closed",
                "body-too-large",
                "unsupported-type",
                "invalid-report",
                "wrong-time",
                "too-many-requests",
                "busy",
                "store-full",
            ),
        }
    },
    "/v1/plans/{id}": {
        "get": {
            "summary": "A plan, byte for byte; its SHA-256 is its id",
            "parameters": [_PLAN_ID],
            "responses": _ok("The plan", {"type": "object"})
            | _refusals("unknown-plan", "too-many-requests"),
        }
    },
    "/v1/plans/{id}/assignment": {
        "get": {
            "summary": "Public coins for one report of a plan whose coin is assigned",
            "parameters": [_PLAN_ID],
            "responses": _ok(
                "The assignment",
                {
                    "type": "object",
                    "required": ["plan", "id", "expires", "signature"],
                    "properties": {
                        "plan": _HEX64,
                        "id": _HEX32,
                        "expires": {"type": "integer"},
                        "signature": _HEX64,
                    },
                },
            )
            | _refusals("unknown-plan", "not-found", "survey-closed", "too-many-requests"),
        }
    },
    "/healthz": {
        "get": {
            "summary": "Whether the collector lives and its store answers",
            "responses": _ok("Well", {"type": "object"}) | _refusals("internal", "busy"),
        }
    },
    "/readyz": {
        "get": {
            "summary": "Whether the collector takes reports now",
            "responses": _ok("Ready", {"type": "object"}) | _refusals("busy", "not-ready"),
        }
    },
    "/metrics": {
        "get": {
            "summary": "Counters for Prometheus; closed, or open to everybody, if the collector "
            "was told so",
            "responses": _ok("Counters", {"type": "string"}, "text/plain")
            | _refusals("unauthorized", "not-found", "too-many-requests"),
            "security": [{"token": []}],
        }
    },
}


def with_public(description: dict[str, Any]) -> dict[str, Any]:
    """The whole description: the framework's part, the plain routes, and any route's refusals."""
    for path in description["paths"].values():
        for operation in path.values():
            answers = operation["responses"]
            answers.pop("422", None)
            answers |= _refusals(*_ANY)
            operation["security"] = [{"token": []}]
    description["paths"] |= PATHS
    schemes = description.setdefault("components", {}).setdefault("securitySchemes", {})
    schemes["token"] = {"type": "http", "scheme": "bearer"}
    return description
