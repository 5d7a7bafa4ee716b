"""One line for each config key, reject code and image feature: what `make_tables` puts beside what the code says."""

from __future__ import annotations

from typing import Final

CONFIG_WORDS: Final[dict[str, str]] = {
    "version": "the version of the config's form",
    "name": "the dataset's name; by default the last folder of `output.path`",
    "stats": "statistics in `stats.json` and, for TFDV, `stats.tfdv`: `basic` counts what costs next to nothing; "
    "`full` or `true` adds histograms, quantiles, distinct and frequent values; `none` or `false`: none of them",
    "accept_map": "an append takes another `map` than the dataset was made with, from this generation on",
    "max_rejects": "how many rows may be rejected: a number, or a share like `1%`; more fail the run",
    "input.paths": "files, folders, globs, `s3://` and `gs://` URLs; relative to the config",
    "input.columns": "keep only these columns: names, or globs like `feat_*`",
    "input.where": "only the rows for which an expression is true: `age >= 18 and country in ['DE', 'FR']`",
    "input.splits": "the files of each split: `{train: GLOB, test: GLOB}`, `names` for words in names, or `none`",
    "input.detect": "`none`: take no splits, classes or annotations from the names of files and folders",
    "input.limit": "read the first so many rows or images of the whole source only",
    "input.exclude_columns": "leave these columns out: names, or globs like `raw_*`",
    "input.delimiter": "one character between cells, or `tab`; detected if it is left out",
    "input.quote": "the character around cells with delimiters or newlines; `null`: none",
    "input.header": "`false`: the first line is data, and `names` gives the columns",
    "input.names": "column names where there is no header, or instead of it",
    "input.row_names": "the name of the first column, where the header has none for it, as R writes it",
    "input.encoding": "any encoding of Python, like `latin-1`; of a zip, that of names that are not marked as UTF-8",
    "input.null_values": "unquoted cells that are null",
    "input.skip_lines": "lines before the header that are not read",
    "input.comment": "a sign like `#`: lines that begin with it are no rows",
    "input.escape": "a sign like `\\\\`: the character after it means itself, in quotes or not",
    "input.trim": "blanks around cells are no part of them; runs of blanks are the delimiter where no sign is",
    "input.short_rows": "a row with too few cells is a reject, or `null`: its last cells are null",
    "input.repeated_header": "`drop`: leave out rows that are the header again, as in files that were joined",
    "input.partitions": "folders like `year=2024` are columns; `none` leaves them out",
    "input.columns_differ": "files whose columns differ are refused; `union`: the columns of all, with nulls",
    "input.checksums": "verify page checksums, where the file has them",
    "input.layout": "what folders mean: classes, splits, splits of classes, classes in other folders, nothing; "
    "of archives those within them",
    "input.check": "how far pictures are checked; `strict` rejects [damaged JPEGs](pictures.md#damaged-jpegs)",
    "input.label_offset": "the number of the first class, at most 1000",
    "input.labels": "the classes in their order, others are rejects; `numeric`: folders named by numbers, in order",
    "input.annotations": "`{coco: [FILE, ...]}`, `{boxes: [TABLE, ...]}`, `{voc: FOLDER}` or `{yolo: FOLDER}`: files "
    "that name the pictures and say what is in them ([guide](guide.md#coco-voc-yolo)); `masks: true` reads "
    "segmentations too",
    "input.classes": "the names of classes by number; by default of VOC those found, in their order (`numeric`: that "
    "of whole numbers), and of YOLO those of `data.yaml` or `classes.txt` beside the labels; of COCO `dense`: 0 to "
    "n - 1 in the order of their ids, with names",
    "input.key": "members are of one sample where their names are equal up to the first dot, or the last one; `null` "
    "is the first dot, and refuses kinds that differ in a number only",
    "input.pictures": "a picture without a name before its suffix is the column `image`, or called by its suffix",
    "input.json": "the fields of `.json` members are columns, or its text is one column `json`",
    "input.images": "the folder of the pictures that labels are beside",
    "input.masks": "`true`: polygons and run lengths become PNG masks, by pycocotools (extra `coco`)",
    "input.metadata": "`none`: the folders alone; by default a `metadata.csv`, `.jsonl` or `.parquet` beside pictures "
    "names them, and its rows are the records ([guide](guide.md#tables-beside-pictures))",
    "input.sha256": "add the feature `image/key/sha256`",
    "input.formats": "the formats that are accepted; also `tiff`, `avif`, `jpeg2000`, which TensorFlow does not decode",
    "input.ignore": "globs of files, members and folders to leave out",
    "input.rows": "`true`: the first axis of an array is the rows",
    "input.feature": "the name of the feature of `.npy` files",
    "input.drop": "a CSV file of keys: records that have one are left out ([guide](guide.md#leave-rows-out))",
    "input.drop_where": "leave out the records for which an expression is true, as `input.where` keeps them",
    "input.records": "`opaque`: records need not be Examples, and have no schema",
    "schema.infer": "which rows decide the types of CSV and JSON lines: all up to 64 MiB and samples above, all, or "
    "none (all text)",
    "schema.columns.<name>.type": "the column's type, instead of what is inferred or found",
    "schema.columns.<name>.as": "how values are stored; `bytes` keeps float64 exact, `int64` whole numbers; `list`: "
    "cells of text hold lists",
    "schema.columns.<name>.unit": "the unit of times",
    "schema.columns.<name>.timezone": "the time zone of timestamps, like `Europe/Berlin`; an hour that its clocks "
    "skip or repeat is a reject, unless its offset follows it",
    "schema.columns.<name>.label": "`true`: a class label, whose classes are the column's values; `numeric`: the same, "
    "text of whole numbers in their order; or a list of classes",
    "schema.columns.<name>.name": "the column's name in the dataset",
    "schema.constants": "columns with one value in every row, like `{origin: web}`: text, int64, float32 or bool",
    "schema.columns.<name>.strip": '`true`: without blanks around a text; a text: without these signs too, like `"€%"`'
    ", and around numbers without these whole words, like `kg`",
    "schema.columns.<name>.negative": "`brackets`: `(268.75)` is -268.75",
    "schema.columns.<name>.escapes": r"`\t`, `\n`, `\\` and the like mean what they do in dumps of databases",
    "schema.columns.<name>.null_values": "words that are null in this column, in quotes or not, beside those of "
    "`input.null_values`, and in all members of a nested column; like `[NA, -999]`",
    "schema.columns.<name>.true_values": "words that are true, beside `true`, like `[yes, Y]`; the column is a bool",
    "schema.columns.<name>.false_values": "words that are false, beside `false`, like `[no, N]`",
    "schema.columns.<name>.decimal": 'the sign before the fraction of numbers that are written as text, like `","`',
    "schema.columns.<name>.thousands": 'the sign between thousands of such numbers, like `"."`',
    "schema.columns.<name>.format": 'the form of dates and times, like `"%d.%m.%Y"`, or a list of forms; '
    "a cell that two of them read differently is a reject",
    "schema.columns.<name>.length": "the items of each list of the column, where all have as many: the feature has "
    "this fixed shape, and a list of another length rejects its row",
    "schema.columns.<name>.null_item": "the value in the place of nulls in the lists of the column, like `0.0`",
    "schema.columns.<name>.null": "what becomes of nulls: `{fill: VALUE}`, `mask`, `drop_row`, `error`",
    "schema.columns.<name>.file": "`path`: the column holds paths, and the feature the bytes of these files",
    "schema.columns.<name>.image": "pictures: the column holds their `bytes` (or `{bytes, path}`), in `base64`, "
    "or the `path` of each, or lists of these; the features are those of image folders, `NAME/encoded`, "
    "`NAME/format` and so on; a null is a reject unless `null` is another; `none`: `{bytes, path}` is no picture",
    "schema.box_format": "what the four numbers of a box in a column `objects` are: `xywh` (x, y, width and height) or "
    "`xyxy` (xmin, ymin, xmax and ymax)",
    "schema.boxes": "a box that goes over the edge of its picture: a reject, or it ends there "
    "([guide](guide.md#boxes))",
    "schema.classes": "columns of 0 and 1 as one list of classes, like `{classes: [cat, dog, bird]}`",
    "schema.files_root": "the folder that such paths begin in and do not leave; relative to the config; by default the "
    "table's",
    "schema.files_suffix": "what the names of such files end with, where cells leave it out, like `.jpg`",
    "schema.columns.<name>.nullable": "`false`: a null rejects its row",
    "split.fractions": "splits and their shares, like `{train: 0.9, val: 0.1}`; they add up to 1",
    "split.key": "the column whose hash decides: rows of one value stay together; without it that of the record",
    "split.by": "`exact`: fractions of the records by counts, where `hash` meets them closely",
    "split.stratify": "with `exact`: the column of whose values each is cut by itself",
    "split.folds": "so many splits of equal size, `fold_0` and on, by the hash of `key` or of the record",
    "split.of": "cut this folder alone, where the folders of the source are splits",
    "split.column": "the column whose values are the splits",
    "split.names": 'the splits of its values, like `{"0": train}`; others are rejects',
    "split.before": "the column and the day each split ends before: `{column: day, train: 2024-01-01, rest: test}`",
    "shuffle.seed": "a random order of the records of each split, the same on every machine",
    "image.resize.size": "a side in pixels, or `{width: 320, height: 240}`; `image.resize: 256` says it alone",
    "image.resize.mode": "which side it is, and what becomes of the other one: [pictures.md](pictures.md#sizes)",
    "image.resize.upscale": "`true`: smaller pictures grow",
    "image.encode.format": "`keep`: JPEG, PNG and WebP stay what they are, others that change become PNG or JPEG",
    "image.encode.quality": "of JPEG and WebP, 1 to 100",
    "image.orientation": "`apply`: pictures are turned by their EXIF orientation; `keep`: the new file states it",
    "image.color": "`rgb`: three channels; `gray`: one",
    "image.masks": "pictures whose pixels are numbers of classes: these stay what they are",
    "image.boxes_on": "the picture that boxes were drawn on: `stored`, or `turned` upright by EXIF; else as they say",
    "image.filter.min_side": "the least length of the shorter side, in pixels",
    "image.filter.max_aspect": "the most of the longer side over the shorter one",
    "image.filter.min_pixels": "the least width times height",
    "image.filter.max_pixels": "the most width times height",
    "checks.duplicates.columns": "the columns in which records are compared, as the dataset names them; none: all",
    "checks.leaks.columns": "the columns whose values, taken together, belong into one split each: a user, a place",
    "checks.duplicates.action": "count records that repeat an earlier one, or leave them out as well",
    "output.path": "the dataset's folder or URL; relative to the config",
    "output.shard_size": "the most bytes of a shard on disk; at least 64KiB",
    "output.compression": "`gzip`: smaller, and read by fewer libraries",
    "output.order": "`task`: records follow the source within each shard, and the last shards hold what tasks "
    "had left over; `source`: they follow it throughout, and some bytes are written twice",
    "output.split": "the name of the one split, where there are no others",
    "output.shard_name": "the names of shards; fields are `split`, `index`, `count`",
    "output.sidecars": "files for other libraries; `index` is for NVIDIA DALI and `tfrecord`, "
    "`croissant` for search engines, `label_map` for TensorFlow's Object Detection API",
    "output.index": "where each record begins, beside its shard: `binary` is what "
    "`dataset[i]` reads, `text` what NVIDIA DALI and `tfrecord` "
    "read, as `index` among the sidecars asks for it too; of gzip shards there is none",
    "output.if_exists": "`replace`: take the place of the dataset that is there",
    "limits.field_bytes": "a larger value rejects its row",
    "limits.record_bytes": "a larger record rejects its row",
    "limits.columns": "more columns are an error",
    "limits.pixels": "a picture with more pixels is rejected before it is decoded",
    "limits.image_bytes": "a larger image file is rejected without being read",
    "limits.batch_bytes": "a compressed record batch of Arrow that takes more when it is inflated is an error",
    "runner.workers": "how many tasks run at once; `auto`: one for each processor or slot; on Dataflow machines",
    "runner.processes": "workers are processes (`true`) or threads (`false`); `auto`: processes for large inputs",
    "runner.resume": "`false`: start over instead of resuming what a run of the same command left",
    "runner.master": "`[local]`: a Flink that is started for the run; or a cluster's `host:port`",
    "runner.worker_pool": "where a task manager asks for its Python workers",
    "runner.project": "the project id of Google Cloud",
    "runner.region": "where the job runs",
    "runner.staging": "a `gs://` folder for the job's files",
    "runner.image": "the container image of the workers, with a tag ([image.md](image.md))",
    "runner.temp": "a `gs://` folder for temporary files; by default `staging` + `/temp`",
    "runner.wait": "`false`: submit the job and return; it commits by itself",
    "runner.service_account": "the account of the workers",
}

REJECT_WORDS: Final[dict[str, tuple[str, str]]] = {
    "BAD_WIDTH": (
        "CSV: a row has more or fewer cells than the header. JSON lines: a key comes twice, or no row has it that was "
        "looked at. NumPy: an array lacks a member or has one too many. A list has not the declared `length`.",
        "Too long: quote cells that hold the delimiter. Too short: add the cells, or quote the one whose line break "
        "cuts the row. Check `--delimiter`. Declare the key, or set `schema.infer: full`. Save the same members in "
        "each file. Fix the list, or leave `length` out.",
    ),
    "BAD_TYPE": (
        "A cell is not a value of its column's type.",
        "Fix the cell, name it in `schema.columns.<name>.null_values`, or `--set schema.columns.<name>.type=string`.",
    ),
    "BAD_UTF8": (
        "Text or a file name is not UTF-8.",
        "Set `input.encoding`, declare the column `bytes`, or rename the file.",
    ),
    "INT_OVERFLOW": (
        "An integer or a time is outside the range of its type, or of int64.",
        "Declare a wider type, `string`, or a coarser `unit`.",
    ),
    "FLOAT_OVERFLOW": ("A finite float64 is outside the range of float32.", "Keep it exact: `as: bytes`."),
    "PRECISION_LOSS": (
        "A time has digits below its unit, or an integer in a column of floats has more digits than they hold.",
        "Choose a finer `unit`, or leave the type out.",
    ),
    "FLOAT_UNDERFLOW": ("A number in text would become 0.", "Declare the column `string`, or `as: bytes`."),
    "NULL_IN_LIST": (
        "A null inside a list.",
        "Name the value in its place: `schema.columns.<name>.null_item`; or drop the null.",
    ),
    "FIELD_TOO_LARGE": (
        "A value has more bytes than `limits.field_bytes` (images: `limits.image_bytes`).",
        "Raise the limit, or leave the file out.",
    ),
    "RECORD_TOO_LARGE": ("A record has more bytes than `limits.record_bytes`.", "Raise the limit, or drop columns."),
    "NOT_AN_IMAGE": (
        "A file has the content of no accepted image format.",
        "Leave it out (`input.ignore`), or name its format in `input.formats`.",
    ),
    "TRUNCATED": (
        "A file ends before its data do, or is empty and of a kind that never is (`.wav`).",
        "Copy it again, or leave it out.",
    ),
    "CORRUPT": (
        "A file or record is damaged; a line is not one JSON object.",
        "Restore it, fix the line, or leave it out.",
    ),
    "UNSUPPORTED": (
        "A picture has a coding that TensorFlow does not decode; a line has values in more than 64 levels.",
        "Convert it, for example to a baseline JPEG or a PNG; flatten the values.",
    ),
    "TOO_MANY_PIXELS": ("A picture has more pixels than `limits.pixels`.", "Raise the limit, or scale the picture."),
    "MISSING_FILE": (
        "A file was listed, and is gone; a column (`file: path`) names a file that is not there.",
        "Restore it, or run the command again; fix the path, or set `schema.files_root`.",
    ),
    "UNREADABLE": ("A file cannot be read.", "Check its permissions and its disk."),
    "NOT_A_FILE": (
        "An entry is a pipe, a socket or a device; a path in a column names one, or a folder.",
        "Remove it, or leave it out; fix the path.",
    ),
    "OUTSIDE_ROOT": (
        "A link leads out of the root folder; a path in a column does, is absolute, has `..` in it, or is a URL.",
        "Copy the file, or convert the folder it is in; write paths below `schema.files_root`.",
    ),
    "BAD_DTYPE": (
        "An array has another dtype or rank than those before it, or one without a feature.",
        "Save it with the dtype of the others.",
    ),
    "DECLARED_NOT_NULL": (
        "A null in a column that has none by declaration or by the schema; a picture outside all class folders.",
        "Fill it, or `--set schema.columns.<name>.nullable=true`; move the picture.",
    ),
    "UNKNOWN_CLASS": (
        "A value of a label is none of the classes in `schema.columns.<name>.label`, a folder of pictures is none "
        "of those in `input.labels`, an object of a picture has no class, or its number is no class of the dataset of "
        "an append.",
        "Add it to the list, fix the row, or let the classes be learned: `label: true`; leave the folder out "
        "(`input.ignore`).",
    ),
    "BAD_BOX": (
        "A box has no width or height, goes over the edge of its picture, is of a picture of another size, or has no "
        "class beside it; a segmentation or keypoints are none.",
        "Fix it, take it out, or let boxes end at the edge: `--set schema.boxes=clip`.",
    ),
    "NO_SPLIT": (
        "The column that decides the split holds null, a value that is no split, or no date.",
        "Name the value in `split.names`, fill or fix it, or leave such rows out: `--where 'fold is not None'`.",
    ),
    "BAD_QUOTE": (
        'CSV: text follows the quote that closes a value, as in `"5" pipe"`.',
        "Write each quote within the value twice. Where a backslash escapes quotes: `--set 'input.escape=\\'`. Where "
        "only blanks follow: `--set input.trim=true`.",
    ),
}

IMAGE_WORDS: Final[dict[str, str]] = {
    "image/channels": "1 to 4, as stored: 2 is gray with transparency, and a palette or 16 bits count as 1",
    "image/class/label": "the number of the class; only where folders are classes",
    "image/class/text": "the name of the class; only where folders are classes",
    "image/colorspace": "`RGB`, `L`, `CMYK` and so on",
    "image/encoded": "the bytes of the file, unchanged",
    "image/filename": "the path below the root folder",
    "image/format": "`jpeg`, `png` and so on, from the content",
    "image/height": "in pixels",
    "image/key/sha256": "the digest of the file; only with `input.sha256`",
    "image/width": "in pixels",
}
