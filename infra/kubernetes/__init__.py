"""What makes a cluster a place to train: device plugins, teams' namespaces, volumes, the scheduler, the operators.

One component per file; `infra/platform.py` puts them in order. Nothing here knows AWS but for what a volume mounts.
"""
