"""MNIST's idx files, and the digits that stand in for them."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from training.core.exits import ConfigurationError
from training.digits import bundled_digits, mnist_digits

NAMES = [f"{part}-{kind}" for part in ("train", "t10k") for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")]


def idx(array: np.ndarray) -> bytes:
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for part, count in (("train", 6), ("t10k", 3)):
        images = np.arange(count * 28 * 28).reshape(count, 28, 28) % 251
        (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(idx(images))
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(idx(np.arange(count) % 10))
    return tmp_path


@pytest.mark.parametrize("gzipped", [False, True])
def test_idx_files_are_read_plain_and_gzipped(folder: Path, gzipped: bool) -> None:
    if gzipped:
        for name in NAMES:
            (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
            (folder / name).unlink()
    train, held_out = mnist_digits(folder)
    assert (len(train), len(held_out)) == (6, 3)
    assert train.images[1].flatten().tolist() == [value % 251 for value in range(784, 1568)]
    assert train.labels.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (NAMES[0], None, "there is no train-images-idx3-ubyte, nor train-images-idx3-ubyte.gz"),
        (NAMES[0], b"<html>404 not found</html>", "is not an idx file of bytes in 3 dimensions"),
        (NAMES[0], idx(np.zeros((6, 28, 28)))[:-5], "holds 4699 bytes of data, and its header says 4704"),
        (NAMES[0], idx(np.zeros((6, 20, 20))), r"images are \(20, 20\), not 28"),
        (NAMES[1], idx(np.zeros(5)), "6 images and 5 labels"),
        (NAMES[1], idx(np.full(6, 12)), "a label 12"),
        (f"{NAMES[2]}.gz", b"not gzip", "cannot read"),
    ],
)
def test_a_wrong_file_is_named(folder: Path, name: str, content: bytes | None, message: str) -> None:
    (folder / name.removesuffix(".gz")).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(ConfigurationError, match=message) as refused:
        mnist_digits(folder)
    assert str(folder) in str(refused.value)


def test_the_bundled_digits_are_images_of_all_ten() -> None:
    train, held_out = bundled_digits()
    assert len(train) + len(held_out) == 1797
    assert train.images.shape[1:] == (28, 28)
    assert set(held_out.labels.tolist()) == set(range(10))
    assert 240 < train.images.max() <= 255
    # Held out: no image may be in both.
    assert not {image.numpy().tobytes() for image in held_out.images} & {i.numpy().tobytes() for i in train.images}
