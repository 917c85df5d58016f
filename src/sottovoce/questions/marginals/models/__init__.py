"""Models behind the methods: classes, log-linear tables, designs of views, signs."""
