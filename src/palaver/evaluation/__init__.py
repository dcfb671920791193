"""One evaluation from end to end: an experiment file, its cells, the answer and the report."""
