"""What people hold together: frequent items and itemsets of set-valued data, and the rules they
suggest.
"""

from sottovoce.questions.itemsets.associations import rules
from sottovoce.questions.itemsets.question import TopItems, TopItemsets

__all__ = ["TopItems", "TopItemsets", "rules"]
