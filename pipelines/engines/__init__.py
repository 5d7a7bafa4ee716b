"""What runs a prepared conversion: `engine` is the contract that the local engine, Flink and Dataflow keep.

Here is what they share: the pipeline and its options (`beam_pipeline`), counts that are asked for while a run
works, errors of workers.
"""
