"""Between the two: reports reach the analyst in a batch, without their senders' names."""
