// Forwards to the logging and checking macros.
#pragma once
#include "log/log.h"
