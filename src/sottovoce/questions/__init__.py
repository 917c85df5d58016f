"""What may be asked, a folder for each: how it is planned and how it is estimated."""
