"""CSV as a source: delimiter, header and types are detected, and every bad cell is named by its place.

Begin with `source`; `record_starts` finds where records begin, `parse` gives their cells, `schema` their types.
"""
