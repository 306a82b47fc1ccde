// Forwards to the platform queries.
#pragma once
#include "tiling/platform/platform_ascendc.h"
