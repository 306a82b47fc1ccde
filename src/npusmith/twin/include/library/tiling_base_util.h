// What host tiling of operator libraries asks about chip and shapes.
#pragma once

#include "log/log.h"
#include "util/platform_util.h"
#include "util/shape_util.h"
