"""The digest of an image's sources: what changes it, and what does not."""

import shutil
from pathlib import Path

import pytest

from workloads import image_sources
from workloads.image_sources import dockerfile_of, image_names, source_digest, source_files
from workloads.programs import TRAINING

DOCKERFILE = """\
ARG BASE=docker.io/library/python:3.11-slim
FROM ${BASE}
COPY training/requirements/small.txt \\
    /tmp/small.txt
COPY --from=other training/elsewhere.py training/
COPY --chown=1000:1000 training/*.py training/
COPY training/core/ training/core/
"""
FILES = {
    ".dockerignore": "# reason\n*\n!training\ntraining/images\n**/__pycache__\n",
    "training/images/small/Dockerfile": DOCKERFILE,
    "training/requirements/small.txt": "numpy==2.4.6\n",
    "training/mnist.py": "print(1)\n",
    "training/elsewhere.py": "print(2)\n",
    "training/core/deep/state.py": "print(3)\n",
}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one small image, in place of ours."""
    for name, text in FILES.items():
        write(tmp_path / "one" / name, text)
    use(tmp_path / "one", monkeypatch)
    return tmp_path / "one"


def use(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_sources, "PROJECT", folder)
    monkeypatch.setattr(image_sources, "IMAGES", folder / "training" / "images")
    monkeypatch.setattr(image_sources, "_IGNORED", folder / ".dockerignore")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def digest() -> str:
    return source_digest.__wrapped__("small")


def test_the_sources_are_the_dockerfile_and_what_it_copies(checkout: Path) -> None:
    assert [path.relative_to(checkout).as_posix() for path in source_files("small")] == [
        "training/core/deep/state.py",
        "training/elsewhere.py",
        "training/images/small/Dockerfile",
        "training/mnist.py",
        "training/requirements/small.txt",
    ]


def test_another_checkout_with_equal_files_has_the_same_digest(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = digest()
    assert len(before) == 12
    assert int(before, 16) >= 0
    shutil.copytree(checkout, tmp_path / "two", copy_function=shutil.copy)  # other times of modification
    use(tmp_path / "two", monkeypatch)
    assert digest() == before


@pytest.mark.parametrize(
    "name",
    ["training/mnist.py", "training/core/deep/state.py", "training/core/new.py", "training/images/small/Dockerfile"],
)
def test_an_edit_of_a_source_is_another_digest(checkout: Path, name: str) -> None:
    before = digest()
    with (checkout / name).open("a") as file:
        file.write("# edited\n")
    assert digest() != before


def test_a_renamed_source_is_another_digest(checkout: Path) -> None:
    before = digest()
    (checkout / "training/mnist.py").rename(checkout / "training/mnist2.py")  # the order stays
    assert digest() != before


@pytest.mark.parametrize(
    "name",
    [
        "training/__pycache__/mnist.cpython-311.pyc",
        "training/core/deep/__pycache__/state.cpython-311.pyc",
        "training/requirements/large.txt",
        "training/images/large/Dockerfile",
        "training/README.md",
        "workloads/cli.py",
    ],
)
def test_what_does_not_go_into_the_image_does_not_change_its_digest(checkout: Path, name: str) -> None:
    before = digest()
    write(checkout / name, "anything\n")
    assert digest() == before


def test_a_later_pattern_lets_in_again_what_an_earlier_one_keeps_out(checkout: Path) -> None:
    before = digest()
    write(checkout / ".dockerignore", FILES[".dockerignore"] + "training/core/**/*.py\n")
    without = digest()
    assert without != before
    write(checkout / ".dockerignore", FILES[".dockerignore"] + "training/core/**/*.py\n!training/core/deep\n")
    assert digest() == before


def test_the_training_image_holds_every_module_of_training() -> None:
    modules = {path for path in TRAINING.rglob("*.py") if path.relative_to(TRAINING).parts[0] != "images"}
    assert modules <= set(source_files("training"))


@pytest.mark.parametrize("image", image_names())
def test_every_file_that_an_image_copies_is_there(image: str) -> None:
    copied = list(image_sources._copied(image))
    assert any(source.startswith("training/requirements/") for source in copied)
    assert [source for source in copied if not list(image_sources._files(source))] == []


@pytest.mark.parametrize("image", image_names())
def test_every_image_takes_its_base_as_an_argument_by_its_full_name(image: str) -> None:
    """A short name means another registry to each tool, and `mirrors.images` maps full ones."""
    assert image_sources.base_of(image).partition("/")[0] in {"docker.io", "nvcr.io", "public.ecr.aws"}
    assert "FROM ${BASE}" in dockerfile_of(image).read_text()


@pytest.mark.parametrize(
    ("image", "below", "first_own"),
    [
        ("mpi", "training", "WORKDIR"),
        ("deepspeed", "mpi", "COPY training/*.py"),
    ],
)
def test_an_image_shares_the_layers_of_the_one_below_it(image: str, below: str, first_own: str) -> None:
    """A build reuses a layer only where every instruction before it is the same, to the letter."""
    shared = dockerfile_of(below).read_text().partition("ARG BASE=")[2].partition(first_own)[0]
    assert "pip install" in shared
    assert dockerfile_of(image).read_text().partition("ARG BASE=")[2].startswith(shared)


@pytest.mark.parametrize("image", image_names())
def test_the_libraries_of_an_image_have_a_file_of_its_name_or_are_the_cores(image: str) -> None:
    assert image_sources.requirements_of(image) in {image, "training"}
