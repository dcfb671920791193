"""The corpora we know by name, in the layouts of their releases."""
