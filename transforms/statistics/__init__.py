"""Statistics of the records, by split and feature: counted on their way, merged, and written beside the shards."""
