// Forwards to the tiling classes; its type tags are not used on this chip.
#pragma once
#include "tiling/tiling_base.h"
