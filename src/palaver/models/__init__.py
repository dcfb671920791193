"""Response models (`Seq2Seq`, `KnowledgeTransformer`), sentence encoders and devices."""
