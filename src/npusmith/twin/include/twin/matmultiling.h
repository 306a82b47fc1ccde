// TCubeTiling under the name that kernels use; host code has a class of that name in optiling.
#pragma once

#include "twin/matmulfields.h"

using AscendC::tiling::TCubeTiling;
