"""Beam's own parts: ReadFromParquet | Map(serialize) | WriteToTFRecord, two worker processes."""

from __future__ import annotations

import sys

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from protobuf_loop import serialize


def main() -> None:
    source, out = sys.argv[1:]
    options = PipelineOptions(["--direct_num_workers=2", "--direct_running_mode=multi_processing"])
    with beam.Pipeline(runner=FnApiRunner(), options=options) as pipeline:
        _ = (
            pipeline
            | beam.io.ReadFromParquet(f"{source}/*.parquet")
            | beam.Map(serialize)
            | beam.io.WriteToTFRecord(f"{out}/train", file_name_suffix=".tfrecord")
        )


if __name__ == "__main__":
    main()
