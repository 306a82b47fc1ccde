// Forwards to what host code of older operator libraries shares.
#pragma once
#include "runtime_util.h"
