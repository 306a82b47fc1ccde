// The kernel side of Ascend C for dav-2201, on a CPU.
#pragma once

#include "twin/cast.h"
#include "twin/copy.h"
#include "twin/debug.h"
#include "twin/mask.h"
#include "twin/pipe.h"
#include "twin/sync.h"
#include "twin/tiling.h"
#include "twin/vector.h"
