"""Proof that a plan is private: its device along every way its coins can fall."""

from __future__ import annotations

from sottovoce.audit.contract import ContractCheck, LawCheck, check_oracle, oracle_class
from sottovoce.audit.crowds import CrowdAudit, CrowdCase, CrowdParts
from sottovoce.audit.method_laws import check_method
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
from sottovoce.audit.part_checks import PartCheck
from sottovoce.audit.plans import PlanAudit, audit_plan
from sottovoce.audit.question_laws import check_question

__all__ = [
    "AUDIT_DRAWS",
    "CONFIDENCE",
    "ContractCheck",
    "CrowdAudit",
    "CrowdCase",
    "CrowdParts",
    "ExactAudit",
    "LawCheck",
    "PartCheck",
    "PlanAudit",
    "SampledAudit",
    "audit",
    "audit_plan",
    "check_method",
    "check_oracle",
    "check_question",
    "exact",
    "oracle_class",
    "sample",
    "worst_ratio",
]  # fmt: skip
