"""From the results of all tasks to staged shards: accounts, a refusal or a plan, each shard assembled."""
