"""How a stack file becomes typed values, and the shape of a platform's.

`stackfile` and `scalars` read the YAML, `model` and `validation` turn it into models and into one report of what is
wrong, `platform`, `nodes` and `storage` are the platform's keys. An experiment's keys are `workloads/config.py`.
"""
