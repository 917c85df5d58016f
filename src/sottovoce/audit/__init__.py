"""Proof that a plan is private: its device along every way its coins can fall."""

from __future__ import annotations

from sottovoce.audit.crowds import CrowdAudit, CrowdCase, CrowdParts
from sottovoce.audit.oracles import (
    AUDIT_DRAWS,
    CONFIDENCE,
    ExactAudit,
    SampledAudit,
    audit,
    exact,
    sample,
    worst_ratio,
)
from sottovoce.audit.plans import PlanAudit, audit_plan

__all__ = [
    "AUDIT_DRAWS",
    "CONFIDENCE",
    "CrowdAudit",
    "CrowdCase",
    "CrowdParts",
    "ExactAudit",
    "PlanAudit",
    "SampledAudit",
    "audit",
    "audit_plan",
    "exact",
    "sample",
    "worst_ratio",
]  # fmt: skip
