// Forwards to the status codes.
#pragma once
#include "graph/types.h"
