"""`python -m tests.plugins <package> <engine address>`: one provider, as a plugin process."""

import sys

from tests.plugins.kubernetes.provider import KubernetesProvider
from tests.plugins.process import serve

PROVIDERS = {"kubernetes": KubernetesProvider}

if __name__ == "__main__":
    # The CLI adds flags for its own logging, which a stand-in has no use for.
    package, engine_address = [argument for argument in sys.argv[1:] if not argument.startswith("-")][:2]
    serve(PROVIDERS[package], engine_address)
