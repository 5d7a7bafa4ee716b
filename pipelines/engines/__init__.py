"""What runs a prepared conversion: `engine` is the contract that the local engine, Flink and Dataflow keep.

Here is what they share: Beam's options and local pipeline, counts asked for while a run works, errors of workers.
"""
