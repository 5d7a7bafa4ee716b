"""The transforms of Shardmill: rows in, blocks of framed Examples, shards out.

The modules of this folder are the Beam faces; the folders below hold the plain functions under them.
"""
