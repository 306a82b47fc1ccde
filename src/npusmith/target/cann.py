"""Where an installed CANN toolkit is looked for: by `npusmith` and by a project's build.sh."""

from __future__ import annotations

# Set by the toolkit's set_env.sh; the first one that is set counts.
VARIABLES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_INSTALL_PATH")
# Default places of root's and of a user's installation, the newer layout first.
PLACES = (
    "/usr/local/Ascend/cann",
    "/usr/local/Ascend/ascend-toolkit/latest",
    "/usr/local/Ascend/latest",
    "~/Ascend/cann",
    "~/Ascend/ascend-toolkit/latest",
    "~/Ascend/latest",
)
