"""Parquet as a source: pyarrow decodes, after footers and page headers were checked here.

INT96 and lists with nulls are read in ways of our own.
"""
