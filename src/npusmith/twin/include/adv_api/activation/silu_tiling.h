// Forwards to the host tiling, under a name that host code includes.
#pragma once

#include "tiling/activation.h"
