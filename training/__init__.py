"""What runs inside the containers: one program per file, and `core/`, which they share.

A program is a module with a `Settings` dataclass (its flags) and a `main`; `python -m training.launch` starts it on
every process of a node. Nothing here knows of clusters, stacks or Pulumi: what the platform has to say arrives as flags
and environment variables, so that every program also runs on a laptop.
"""
