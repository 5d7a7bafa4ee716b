"""Whether the sizes of shards keep their promise: integers only.

S is the shard size; u is the largest of a framed record of the split (gzip: a member) and S/256. In a split without a
record over S: no shard is larger than S; all but the last two are larger than S - u; if there are at least S - u bytes
in all, none is smaller than (S - u)/2. A record over S is alone. No shard is empty. Each generation for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...format.manifest.manifest import ShardEntry


def size_breaches(shards: Sequence[ShardEntry], shard_size: int, unit_bytes: int) -> Iterator[tuple[str, str]]:
    """Yield the path of each shard whose size breaks the promise, and how; all of one split and generation, in order.

    `unit_bytes` is the split's, as the manifest states it.
    """
    unit = max(unit_bytes, -(-shard_size // 256))
    least = shard_size - unit
    oversize = unit > shard_size or any(shard.records == 1 and shard.bytes > shard_size for shard in shards)
    total = sum(shard.bytes for shard in shards)
    for place, shard in enumerate(shards):
        if shard.records == 0:
            yield shard.path, "an empty shard"
        elif shard.bytes > shard_size and shard.records > 1:
            yield shard.path, f"{shard.bytes} bytes in {shard.records} records, over the shard size of {shard_size}"
        elif not oversize and place < len(shards) - 2 and shard.bytes <= least:
            yield shard.path, f"{shard.bytes} bytes, and all but the last two shards are to have more than {least}"
        elif not oversize and total >= least and 2 * shard.bytes < least:
            yield shard.path, f"{shard.bytes} bytes, and no shard is to have less than half of {least}"
