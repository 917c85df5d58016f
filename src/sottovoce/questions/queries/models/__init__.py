"""Models behind the methods: what the shares of many grids say of all codes."""
