"""The network of training.mnist on Paddle: it reads handwritten digits, and is trained with paddle.DataParallel on CPU.

    python -m training.solo training.paddle_mnist --steps 300 --checkpoint-path runs/paddle

Data: scikit-learn's 1,797 digits, enlarged to MNIST's 28 × 28, which are in the image; with --data DIR, the real MNIST.
The defaults read 97 % of the held-out images rightly after 300 steps, half a minute on two CPU cores, for nothing.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import paddle.distributed as dist
from paddle import nn
from paddle.distributed.fleet.utils.hybrid_parallel_util import fused_allreduce_gradients
from paddle.nn import functional

from training.core.copies import CopiesRun, Files
from training.core.exits import Stopped
from training.core.meeting import free_port, meet
from training.core.order import SampleOrder, plan_batches
from training.core.peers import Alone, Peers, Value
from training.core.place import PADDLE, place_in
from training.core.program import start
from training.core.settings import RunSettings
from training.core.signals import end_at_once
from training.digit_arrays import DEVIATION, MEAN, SIDE, DigitArrays, bundled_digits, mnist_digits

_MODEL, _OPTIMIZER = "model.pdparams", "optimizer.pdopt"


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


class ConvNet(nn.Layer):
    """Two convolutions and a linear layer."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2D(1, channels, kernel_size=3, stride=2, padding=1)
        self.conv2 = nn.Conv2D(channels, 2 * channels, kernel_size=3, stride=2, padding=1)
        self.classifier = nn.Linear(2 * channels * (SIDE // 4) ** 2, 10)

    def forward(self, images: paddle.Tensor) -> paddle.Tensor:
        x = (images.unsqueeze(1).astype("float32") / 255 - MEAN) / DEVIATION
        x = functional.relu(self.conv1(x))
        x = functional.relu(self.conv2(x))
        return self.classifier(x.flatten(1))


class Gloo(Peers):
    """Paddle's own processes, over gloo."""

    def from_first(self, value: Value) -> Value:
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def from_all(self, value: Value) -> list[Value]:
        values: list[Value] = []
        dist.all_gather_object(values, value)
        return values

    def mean(self, value: float) -> float:
        total = paddle.to_tensor([value], dtype="float64")
        dist.all_reduce(total)
        return float(total.numpy().item()) / self.world_size


def main(settings: Settings) -> None:
    # Its import takes SIGTERM for itself, and would end with a C++ traceback.
    paddle.disable_signal_handler()
    end_at_once()
    train, held_out = mnist_digits(settings.data) if settings.data else bundled_digits()
    with processes() as peers:
        plan = plan_batches(
            global_batch=settings.global_batch, micro_batch=settings.micro_batch, world_size=peers.world_size
        )
        order = SampleOrder(len(train), seed=settings.seed)

        paddle.seed(settings.seed)
        network = ConvNet(settings.channels)
        model = paddle.DataParallel(network) if peers.world_size > 1 else network
        optimizer = paddle.optimizer.AdamW(settings.lr, parameters=network.parameters())

        def restore(files: Files) -> None:
            network.set_state_dict(paddle.load(io.BytesIO(files[_MODEL])))
            optimizer.set_state_dict(paddle.load(io.BytesIO(files[_OPTIMIZER])))

        run = CopiesRun(
            settings,
            peers,
            samples_per_step=settings.global_batch,
            parameters={name: list(weights.shape) for name, weights in network.named_parameters()},
            files=lambda: {_MODEL: saved(network.state_dict()), _OPTIMIZER: saved(optimizer.state_dict())},
            restore=restore,
        )
        for _ in run.steps():
            share = order.take(run.samples + peers.rank * plan.per_rank, plan.per_rank)
            step_loss = paddle.zeros([])
            with model.no_sync() if peers.world_size > 1 else nullcontext():
                for samples in np.split(share, plan.num_micro_batches):
                    batch = train[samples]
                    logits = model(paddle.to_tensor(batch.images))
                    loss = functional.cross_entropy(logits, paddle.to_tensor(batch.labels)) / plan.num_micro_batches
                    loss.backward()
                    step_loss += loss.detach()
            if peers.world_size > 1:
                # Once a step, and not from within backward(), which aborts the process when a peer is lost.
                fused_allreduce_gradients(network.parameters(), None)
            optimizer.step()
            optimizer.clear_grad()
            run.log(step_loss)
        run.finish(accuracy=accuracy(network, held_out, peers))


@contextmanager
def processes() -> Iterator[Peers]:
    """Join the other ranks for the length of a program."""
    paddle.set_device("cpu")
    place = place_in(os.environ, PADDLE)
    if place.world_size == 1:
        yield Alone(rank=0, world_size=1)
        return
    host, _, port = os.environ[PADDLE.master].rpartition(":")
    address, store_port = meet(
        host, int(port), rank=place.rank, world_size=place.world_size, open_server=lambda _: free_port()
    )
    # What paddle.distributed.launch would set for one process per pod.
    os.environ |= {
        "PADDLE_DISTRI_BACKEND": "gloo",
        "PADDLE_TRAINER_ID": str(place.rank),
        "PADDLE_TRAINERS_NUM": str(place.world_size),
        "PADDLE_CURRENT_ENDPOINT": f"{address}:{store_port}",
        PADDLE.master: f"{address}:{store_port}",
    }
    dist.init_parallel_env()
    try:
        yield Gloo(rank=place.rank, world_size=place.world_size)
    except Stopped:
        dist.barrier()
        raise
    # No waiting for the others after any other exception: they may have crashed.
    dist.barrier()  # rank 0 holds the store that the others still use


def saved(state: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    paddle.save(state, file)
    return file.getvalue()


@paddle.no_grad()
def accuracy(network: ConvNet, held_out: DigitArrays, peers: Peers) -> float:
    """The share of the held-out images that the model reads rightly; each rank reads its part of them."""
    part = held_out[np.arange(peers.rank, len(held_out), peers.world_size)]
    read = network(paddle.to_tensor(part.images)).argmax(1).numpy()
    return sum(peers.from_all(int((read == part.labels).sum()))) / len(held_out)


if __name__ == "__main__":
    start(main, Settings)
