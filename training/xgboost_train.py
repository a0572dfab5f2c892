"""Gradient-boosted trees that read handwritten digits: XGBoost, over its own collective.

    python -m training.solo training.xgboost_train --steps 40 --checkpoint-path runs/xgboost

Data: scikit-learn's 1,797 digits, which are in the image; with --data DIR, the real MNIST. Each rank holds its part of
the samples, and all ranks have the same trees: what they add up is histograms. The defaults read 96 % of the held-out
digits rightly after 40 rounds, ten seconds on two CPU cores, for nothing.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xgboost
from xgboost import collective
from xgboost.tracker import RabitTracker

from training.core.copies import CopiesRun, Files
from training.core.exits import ConfigurationError, Stopped
from training.core.meeting import meet
from training.core.peers import Alone, Peers, Value
from training.core.place import place_in
from training.core.program import start
from training.core.settings import StepSettings
from training.digit_arrays import SIDE, DigitArrays, bundled_digits, mnist_digits

CLASSES = 10
_MODEL = "model.ubj"
# Where rank 0 is met without an operator that says so; the Training Operator's own.
_MASTER_PORT = "9999"
# Rank 0's, to the end of the process: one that is given up after the loss of a peer prints a traceback.
_trackers: list[RabitTracker] = []


@dataclass(frozen=True, kw_only=True)
class Settings(StepSettings):
    """Flags of this program."""

    steps: int = 40
    """Boosting rounds of the whole run, those before a resume included; each grows a tree for every digit."""

    log_every_steps: int = 5
    """Rounds from one line of progress to the next."""

    checkpoint_every_steps: int = 20
    """Rounds from one checkpoint to the next; the last round and a stop are saved as well."""

    data: Path | None = None
    """Folder with MNIST's four idx files, plain or gzipped. None: scikit-learn's digits."""

    lr: float = 0.3
    """What each round's trees count, XGBoost's eta."""

    max_depth: int = 4
    """Of a tree."""

    max_bin: int = 16
    """Steps that a pixel's brightness is cut into, and with it the size of the histograms that travel."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_positive(("max_depth",))
        if self.max_bin < 2:
            raise ConfigurationError(f"--max-bin {self.max_bin}: must be at least 2")
        if not 0 < self.lr <= 1:
            raise ConfigurationError(f"--lr {self.lr}: must be above 0, and at most 1")

    @property
    def booster(self) -> list[tuple[str, object]]:
        """As XGBoost's parameters. None makes it draw at random, which it would not resume where a checkpoint ends."""
        return [
            ("objective", "multi:softprob"),
            ("num_class", CLASSES),
            ("eval_metric", "merror"),
            ("eval_metric", "mlogloss"),
            ("tree_method", "hist"),
            ("eta", self.lr),
            ("max_depth", self.max_depth),
            ("max_bin", self.max_bin),
        ]


class Rabit(Peers):
    """XGBoost's own collective."""

    def from_first(self, value: Value) -> Value:
        return self._from(0, value)

    def from_all(self, value: Value) -> list[Value]:
        return [self._from(rank, value) for rank in range(self.world_size)]

    def mean(self, value: float) -> float:
        total = collective.allreduce(np.array([value], dtype=np.float64), collective.Op.SUM)
        return float(total[0]) / self.world_size

    def _from(self, rank: int, value: Value) -> Value:
        box: list[Value] = collective.broadcast([value], rank)  # which takes None for nothing to send
        return box[0]


@dataclass
class Loss:
    """Of the trees so far: computed only if a line is due, by all ranks together."""

    booster: xgboost.Booster
    data: xgboost.DMatrix

    def item(self) -> float:
        return evaluate(self.booster, self.data)["mlogloss"]


def main(settings: Settings) -> None:
    train_digits, held_out_digits = mnist_digits(settings.data) if settings.data else bundled_digits()
    with processes() as peers:
        train = matrix(train_digits, peers, max_bin=settings.max_bin)
        held_out = matrix(held_out_digits, peers, max_bin=settings.max_bin, ref=train)
        booster = xgboost.Booster(settings.booster, [train, held_out])

        def restore(files: Files) -> None:
            booster.load_model(bytearray(files[_MODEL]))
            booster.set_param(settings.booster)  # of which a model file has only what prediction needs

        run = CopiesRun(
            settings,
            peers,
            samples_per_step=len(train_digits),
            parameters={"pixels": [SIDE, SIDE], "classes": [CLASSES]},
            files=lambda: {_MODEL: bytes(booster.save_raw("ubj"))},
            restore=restore,
        )
        for step in run.steps():
            booster.update(train, iteration=step - 1)
            run.log(Loss(booster, train))
        run.finish(accuracy=1 - evaluate(booster, held_out)["merror"])


@contextmanager
def processes() -> Iterator[Peers]:
    """Join the other ranks for the length of a program."""
    place = place_in(os.environ)
    if place.world_size == 1:
        yield Alone(rank=0, world_size=1)
        return

    def open_tracker(address: str) -> int:
        # By task: the ranks are the operator's, not those of arrival.
        tracker = RabitTracker(n_workers=place.world_size, host_ip=address, sortby="task")
        tracker.start()
        _trackers.append(tracker)
        return int(tracker.worker_args()["dmlc_tracker_port"])

    host, port = os.environ["MASTER_ADDR"], int(os.environ.get("MASTER_PORT", _MASTER_PORT))
    address, tracker_port = meet(host, port, rank=place.rank, world_size=place.world_size, open_server=open_tracker)
    collective.init(dmlc_tracker_uri=address, dmlc_tracker_port=tracker_port, dmlc_task_id=f"{place.rank:08d}")
    try:
        yield Rabit(rank=place.rank, world_size=place.world_size)
    except Stopped:
        _leave()
        raise
    # No leaving after any other exception: the peers may have crashed, and would be waited for.
    _leave()


def _leave() -> None:
    collective.finalize()
    for tracker in _trackers:
        tracker.wait_for()


def matrix(
    digits: DigitArrays, peers: Peers, *, max_bin: int, ref: xgboost.DMatrix | None = None
) -> xgboost.QuantileDMatrix:
    """This rank's part of the digits, cut into the same bins as everybody's."""
    part = digits[np.arange(peers.rank, len(digits), peers.world_size)]
    return xgboost.QuantileDMatrix(part.images.reshape(len(part), -1), part.labels, max_bin=max_bin, ref=ref)


def evaluate(booster: xgboost.Booster, data: xgboost.DMatrix) -> dict[str, float]:
    """The metrics over all ranks' parts, by name."""
    _, *metrics = booster.eval(data).split("\t")  # "[0]\teval-merror:0.02\teval-mlogloss:0.11"
    pairs = (metric.rpartition(":") for metric in metrics)
    return {name.removeprefix("eval-"): float(value) for name, _, value in pairs}


if __name__ == "__main__":
    start(main, Settings)
