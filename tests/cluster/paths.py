"""Where the local cluster keeps what it builds and what it runs.

The cache outlives the cluster (binaries, images, their layers); the state is one running cluster, and goes with it.
"""

import os
from pathlib import Path

PROJECT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("TRAINYARD_CACHE") or Path.home() / ".cache" / "trainyard").absolute()
STATE = Path("/var/lib/trainyard-cluster")
TOOLS = Path(__file__).parent / "tools"
KUBECONFIG = STATE / "kubeconfig"
