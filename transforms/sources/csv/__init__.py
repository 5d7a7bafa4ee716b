"""CSV as a source: delimiter, header and types are detected, and every bad cell is named by its place.

Begin with `source`; cells are parsed in `parse` and `cast`; `records` finds where records begin.
"""
