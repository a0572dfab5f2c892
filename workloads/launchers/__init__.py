"""One file per kind of job: pure functions from a run to its manifests.

A launcher decides what its job kind decides: how the pods find each other, who restarts them, how they are held
together as a gang. Pods themselves are `workloads/pod.py`, the same for all. To add a kind, write a file with a
`manifests(run, name)` and a `LAUNCHER`, and name it in `registry.py` and in `workloads.config.Launcher`.
"""
