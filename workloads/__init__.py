"""Experiments: what one stack of kind `experiment` runs, everything that is checked before it does, and the verbs.

Here belong the experiment's configuration, the launchers that turn it into Kubernetes objects, the rules that refuse
what would waste accelerators, and `python -m workloads`. Nothing here imports torch: what runs inside containers is
`training/`, and it is read as text where a check needs to know it.
"""
