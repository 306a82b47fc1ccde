// Forwards to the contexts' base.
#pragma once
#include "exe_graph/runtime/context.h"
