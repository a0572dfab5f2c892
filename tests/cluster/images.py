"""Images that the cluster needs and no registry here has, made under the names that charts and Dockerfiles ask for.

A Debian with Python stands in for `python:3.11-slim`; an operator's image is that plus the command built from its
module. Each is tagged in the registry of this machine with the name that `mirrors.images` maps it to, and a label
holds the hash of what it was made from.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from infra.versions import (
    ETCD_IMAGE,
    JOBSET_IMAGE,
    MPI_OPERATOR_IMAGE,
    TRAINER_IMAGE,
    TRAINING_OPERATOR_IMAGE,
    TRAINING_OPERATOR_INIT_IMAGE,
    VOLCANO_IMAGES,
)
from tests.cluster.paths import CACHE
from tests.cluster.registry import PAUSE_IMAGE, has_image, mirrored
from tests.cluster.toolchain import BuildFailed, built

PYTHON_IMAGE = mirrored("docker.io/library/python:3.11-slim")
_VOLCANO_TAG = "v1.10.0"
# The shell with which Volcano's admission job runs its script, and what the script calls.
_DEBIAN_PACKAGES = "bash,ca-certificates,openssl,python3,python3-pip"
_SUITE = "bookworm"


@dataclass(frozen=True, kw_only=True)
class Image:
    reference: str
    dockerfile: str
    files: tuple[Path, ...] = ()
    """Copied into the build's context, under their own names."""

    @property
    def digest(self) -> str:
        """Of everything it is made from."""
        parts = [self.dockerfile.encode(), *(hashlib.sha256(path.read_bytes()).digest() for path in self.files)]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def make_images() -> None:
    """Makes and pushes what the registry does not have yet."""
    if not _is_current(_PYTHON):
        _say("making a Debian with Python")
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            _build(_PYTHON, _debian(Path(folder)))
    for image in _images():
        if not _is_current(image):
            with tempfile.TemporaryDirectory(dir=CACHE) as folder:
                for file in image.files:
                    os.link(file, Path(folder) / file.name)
                _build(image, Path(folder))


def buildah_settings() -> dict[str, str]:
    """Variables with which buildah works on a machine without any engine; its storage is a folder of the cache."""
    CACHE.mkdir(parents=True, exist_ok=True)
    config = CACHE / "storage.conf"
    folders = f'graphroot = "{CACHE / "buildah"}"\nrunroot = "{CACHE / "buildah-run"}"\n'
    config.write_text(f'[storage]\ndriver = "overlay"\n{folders}')
    return {"CONTAINERS_STORAGE_CONF": str(config), "BUILDAH_ISOLATION": "chroot"}


def buildah_environment() -> dict[str, str]:
    return {**os.environ, **buildah_settings()}


def certificate_options() -> list[str]:
    """Build options for a network with certificates of its own: a RUN trusts what this machine trusts."""
    trusted = Path("/etc/ssl/certs/ca-certificates.crt")
    if not trusted.exists():
        return []
    pip = CACHE / "pip.conf"
    pip.write_text(f"[global]\ncert = {trusted}\n")
    return ["--volume", f"{trusted.parent}:{trusted.parent}:ro", "--volume", f"{pip}:/etc/pip.conf:ro"]


_PYTHON = Image(
    reference=PYTHON_IMAGE,
    # What differs between Debian's Python and the image's: the command's name, and that pip may install.
    dockerfile=f"""\
FROM scratch
ADD rootfs.tar /
RUN ln -s python3 /usr/bin/python && rm /usr/lib/python3.*/EXTERNALLY-MANAGED
LABEL org.opencontainers.image.description="Debian {_SUITE} with {_DEBIAN_PACKAGES}"
CMD ["python3"]
""",
)
# By its contents: with another base, the images on it are others too.
_BASE = f"{PYTHON_IMAGE}-{_PYTHON.digest}"


def _images() -> list[Image]:
    volcano = built("volcano")
    return [
        Image(reference=PAUSE_IMAGE, dockerfile=f'FROM {_BASE}\nENTRYPOINT ["sleep", "infinity"]\n'),
        # The Training Operator's workers wait in it, with `nslookup`.
        Image(
            reference=mirrored(TRAINING_OPERATOR_INIT_IMAGE),
            dockerfile=f"FROM {_BASE}\n"
            "RUN printf '#!/bin/sh\\nexec getent hosts \"$1\"\\n' > /usr/bin/nslookup && chmod +x /usr/bin/nslookup\n",
        ),
        _operator(mirrored(TRAINING_OPERATOR_IMAGE), "training-operator", "training-operator.v1", "/manager"),
        _operator(mirrored(MPI_OPERATOR_IMAGE), "mpi-operator", "mpi-operator", "/opt/mpi-operator"),
        # The module's last word that is no version names the command.
        _operator(mirrored(ETCD_IMAGE), "etcd", "server", "/usr/local/bin/etcd"),
        _operator(mirrored(JOBSET_IMAGE), "jobset", "jobset", "/manager"),
        _operator(mirrored(TRAINER_IMAGE), "trainer", "trainer-controller-manager", "/manager"),
        _volcano("vc-scheduler", "scheduler"),
        _volcano("vc-controller-manager", "controller-manager"),
        Image(
            reference=mirrored(f"{VOLCANO_IMAGES}/vc-webhook-manager:{_VOLCANO_TAG}"),
            # The script has #!/bin/sh and is written for bash.
            dockerfile=f"FROM {_BASE}\nRUN ln -sf bash /bin/sh\n"
            "COPY kubectl /usr/local/bin/\nCOPY webhook-manager /vc-webhook-manager\n"
            'COPY gen-admission-secret.sh /\nENTRYPOINT ["/vc-webhook-manager"]\n',
            files=(
                volcano / "bin" / "webhook-manager",
                volcano / "scripts" / "gen-admission-secret.sh",
                built("kubernetes") / "bin" / "kubectl",
            ),
        ),
    ]


def _operator(reference: str, tool: str, command: str, path: str) -> Image:
    dockerfile = f'FROM {_BASE}\nCOPY {command} {path}\nENTRYPOINT ["{path}"]\n'
    return Image(reference=reference, dockerfile=dockerfile, files=(built(tool) / "bin" / command,))


def _volcano(name: str, command: str) -> Image:
    return _operator(mirrored(f"{VOLCANO_IMAGES}/{name}:{_VOLCANO_TAG}"), "volcano", command, f"/{name}")


def _debian(folder: Path) -> Path:
    """A root file system as one archive; gives the build's context."""
    root = folder / "rootfs"
    _run("debootstrap", "--variant=minbase", f"--include={_DEBIAN_PACKAGES}", _SUITE, str(root), _debian_mirror())
    shutil.rmtree(root / "var" / "cache" / "apt")
    shutil.rmtree(root / "var" / "lib" / "apt" / "lists")
    _run("tar", "--create", "--file", str(folder / "rootfs.tar"), "--directory", str(root), "--exclude=./dev/*", ".")
    shutil.rmtree(root)
    return folder


def _debian_mirror() -> str:
    """Where this machine's own packages come from."""
    lines = _run("apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)", "Created-By: Packages").splitlines()
    mirrors = [uri for release, uri in (line.split() for line in lines) if release == _SUITE]
    if not mirrors:
        raise BuildFailed(f"apt knows no mirror of Debian {_SUITE}, the images' base; if it should: apt-get update")
    return mirrors[0]


def _build(image: Image, context: Path) -> None:
    started = time.monotonic()
    dockerfile = context / "Dockerfile"
    dockerfile.write_text(image.dockerfile)
    tag = f"{image.reference}-{image.digest}"
    _buildah("build", "--tls-verify=false", "--file", str(dockerfile), "--tag", tag, str(context))
    compression = ["--compression-format", "zstd", "--compression-level", "1"]
    for reference in (image.reference, tag):
        _buildah("push", "--tls-verify=false", *compression, tag, f"docker://{reference}")
    _say(f"made {image.reference} in {time.monotonic() - started:.0f} s")


def _is_current(image: Image) -> bool:
    return has_image(f"{image.reference}-{image.digest}") and has_image(image.reference)


def _buildah(*arguments: str) -> None:
    _run("buildah", *arguments, environment=buildah_environment())


def _run(*command: str, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise BuildFailed(f"{' '.join(command[:6])} … fails:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
