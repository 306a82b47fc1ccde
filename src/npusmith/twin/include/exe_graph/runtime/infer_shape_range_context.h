// Forwards; shape ranges are not inferred on the twin.
#pragma once
#include "exe_graph/runtime/infer_shape_context.h"
