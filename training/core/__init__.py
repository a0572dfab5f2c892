"""What every program shares: flags, process groups, data order, checkpoints, progress, and the way a run ends.

A piece belongs here when a second program would otherwise copy it; models, losses and data sets stay in the programs.
"""
