// Files that a program opens outside of its folder.
#pragma once

namespace twin::host {

// From now on a file that cannot be opened there is a finding, or no longer.
void WatchFiles(bool on);

}  // namespace twin::host
