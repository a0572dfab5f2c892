"""torchrun's agent, with what a pod needs and torchrun (torch 2.15) has no option for.

It reports the ranks that failed first, not those that its own shutdown killed; it does not wait 30 s for survivors of a
crash; it starts nothing again that would end in the same way; and once told to stop it says how each rank ended, so
that an orderly stop can be told from one that lost work. Where the number of nodes may change, ranks that stopped
because another node leaves are started again among those that are left.
"""

from torch.distributed.elastic.agent.server.api import DEFAULT_ROLE, RunResult, WorkerGroup, WorkerState
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

from training.core.exits import CONFIGURATION, STOPPED

# Long enough for a survivor to fail by itself. It cannot save: saving needs all ranks.
_SURVIVORS_S = 5


class ToldToStop(SignalException):  # type: ignore[misc]  # torch is not analysed: see pyproject.toml
    """The launcher was told to stop, and its ranks have ended: those that did not end well by rank."""

    def __init__(self, told: SignalException, failures: dict[int, ProcessFailure]) -> None:
        super().__init__(str(told), told.sigval)
        self.failures = failures


class Agent(LocalElasticAgent):  # type: ignore[misc]
    """The parent of one node's ranks."""

    is_elastic = False
    """Whether the run goes on with fewer nodes, or more."""
    is_meeting = False
    """Whether it waits for the other nodes, in which it may be deaf to signals: the waiting is done in C."""

    def run(self, role: str = DEFAULT_ROLE) -> RunResult:
        try:
            return super().run(role)
        except SignalException as told:
            exit_codes = self._exit_codes()
            if exit_codes and not any(exit_codes.values()):
                return RunResult(state=WorkerState.SUCCEEDED)  # it came after the last step
            raise ToldToStop(told, self._failures(exit_codes)) from None

    def _rendezvous(self, worker_group: WorkerGroup) -> None:
        Agent.is_meeting = True
        try:
            super()._rendezvous(worker_group)
        finally:
            Agent.is_meeting = False
        if Agent.is_elastic and worker_group.group_rank == 0:
            nodes = worker_group.group_world_size
            print(f"training on {nodes} node{'' if nodes == 1 else 's'}", flush=True)

    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        failed = {local_rank: code for local_rank, code in self._exit_codes().items() if code}
        if not failed:
            return super()._monitor_workers(worker_group)
        if Agent.is_elastic and set(failed.values()) == {STOPPED}:
            self._restart_workers(worker_group)  # all ranks have saved, for one of them was told to stop
            return RunResult(state=WorkerState.HEALTHY)
        if {CONFIGURATION, STOPPED} & set(failed.values()):
            self._remaining_restarts = 0
        self._shutdown(timeout=_SURVIVORS_S)
        result = super()._monitor_workers(worker_group)
        first = {rank: failure for rank, failure in result.failures.items() if failure.local_rank in failed}
        return RunResult(state=result.state, failures=first)

    def _stop_workers(self, worker_group: WorkerGroup) -> None:
        self._shutdown(timeout=self._shutdown_timeout)  # torchrun's 30 s may not do for saving

    def _failures(self, exit_codes: dict[int, int]) -> dict[int, ProcessFailure]:
        return {
            self._worker_group.workers[local_rank].global_rank: ProcessFailure(
                local_rank=local_rank,
                pid=self._pcontext.pids()[local_rank],
                exitcode=code,
                error_file=self._pcontext.error_files[local_rank],
            )
            for local_rank, code in exit_codes.items()
            if code
        }

    def _exit_codes(self) -> dict[int, int]:
        """Of the ranks that have ended, by local rank; a signal's number is negative."""
        if self._pcontext is None:
            return {}
        codes = {rank: handler.proc.poll() for rank, handler in self._pcontext.subprocess_handlers.items()}
        return {rank: code for rank, code in codes.items() if code is not None}
