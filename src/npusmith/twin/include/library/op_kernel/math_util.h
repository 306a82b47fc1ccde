// Whole-number arithmetic of kernels in operator libraries: the same as in host code.
#pragma once
#include "util/math_util.h"
