"""Where charts and images really come from, once `mirrors:` has had its say."""

from dataclasses import dataclass

from infra.config.platform import Mirrors
from infra.versions import Chart


@dataclass(frozen=True, kw_only=True)
class ChartSource:
    """What Helm is told: a path, an OCI reference, or a name and its repository."""

    chart: str
    repository: str | None = None
    version: str | None = None


def mirrored_image(image: str, mirrors: Mirrors) -> str:
    """The image, or its mirror: the longest key of `mirrors.images` that is the image or a leading part of it.

    A part ends where `/`, `:` or `@` follows, so that `docker.io/library` leaves `docker.io/librarything` alone.
    """
    parts = [key for key in mirrors.images if image == key or image.startswith((f"{key}/", f"{key}:", f"{key}@"))]
    if not parts:
        return image
    longest = max(parts, key=len)
    return mirrors.images[longest] + image.removeprefix(longest)


def chart_source(chart: Chart, mirrors: Mirrors) -> ChartSource:
    """The chart's source: its own repository, or the repository or local folder that `mirrors.charts` names for it."""
    origin = mirrors.charts.get(chart.name, chart.repository)
    if origin.startswith("oci://"):
        return ChartSource(chart=f"{origin}/{chart.name}", version=chart.version)
    if origin.startswith(("https://", "http://")):
        return ChartSource(chart=chart.name, repository=origin, version=chart.version)
    return ChartSource(chart=origin)
