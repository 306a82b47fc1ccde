// The Matmul object, under the name that kernels include.
#pragma once

#include "kernel_operator.h"
#include "twin/matmul.h"
