"""The seven transformations of section 2.1, each a module with `apply(doc) -> str`."""
