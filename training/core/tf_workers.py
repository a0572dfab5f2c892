"""The workers of a TensorFlow run: MultiWorkerMirroredStrategy, and how its processes agree on things.

TF_CONFIG says who they are, as the Training Operator sets it; without it, this process is alone. Worker 0 is the
strategy's chief. All GPUs of a pod are replicas of its one process.
"""

import io
import json
import os
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from training.core.exits import ConfigurationError
from training.core.peers import Peers, Value
from training.core.signals import ending_at_once

_EXAMPLE = '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": {"type": "worker", "index": 0}}'


@dataclass(frozen=True, kw_only=True)
class Workers(Peers):
    """This process and its peers, by the strategy's collective operations."""

    strategy: Any
    average: Any
    """Of every replica's number; made once, for TensorFlow to compile it once."""

    @property
    def num_local_replicas(self) -> int:
        return int(self.strategy.num_replicas_in_sync) // self.world_size

    def from_first(self, value: Value) -> Value:
        """Rank 0's value, on every rank."""
        return self.from_all(value)[0]

    def from_all(self, value: Value) -> list[Value]:
        """Every rank's value, by rank, on every rank."""
        # A number for each byte: collective operations know no smaller type.
        mine = np.frombuffer(pickle.dumps(value), np.uint8).astype(np.int32)

        def part(context: Any) -> Any:
            """A worker speaks by its first replica."""
            return tf.constant(mine if context.replica_id_in_sync_group % self.num_local_replicas == 0 else mine[:0])

        parts = self.strategy.experimental_distribute_values_from_function(part)
        everything = io.BytesIO(self.strategy.gather(parts, axis=0).numpy().astype(np.uint8).tobytes())
        return [pickle.load(everything) for _ in range(self.world_size)]

    def mean(self, value: float) -> float:
        """The mean over all ranks, on every rank."""
        average = self.average(tf.constant(value, tf.float64))
        return float(self.strategy.experimental_local_results(average)[0])


def workers() -> Workers:
    """Join the cluster that TF_CONFIG describes; returns when all of it is there."""
    rank, world_size = place_in(os.environ.get("TF_CONFIG"))
    tf.get_logger().setLevel("ERROR")
    tf.config.experimental.enable_op_determinism()
    if threads := os.environ.get("OMP_NUM_THREADS"):  # this process's share of the node, of which TensorFlow takes all
        tf.config.threading.set_intra_op_parallelism_threads(int(threads))
    with ending_at_once():
        strategy = tf.distribute.MultiWorkerMirroredStrategy()

    def average(value: Any) -> Any:
        on_device = tf.identity(value)  # an argument is on none, and cannot be reduced
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, on_device)

    compiled = tf.function(lambda value: strategy.run(average, args=(value,)))
    return Workers(rank=rank, world_size=world_size, strategy=strategy, average=compiled)


def place_in(tf_config: str | None) -> tuple[int, int]:
    """Rank and number of the workers."""
    if not tf_config:
        return 0, 1
    try:
        config = json.loads(tf_config)
        roles, role = list(config["cluster"]), config["task"]["type"]
        rank, world_size = int(config["task"]["index"]), len(config["cluster"]["worker"])
    except (ValueError, TypeError, KeyError):
        raise ConfigurationError(f"TF_CONFIG is {tf_config!r}: must be like {_EXAMPLE}") from None
    if roles != ["worker"] or role != "worker" or not 0 <= rank < world_size:
        raise ConfigurationError(f"TF_CONFIG is {tf_config!r}: all tasks must be workers, counted from 0")
    return rank, world_size
