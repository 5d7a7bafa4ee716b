"""Bytes and their meaning: Arrow columns, Examples, TFRecord frames, manifests. No Beam and no I/O on this floor.

what flows     rows  blocks  rejects  schema      the types between reading, encoding and writing
               framed_rows                        rows that are records already
               printable  sizes  durations        values, sizes and times as people see them
               extras                             how an extra of the package is installed
encoding       encode_rows      a batch becomes framed records by split, and rejects
                                ── columns    Arrow columns as plain values: columns_numbers  columns_bytes
                                              columns_lists  arrow_types  arrow_memory
                                ── example    plain values as Examples: entry_prefix  key_order  varints
                                              segments  frame_in_place
                                ── splits     which row goes where
                                ── views      the trick under all of it: many small pieces at memory speed
framing        tfrecord         payloads become frames;  scan  frames become payloads
                                ── checksum  gzip_members;  run_check  many checksums at once
                                ── length_walk  from record to record;  header_search  after a damage
decoding       decode           payloads become batches: ── payloads  decode_walk  decode_values
proof          example_proto    the message as protobuf itself reads and writes it
a dataset      manifest         the document, written;  manifest_parser  and read
                                ── manifest_parts   large ones;  shard_entry  shard_lines  a shard, a line
               strict_json      measured before it is parsed;  strict_members  and taken key by key
               naming           names of splits and files;  schema_difference  two schemas side by side
               sidecars         the files for other tools: tfds  tfx  index
"""
