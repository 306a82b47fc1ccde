// Forwards to the host types; the graph-building classes themselves are not part of the twin.
#pragma once
#include "graph/types.h"
