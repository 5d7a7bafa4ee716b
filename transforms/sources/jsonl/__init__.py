"""JSON lines as a source: a JSON object in each line, whose keys are the columns.

Begin with `source`; `parse` turns lines into typed columns: most by pyarrow, the rest line by line, by `values`.
"""
