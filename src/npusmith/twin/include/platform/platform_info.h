// Forwards to the platform record.
#pragma once
#include "platform/platform_infos_def.h"
