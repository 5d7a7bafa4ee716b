"""What comes in: listing, surveying and reading of CSV, Parquet, image and NumPy files. No Beam on this floor.

Begin with `source`, the contract, and one of the `*_source` modules that keep it; each of the others is a piece of one.

    every source   source           list, survey, read: what each of them does, and what passes between
                   pick             which of them reads some paths
                   listing          paths, globs and folders become a sorted list of files
                   task_planning    pieces become tasks;  fit  under the schema of a dataset that is there
                   read_task        a task's batches and its end mark;  task_codec  its pieces as text
                   source_files     how files are opened;  stamp  and still what they were when they were listed
                   arrow_checks     what comes from outside is sound Arrow data
                   partitions       columns in the names of folders
                   nearest          which name was probably meant
    CSV            csv_source       ── csv_text      bytes to UTF-8, compressed or not
                                    ── csv_split     where records begin, in parallel;  csv_bits  the same, a bit a byte
                                    ── csv_chunks    whole records, and their places;  csv_pieces  what a task holds
                                    ── csv_delimiter    detected from the first records
                                    ── csv_header  csv_infer  csv_schema    names and types
                                    ── csv_obstacles    text that is nearly numbers;  csv_warnings  what is odd
                                    ── csv_parse  csv_cast    cells to proven values;  csv_hints  proposed fixes
    Parquet        parquet_source   ── parquet_footer  parquet_chunks  parquet_pages    metadata, walked by us
                                    ── thrift_compact    its encoding
                                    ── parquet_schema  parquet_lists    what files share;  what pyarrow refuses to read
                                    ── parquet_int96  int96    timestamps that pyarrow wraps
    images         image_source     ── image_listing  image_walk  image_names  image_layout   folders, and their meaning
                                    ── image_table  image_order  image_pieces     millions of files, by column
                                    ── image_bytes  image_rows        files' own bytes as rows
                                    ── image_check    format, size and wholeness by content, with image_facts and
                                                      image_jpeg  image_png  image_gif  image_webp  image_bmp
                                    ── image_decode   the same by decoding
    NumPy          numpy_source     ── numpy_records  numpy_rows  numpy_hints   a file is a record, or its rows are
                                    ── numpy_files  npy  npz        arrays in files;  array_columns  as columns
                                    ── numpy_tables   arrays that belong together, and the program that converts them
    from stores    object_listing   URLs become a sorted list of objects;  object_tree  and folders of images
                   object_file      ranges of an object, on their way before they are asked for;  image_ahead  images
    in memory      memory_source    ── memory_tables    DataFrames, Arrow data and dicts as batches
                                    ── memory_rows      lists and iterators of dicts, or of tables
"""
