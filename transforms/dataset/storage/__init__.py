"""The folder of a dataset, on a disk or in an object store, behind one contract: files appear whole or not at all.

`storage_at` opens either; `manifest_files` says which generations are there. The clients of S3 and GCS are in
`transforms/stores`.
"""
