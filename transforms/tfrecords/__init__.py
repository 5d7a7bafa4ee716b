"""Existing TFRecord files as a source: Shardmill's datasets, and anyone's files. No Beam here.

tfrecord_source     list, survey, read: records become blocks as they are
    ── inputs           what paths name: the shards of a generation in its order, or files
    ── agreement        one schema and one label map for all of them, or a refusal
    ── observed_schema  what the Examples of a file hold, where no manifest says so
    ── records_piece    ranges of files, and how they are cut
                        ── shard_cuts    where shards will end;  record_start  and records begin
    ── piece_reader     one range: runs of framed records, and rejects
"""
