// Forwards to the device runtime.
#pragma once
#include "acl/acl.h"
