"""Nested columns and decimals as flat features, and back: keys, values, and types as manifests state them."""
