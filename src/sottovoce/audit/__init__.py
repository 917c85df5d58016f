"""Proof that a plan is private: its device along every way its coins can fall."""

from __future__ import annotations

from sottovoce.audit.oracles import (
    CONFIDENCE,
    DRAWS,
    ExactAudit,
    SampledAudit,
    audit,
    exact,
    sample,
    worst_ratio,
)
from sottovoce.audit.plans import PlanAudit, audit_plan

__all__ = [
    "CONFIDENCE", "DRAWS", "ExactAudit", "PlanAudit", "SampledAudit", "audit", "audit_plan",
    "exact", "sample", "worst_ratio",
]  # fmt: skip
