"""What runs beside a person: the client, what it keeps, its coins, and the sender."""
