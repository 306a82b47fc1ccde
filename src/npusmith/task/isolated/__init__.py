"""A candidate's Python part in processes of its own, apart from its extension and from the judge.

`start` is the first process in the box; for each attempt it makes two: `extension` loads the
compiled module, `model` runs the candidate's class, which reaches that module through a pipe only.
`attempt` is the judge's end: it hands over one call after the other, makes the launches itself and
keeps what they took and gave. `origin` says whether the results came out of those launches.
"""

REPORT = "report.json"  # of launches inside the extension's process, in the folder of an attempt
WORDS = "words"  # what both processes printed
