"""Names of what a suite's candidate process leaves on disk."""

RESULT = "result.json"
REPORT = "report.json"  # of launches inside the process
CALLS = "calls.jsonl"  # of operators that ran outside of it
LOGS = "logs"  # of both, for the timing model
INSIDE = "direct"  # in there: of the first launch inside the process
