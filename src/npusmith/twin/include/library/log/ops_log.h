// Forwards to the OPS_ spelling of the logging macros.
#pragma once
#include "error/ops_error.h"
