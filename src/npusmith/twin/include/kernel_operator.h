// The kernel side of Ascend C for dav-2201, on a CPU.
#pragma once

#include <cmath>

#include "twin/cast.h"
#include "twin/compare.h"
#include "twin/copy.h"
#include "twin/debug.h"
#include "twin/library.h"
#include "twin/list.h"
#include "twin/mask.h"
#include "twin/pipe.h"
#include "twin/raw.h"
#include "twin/reduce.h"
#include "twin/scalar.h"
#include "twin/shuffle.h"
#include "twin/sync.h"
#include "twin/tiling.h"
#include "twin/vector.h"
