"""An NPU for PyTorch extensions on a machine that has none: the twin.

`call(extension, name, values)` is what EXEC_NPU_CMD and the aclnn functions of include/bind call.
It runs the operator whose project the extension's note names, and writes into the tensors given.

NPUSMITH_FINDINGS names a file that gets one JSON line per call; findings of level error are then
recorded and not raised, unless the kernel did not come to its end. NPUSMITH_SECONDS limits a call.
NPUSMITH_LOGS names a folder in which each call leaves its log for the timing model, by number.
"""

from npusmith.device.call import call

__all__ = ["call"]
