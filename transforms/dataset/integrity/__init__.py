"""Whether a dataset is whole, and what can be saved: `verify` names each damage, `salvage` copies what is intact."""
