"""With a trusted curator: private releases of tables and sets that one organisation holds."""
