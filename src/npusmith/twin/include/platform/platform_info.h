// Forwards to the platform record; host code relies on the standard names that come with it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "platform/platform_infos_def.h"

using std::map;
using std::string;
using std::vector;
