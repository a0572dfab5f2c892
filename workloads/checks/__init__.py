"""The rules that refuse, at preview, what would waste accelerators.

One file per family, one function per rule, the rule's documentation in its docstring. A rule sees a resolved `Run` (or
a platform) and yields what is wrong; where it stands in the file, whether it is waived and how it is shown is not its
business. `registry.py` is the mechanism, `check.py` runs it over stacks.
"""
