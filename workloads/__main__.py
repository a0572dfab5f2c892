"""`python -m workloads VERB`."""

from workloads.cli import app

app(prog_name="python -m workloads")
