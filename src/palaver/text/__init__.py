"""Words, sentences, vocabularies and term weights; knows nothing of models."""
