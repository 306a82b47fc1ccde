// Forwards to the operator declarations.
#pragma once
#include "register/op_def_registry.h"
