"""What people do with marginals: tests of independence, trees, synthetic records, classifiers."""

from __future__ import annotations

from sottovoce.analysis.association import Association, associate
from sottovoce.analysis.raking import Raked, rake
from sottovoce.analysis.synthetic import Classification, classify, synthesize
from sottovoce.analysis.ties import Edge
from sottovoce.analysis.trees import Tree, dependency_tree

__all__ = [
    "Association",
    "Classification",
    "Edge",
    "Raked",
    "Tree",
    "associate",
    "classify",
    "dependency_tree",
    "rake",
    "synthesize",
]
