"""A small convolutional network that reads handwritten digits, trained with TensorFlow's MultiWorkerMirroredStrategy.

The network, the digits and the flags are those of training.mnist: scikit-learn's 1,797 digits, enlarged to MNIST's
28 × 28, which are in the image; with --data DIR, the real MNIST. The defaults read 98 % of the held-out images rightly
after 300 steps, a minute on two CPU cores, most of which TensorFlow takes to start.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from training.core.program import start
from training.core.settings import RunSettings
from training.core.tf_loop import Run
from training.core.tf_workers import Workers, workers
from training.digit_arrays import DEVIATION, MEAN, SIDE, DigitArrays, bundled_digits, mnist_digits


@dataclass(frozen=True, kw_only=True)
class Settings(RunSettings):
    """Flags of this program."""

    steps: int = 300
    """Optimizer steps of the whole run, those before a resume included."""

    checkpoint_every_steps: int = 100
    """Steps from one checkpoint to the next; the last step and a stop are saved as well."""

    data: Path | None = None
    """Folder with MNIST's four idx files, plain or gzipped. None: scikit-learn's digits."""

    channels: int = 16
    """Width of the first convolution; the second has twice as many."""

    lr: float = 3e-3
    """Learning rate of AdamW."""


def conv_net(channels: int) -> Any:
    """Two convolutions and a linear layer."""
    return keras.Sequential(
        [
            keras.Input((SIDE, SIDE)),
            keras.layers.Rescaling(1 / 255 / DEVIATION, offset=-MEAN / DEVIATION),
            keras.layers.Reshape((SIDE, SIDE, 1)),
            keras.layers.Conv2D(channels, 3, strides=2, padding="same", activation="relu"),
            keras.layers.Conv2D(2 * channels, 3, strides=2, padding="same", activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(10),
        ]
    )


def loss_of_samples(model: Any, images: Any, labels: Any) -> Any:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images, training=True))


def main(settings: Settings) -> None:
    train, held_out = mnist_digits(settings.data) if settings.data else bundled_digits()
    team = workers()
    keras.utils.set_random_seed(settings.seed)
    with team.strategy.scope():
        model = conv_net(settings.channels)
        optimizer = keras.optimizers.AdamW(settings.lr, weight_decay=0.01)
    run = Run(settings, team, model=model, optimizer=optimizer)
    run.train(partial(loss_of_samples, model), train.images.astype(np.float32), train.labels)
    run.finish(accuracy=accuracy(model, held_out, team))


def accuracy(model: Any, held_out: DigitArrays, team: Workers) -> float:
    """The share of the held-out images that the model reads rightly; each worker reads its part of them."""
    part = held_out[np.arange(team.rank, len(held_out), team.world_size)]
    read = model(part.images.astype(np.float32)).numpy().argmax(axis=1)
    return sum(team.from_all(int((read == part.labels).sum()))) / len(held_out)


if __name__ == "__main__":
    start(main, Settings)
