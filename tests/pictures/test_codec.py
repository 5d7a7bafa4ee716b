"""The fast packages and Pillow give pictures alike; JPEG is made smaller while it is decoded; releases are stated."""

from __future__ import annotations

import dataclasses
from importlib.metadata import version

import numpy as np
import pytest
from PIL import Image
from shardmill.transforms.errors import UsageError
from shardmill.transforms.pictures import codec as module
from shardmill.transforms.pictures.codec import Codec

from .pictures import file_of, likeness, opened, picture, pixels_of

FAST, SLOW = Codec.installed(), Codec.installed(("pillow",))


def test_the_fast_packages_are_installed_where_tests_run() -> None:
    assert FAST.is_fast
    assert not SLOW.is_fast


@pytest.mark.parametrize("size", [(500, 375), (1600, 1200)])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_pillow_alone_gives_pictures_that_are_alike(mode: str, size: tuple[int, int]) -> None:
    data = file_of(picture(*size, mode), "JPEG", quality=92)
    found = []
    for codec in (FAST, SLOW):
        pixels = codec.decode_jpeg(data, size, (341, 256), gray=mode == "L")[0]
        file = codec.encode_jpeg(codec.resize(pixels, (341, 256)), 95)
        found.append(np.asarray(opened(file).convert("RGB")))
    assert likeness(*found) > 0.99


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_both_resize_pixels_alike_whatever_their_channels(channels: int) -> None:
    pixels = np.dstack([pixels_of(300, 200), pixels_of(300, 200)[..., :1]])[..., :channels]
    if channels in (2, 4):
        pixels[..., -1] = np.linspace(100, 255, 300).astype(np.uint8)
    fast, slow = (codec.resize(pixels, (90, 60)).astype(int) for codec in (FAST, SLOW))
    assert fast.shape == slow.shape == (60, 90, channels)
    assert np.abs(fast - slow).max() <= 8
    assert np.abs(fast - slow).mean() < 1


def test_both_resize_16_bits_without_loss_of_range() -> None:
    pixels = np.tile(np.linspace(0, 65535, 400).astype(np.uint16), (300, 1))[..., None]
    fast, slow = (codec.resize(pixels, (100, 75)).astype(int) for codec in (FAST, SLOW))
    assert fast.min() < 300
    assert fast.max() > 65200
    assert np.abs(fast - slow).max() <= 40


@pytest.mark.parametrize("codec", [FAST, SLOW], ids=["fast", "pillow"])
@pytest.mark.parametrize(
    ("at_least", "found"),
    [((1000, 800), (1000, 800)), ((501, 400), (1000, 800)), ((500, 400), (500, 400)), ((124, 100), (125, 100)),
     ((126, 100), (250, 200)), ((10, 10), (125, 100))],
)  # fmt: skip
def test_a_jpeg_is_decoded_at_the_least_of_its_scales_that_covers_the_target(
    codec: Codec, at_least: tuple[int, int], found: tuple[int, int]
) -> None:
    data = file_of(picture(1000, 800), "JPEG")
    assert codec.decode_jpeg(data, (1000, 800), at_least, gray=False)[0].shape == (found[1], found[0], 3)


@pytest.mark.parametrize("codec", [FAST, SLOW], ids=["fast", "pillow"])
def test_a_smaller_picture_is_antialiased(codec: Codec) -> None:
    lines = np.zeros((256, 256, 3), np.uint8)
    lines[:, ::2] = 255
    small = codec.resize(lines, (64, 64))
    assert np.abs(small[8:-8, 8:-8].astype(int) - 128).max() <= 2


def test_a_codec_states_its_packages_and_their_releases() -> None:
    stated = FAST.to_json()
    names = stated["codec"].split(", ")
    assert names == ["simplejpeg", "cykooz-resizer", "pillow"]
    assert stated["version"].split(", ") == [version(name) for name in names]


def test_a_worker_with_another_release_is_refused() -> None:
    other = dataclasses.replace(FAST, releases=(("simplejpeg", "0.1"), *FAST.releases[1:]))
    FAST.check()
    with pytest.raises(UsageError, match=r"^a worker has simplejpeg .*, and the run was planned with simplejpeg 0\.1,"):
        other.check()


@pytest.mark.parametrize("size", [(40, 30), (40, 301), (203, 33), (300, 400), (17, 500), (203, 300)])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_strips_give_the_pixels_of_a_picture_that_is_resized_at_once(
    channels: int, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (301, 203, channels)).astype(np.uint8)
    whole = FAST.resize(pixels, size)
    monkeypatch.setattr(module, "_LARGE", 1000)
    monkeypatch.setattr(module, "_STRIP_BYTES", 20_000)
    np.testing.assert_array_equal(FAST.resize(pixels, size), whole)


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
def test_rows_of_a_large_picture_are_converted_some_at_a_time(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (301, 203, 4)).astype(np.uint8))
    whole = module.converted(image, mode)
    monkeypatch.setattr(module, "_LARGE", 1000)
    monkeypatch.setattr(module, "_STRIP_BYTES", 20_000)
    np.testing.assert_array_equal(module.converted(image, mode), whole)
