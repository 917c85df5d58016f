"""What is learnt: tables with their errors, estimates, findings, pictures."""
