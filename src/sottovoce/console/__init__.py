"""What a terminal shows: tables, progress, words without hidden characters."""
