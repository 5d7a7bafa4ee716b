from __future__ import annotations

import pickle

from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from shardmill.pipelines.engines.beam_options import ParsedOptions

FLAGS = ["--direct_num_workers=3", "--direct_running_mode=multi_threading", "--experiments=a"]


def test_a_view_is_made_once() -> None:
    options = ParsedOptions(FLAGS)
    assert options.view_as(DirectOptions) is options.view_as(DirectOptions)


def test_all_options_are_those_that_beam_parses() -> None:
    options = ParsedOptions(FLAGS)
    options.view_as(StandardOptions)
    assert options.get_all_options() == PipelineOptions(FLAGS).get_all_options()
    assert options.display_data() == PipelineOptions(FLAGS).display_data()


def test_what_is_set_in_a_view_is_seen_in_those_that_were_made_before_and_after() -> None:
    options = ParsedOptions(FLAGS)
    before = options.view_as(DirectOptions)
    options.view_as(DirectOptions).direct_num_workers = 7
    options.view_as(StandardOptions).streaming = True
    assert before.direct_num_workers == options.view_as(DirectOptions).direct_num_workers == 7
    assert options.view_as(StandardOptions).view_as(StandardOptions).streaming


def test_pickled_options_are_equal_and_carry_no_view() -> None:
    options = ParsedOptions(FLAGS)
    options.view_as(DirectOptions)
    loaded = pickle.loads(pickle.dumps(options))
    assert "_views" not in vars(loaded)
    assert loaded.get_all_options() == options.get_all_options()
    assert loaded.view_as(DirectOptions).direct_num_workers == 3
