"""Proof that a plan is private: its device along every way its coins can fall."""

from __future__ import annotations

from sottovoce.audit.contract import ContractCheck, LawCheck, check_oracle, oracle_class
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
    "ContractCheck",
    "CrowdAudit",
    "CrowdCase",
    "CrowdParts",
    "ExactAudit",
    "LawCheck",
    "PlanAudit",
    "SampledAudit",
    "audit",
    "audit_plan",
    "check_oracle",
    "exact",
    "oracle_class",
    "sample",
    "worst_ratio",
]  # fmt: skip
