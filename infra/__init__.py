"""The platform: what one stack of kind `platform` builds, and the facts about it that experiments are checked against.

Here belong the platform's configuration, the tables of instances, prices and versions, and one component per file for
each thing that Pulumi creates. Nothing here knows an experiment: `workloads/` reads this package, never the reverse.
Importing the configuration and the tables must not import Pulumi, so that a check stays a matter of milliseconds.
"""
