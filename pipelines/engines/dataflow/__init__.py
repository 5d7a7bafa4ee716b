"""Dataflow: a conversion submitted as a job of Google Cloud, and a job that is waited for."""
