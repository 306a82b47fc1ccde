// Forwards to the template arguments of tiling.
#pragma once
#include "ascendc/host_api/tiling/template_argument.h"
