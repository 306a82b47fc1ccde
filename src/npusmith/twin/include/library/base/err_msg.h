// Reports of errors to the runtime, which are log lines here.
#pragma once
#include "log/log.h"
