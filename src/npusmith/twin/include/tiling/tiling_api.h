// The umbrella header for host tiling.
#pragma once

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/activation.h"
#include "tiling/library.h"
#include "tiling/math.h"
#include "tiling/matmul.h"
#include "tiling/norm.h"
#include "tiling/platform/platform_ascendc.h"
#include "tiling/softmax.h"

namespace AscendC {}  // tiling of library functions; files without any may still say `using`
