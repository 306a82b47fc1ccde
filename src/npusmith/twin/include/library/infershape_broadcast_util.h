// Shape inference of operators whose inputs are broadcast against each other.
#pragma once

#include <algorithm>

#include "exe_graph/runtime/infer_shape_context.h"
#include "util/shape_util.h"

namespace Ops {
namespace Base {

// False for sizes that do not go together; a size that only a run will know stays unknown.
inline bool BroadcastDim(std::int64_t one, std::int64_t other, std::int64_t &out) {
  if (one != other && one != 1 && other != 1 && one >= 0 && other >= 0) return false;
  out = one == 1 ? other : one < 0 && other != 1 ? other : one;
  return true;
}

inline bool BroadcastShape(const gert::Shape *one, const gert::Shape *other, gert::Shape *out) {
  const std::size_t ranks[] = {one->GetDimNum(), other->GetDimNum()};
  const std::size_t rank = std::max(ranks[0], ranks[1]);
  gert::Shape made;
  for (std::size_t at = 0; at < rank; ++at) {
    const std::size_t lead[] = {rank - ranks[0], rank - ranks[1]};
    const std::int64_t left = at < lead[0] ? 1 : one->GetDim(at - lead[0]);
    const std::int64_t right = at < lead[1] ? 1 : other->GetDim(at - lead[1]);
    std::int64_t dim = 0;
    if (!BroadcastDim(left, right, dim)) return false;
    made.AppendDim(dim);
  }
  *out = made;
  return true;
}

inline ge::graphStatus InferShape4Broadcast(gert::InferShapeContext *context,
                                            std::size_t inputs = 2) {
  gert::Shape *output = context->GetOutputShape(0);
  const gert::Shape *first = context->GetInputShape(0);
  if (output == nullptr || first == nullptr) return ge::GRAPH_FAILED;
  gert::Shape made = *first;
  for (std::size_t at = 1; at < inputs; ++at) {
    const gert::Shape *next = context->GetInputShape(at);
    if (next == nullptr) return ge::GRAPH_FAILED;
    if (IsUnknownRank(made) || IsUnknownRank(*next)) return SetUnknownRank(output);
    const gert::Shape before = made;
    if (!BroadcastShape(&before, next, &made)) return ge::GRAPH_FAILED;
  }
  *output = made;
  return ge::GRAPH_SUCCESS;
}

}  // namespace Base
}  // namespace Ops
