"""Flink: a pipeline run on it, embedded or on a cluster, and the cluster of this machine (`shardmill flink up`)."""
