"""The training loop of a TensorFlow program: each step on all replicas of all workers.

::

    with team.strategy.scope():
        model, optimizer = ...
    run = Run(settings, team, model=model, optimizer=optimizer)
    run.train(loss_of_samples, inputs, targets)
    run.finish(accuracy=...)
"""

from collections.abc import Callable
from typing import Any

import numpy.typing as npt
import tensorflow as tf

from training.core.manifest import Manifest
from training.core.order import SampleOrder, plan_batches
from training.core.settings import RunSettings
from training.core.steps import Steps, checkpoint_folder
from training.core.stop_signal import StopSignal
from training.core.tf_checkpoint import Checkpoints
from training.core.tf_workers import Workers

Array = npt.NDArray[Any]
LossOfSamples = Callable[[Any, Any], Any]
"""From inputs and targets to the loss of each sample."""


class Run(Steps):
    """One run of a program, from its first step or from its newest checkpoint to its last."""

    def __init__(self, settings: RunSettings, team: Workers, *, model: Any, optimizer: Any) -> None:
        self._team, self._model, self._optimizer = team, model, optimizer
        self._seed = settings.seed
        self._batches = plan_batches(
            global_batch=settings.global_batch,
            micro_batch=settings.micro_batch,
            world_size=team.strategy.num_replicas_in_sync,
        )
        with team.strategy.scope():
            optimizer.build(model.trainable_variables)
        self._state = tf.train.Checkpoint(model=model, optimizer=optimizer)
        self._step_carries = StopWithStep()
        folder = checkpoint_folder(settings)
        self._copies = Checkpoints(folder, keep=settings.checkpoint_keep, peers=team) if folder else None
        super().__init__(
            settings,
            team,
            stop=self._step_carries,
            samples_per_step=settings.global_batch,
            checkpoints=self._copies,
        )

    def train(self, loss_of_samples: LossOfSamples, inputs: Array, targets: Array) -> None:
        """The steps that are left."""
        order = SampleOrder(len(inputs), seed=self._seed)
        take_step = self._compiled(loss_of_samples)
        for _ in self.steps():
            samples = order.take(self.samples, self._batches.global_batch)
            told = tf.constant(self._step_carries.signal.told, tf.float32)
            sums = take_step(self._shared_out(inputs[samples]), self._shared_out(targets[samples]), told)
            loss, self._step_carries.num_told = self._team.strategy.experimental_local_results(sums)[0].numpy()
            self.log(loss)

    def _shared_out(self, samples: Array) -> Any:
        """Each replica's share of a step, cut into forward passes."""
        plan = self._batches
        shares = samples.reshape(-1, plan.num_micro_batches, plan.micro_batch, *samples.shape[1:])
        return self._team.strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(shares[context.replica_id_in_sync_group])
        )

    def _compiled(self, loss_of_samples: LossOfSamples) -> Callable[[Any, Any, Any], Any]:
        """A step on all replicas; gives the mean loss of its samples, and how many replicas were told to stop."""
        variables, plan = self._model.trainable_variables, self._batches

        def on_one(inputs: Any, targets: Any, told: Any) -> Any:
            gradients, loss = [tf.zeros_like(variable) for variable in variables], tf.zeros(())
            for number in range(plan.num_micro_batches):
                with tf.GradientTape() as tape:
                    # Its part of the mean over all samples: replicas add up, and the optimizer adds up their gradients.
                    part = tf.reduce_sum(loss_of_samples(inputs[number], targets[number])) / plan.global_batch
                more = tape.gradient(part, variables)
                gradients = [one + other for one, other in zip(gradients, more, strict=True)]
                loss += part
            self._optimizer.apply_gradients(zip(gradients, variables, strict=True))
            replicas = tf.distribute.get_replica_context()
            return replicas.all_reduce(tf.distribute.ReduceOp.SUM, tf.stack([loss, told]))

        # The decorator's other form: its type is not known here.
        return tf.function(lambda *args: self._team.strategy.run(on_one, args=args))  # type: ignore[no-any-return]

    def _load(self, manifest: Manifest) -> None:
        assert self._copies
        self._compare(manifest, self._shapes())
        self._copies.load(manifest.step, self._state)

    def _save(self) -> None:
        if self._copies:
            self._copies.save(self._state, step=self.step, samples=self.samples, parameters=self._shapes())

    def _shapes(self) -> dict[str, list[int]]:
        return {variable.path: list(variable.shape) for variable in self._model.variables}


class StopWithStep:
    """Whether any worker was told to stop travels with the loss, so that all know it after the same step."""

    def __init__(self) -> None:
        self.signal = StopSignal()
        self.num_told = 0.0

    def ask(self) -> None:
        """The step does."""

    def agreed(self) -> bool:
        return self.num_told > 0
