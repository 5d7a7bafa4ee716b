"""Object stores: S3 and Google Cloud Storage behind one contract, `object_store`. No Beam in this layer.

`store_at` gives this process's one client for a bucket. Nothing here takes, keeps or shows credentials.
"""
