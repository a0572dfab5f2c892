"""Stand-ins for Pulumi's provider plugins, where the real ones cannot be had: the tests run the real CLI on the real
program, and only the plugin behind the protocol is ours.

`bin/` is what goes on PATH. A stand-in does what the real plugin does, or refuses; the program does not know it exists.
`server.py`, `process.py`, `values.py` and `differences.py` are shared by every stand-in; each provider is a folder.
"""
