// Forwards to the umbrella header, under a name that kernels include.
#pragma once

#include "kernel_operator.h"
