// What host code of older operator libraries shares: shapes, constant inputs, shape inference.
#pragma once

#include "exe_graph/runtime/infer_shape_context.h"
#include "exe_graph/runtime/tiling_context.h"
#include "infershape_broadcast_util.h"
#include "infershape_elewise_util.h"
#include "log/log.h"
#include "register/op_impl_registry.h"
#include "util/const_util.h"
#include "util/shape_util.h"

namespace ops {
using Ops::Base::InferShape4Broadcast;
using Ops::Base::InferShape4Elewise;
}  // namespace ops
