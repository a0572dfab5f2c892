"""A cluster without the internet gets every chart and image from where `mirrors:` says."""

import pytest

from infra.config.platform import Mirrors
from infra.kubernetes.mirrors import ChartSource, chart_source, mirrored_image
from infra.versions import NEURON, TRAINING_OPERATOR_IMAGE, volcano_chart

VOLCANO = volcano_chart("1.13.0")


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("docker.io/kubeflow/training-operator:v1", "hub.corp/kubeflow/training-operator:v1"),
        ("docker.io/volcanosh", "volcano.corp"),
        ("docker.io/volcanosh/vc-scheduler:v1", "volcano.corp/vc-scheduler:v1"),
        ("docker.io/library/alpine:3.10", "corp/alpine@sha256:abc"),
        ("docker.io/library/alpine:3.100", "hub.corp/library/alpine:3.100"),
        ("docker.iou/x", "docker.iou/x"),
        ("nvcr.io/nvidia/k8s-device-plugin", "nvcr.io/nvidia/k8s-device-plugin"),
    ],
)
def test_the_longest_key_that_ends_at_a_boundary_of_the_image_replaces_it(image: str, expected: str) -> None:
    mirrors = Mirrors(
        images={
            "docker.io": "hub.corp",
            "docker.io/volcanosh": "volcano.corp",
            "docker.io/library/alpine:3.10": "corp/alpine@sha256:abc",
        }
    )
    assert mirrored_image(image, mirrors) == expected


def test_an_image_without_a_mirror_names_its_registry_so_that_one_can_be_given() -> None:
    assert TRAINING_OPERATOR_IMAGE.startswith("docker.io/")


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("https://charts.corp", ChartSource(chart="volcano", repository="https://charts.corp", version="1.13.0")),
        ("oci://registry.corp/charts", ChartSource(chart="oci://registry.corp/charts/volcano", version="1.13.0")),
        ("./vendor/volcano", ChartSource(chart="./vendor/volcano")),
    ],
)
def test_a_chart_comes_from_a_repository_a_registry_or_a_folder(origin: str, expected: ChartSource) -> None:
    assert chart_source(VOLCANO, Mirrors(charts={"volcano": origin})) == expected


def test_a_chart_without_a_mirror_comes_from_its_own_repository() -> None:
    assert chart_source(VOLCANO, Mirrors()).repository == "https://volcano-sh.github.io/helm-charts"
    assert chart_source(NEURON, Mirrors()).chart == "oci://public.ecr.aws/neuron/neuron-helm-chart"
