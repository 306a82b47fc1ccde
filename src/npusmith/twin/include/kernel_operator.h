// The kernel side of Ascend C for dav-2201, on a CPU.
#pragma once

#include <cmath>

#include "twin/activation.h"
#include "twin/cast.h"
#include "twin/compare.h"
#include "twin/compound.h"
#include "twin/control.h"
#include "twin/copy.h"
#include "twin/cube.h"
#include "twin/debug.h"
#include "twin/filter.h"
#include "twin/fold.h"
#include "twin/intrin.h"
#include "twin/library.h"
#include "twin/list.h"
#include "twin/mask.h"
#include "twin/math.h"
#include "twin/matmultiling.h"
#include "twin/norm.h"
#include "twin/pipe.h"
#include "twin/proposal.h"
#include "twin/quant.h"
#include "twin/raw.h"
#include "twin/reduce.h"
#include "twin/scalar.h"
#include "twin/shuffle.h"
#include "twin/softmax.h"
#include "twin/sort.h"
#include "twin/std.h"
#include "twin/sync.h"
#include "twin/tiling.h"
#include "twin/transform.h"
#include "twin/vector.h"

// What this chip lacks: templates that explain themselves when they are called.
#if __has_include("twin/absent.h")
#include "twin/absent.h"
#endif
