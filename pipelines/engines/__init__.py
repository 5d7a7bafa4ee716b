"""What runs a prepared conversion: Beam's local engine, Flink, Dataflow, each in a room of its own.

Here is what they share: Beam's options and local pipeline, counts asked for while a run works, errors of workers.
"""
