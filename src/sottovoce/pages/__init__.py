"""Pages that stand alone: an estimate in words and pictures, in one file that loads nothing."""
