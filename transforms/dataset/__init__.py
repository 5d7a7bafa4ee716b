"""Files and generations: staging, the shard plan, the commit, and reading a dataset back. No Beam on this floor.

a run          spec             what a run is to make
               target           whether it may;  run_lock  and whether it is the only one
  stage        stage            blocks become parts, and a task_result
                                ── shared_folder  the one that the launcher has
                                ── split_stager  part_writer  part_file  frame_slices  cut_points
               done_tasks       what a run that stopped has staged
  plan         plan_step        the one step that sees all tasks
                                ── accounting  source_list    every row is accounted for
                                ── shard_plan    which bytes make which shard
                                ── refusal       why nothing is committed
  assemble     assemble         shards in staging
  commit       commit           a manifest makes them a generation;  put_manifest  which goes last
                                ── continuation  what an append makes of the one before
  publish      publish          files get their final names
               outcome          what became of it all
               write_generation  the last four in one call, without an engine
reading        open             a dataset's records, rows and arrays
                                ── generations   manifests, and where a shard is;  shard_places  all shards
                                ── overview      totals alone, however many shards there are
                                ── arrays        features as arrays;  frames
               record_file      plain TFRecord files, in and out;  record_scan  runs of records out of an open one
verifying      verify           ── verify_shard  verify_folder  list_lines  shard_sizes  findings
upkeep         history          what each generation added;  garbage  what none needs;  leftovers  of dead runs
salvaging      salvage          what is intact in a damaged file
                                ── intact_records  record_walk  intact_members
files          storage_contract what the place of a dataset must do;  storage_at  whichever a path or URL names
               storage          on disk;  incomplete_file  a file that appears whole or not
               object_storage   in a store
                                ── sidecars_by_version    what is replaced there without a lock
               direct_file      written past the page cache, from aligned_buffers
"""
