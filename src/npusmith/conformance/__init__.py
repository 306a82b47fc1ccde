"""Other people's operators against their own references: are the twin and its rules right?

`npukernelbench.run(...)` runs the reference answers of a checkout of PCL's NPUKernelBench that the
user names; nothing of it is shipped. docs/conformance.md tells the rules and the results.
"""
