"""The commands of Shardmill, and the only folder that knows argv, config files and runners."""
