"""Draws a run's loss from its metrics.jsonl."""

import json
from pathlib import Path


def draw_loss_curve(metrics: Path, picture: Path, *, title: str) -> bool:
    """Writes the PNG; False when there is no loss to draw yet."""
    points = [(record["step"], record["loss"]) for record in _records(metrics) if record.get("loss") is not None]
    if not points:
        return False
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    steps, losses = zip(*points, strict=True)
    figure, axes = pyplot.subplots(figsize=(8, 4.5), dpi=120, layout="constrained")
    axes.plot(steps, losses, color="#2f6fb3", linewidth=1.6)
    axes.set(title=f"{title}: loss {losses[-1]:.4f} at step {steps[-1]}", xlabel="step", ylabel="loss")
    axes.set_ylim(bottom=0)
    axes.margins(x=0.01)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture)
    pyplot.close(figure)
    return True


def _records(metrics: Path) -> list[dict[str, float | None]]:
    """Complete lines only: a killed run may leave half of one."""
    records = []
    for line in metrics.read_text().splitlines():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return records
