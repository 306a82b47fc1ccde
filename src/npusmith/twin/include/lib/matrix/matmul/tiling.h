// Forwards to the Matmul object, under a name that kernels include.
#pragma once

#include "lib/matmul_intf.h"
