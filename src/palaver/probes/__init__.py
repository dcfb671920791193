"""What a sentence encoder really notices: sentences changed by rule, and triplets made of them.

X. Zhu, T. Li, G. de Melo: Exploring Semantic Properties of Sentence Embeddings. ACL 2018, pages 632-637.
"""
