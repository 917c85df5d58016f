"""What commands share: the files they read and write, tables, progress."""
