// Several tiling classes for one operator: the registered ones are tried in order of priority.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tiling/tiling_base.h"

namespace optiling {

using TilingClassCase = std::unique_ptr<TilingBaseClass> (*)(gert::TilingContext *);

class TilingRegistry {
 public:
  static TilingRegistry &GetInstance() {
    static TilingRegistry registry;
    return registry;
  }

  template <typename T>
  int Add(const std::string &op, std::int32_t priority) {
    cases_[op][priority] = [](gert::TilingContext *context) -> std::unique_ptr<TilingBaseClass> {
      return std::make_unique<T>(context);
    };
    return 0;
  }

  // The first class that takes the case decides; the smallest number has the highest priority.
  ge::graphStatus DoTilingImpl(gert::TilingContext *context) {
    for (const auto &[priority, make] : cases_[context->GetNodeType()]) {
      const ge::graphStatus status = make(context)->DoTiling();
      if (status != ge::GRAPH_PARAM_INVALID) return status;
    }
    return Refuse(context);
  }

  // Only these, in this order; a failure of one does not stop the next.
  ge::graphStatus DoTilingImpl(gert::TilingContext *context,
                               const std::vector<std::int32_t> &priorities) {
    const auto &cases = cases_[context->GetNodeType()];
    for (const std::int32_t priority : priorities) {
      const auto at = cases.find(priority);
      if (at == cases.end()) continue;
      if (at->second(context)->DoTiling() == ge::GRAPH_SUCCESS) return ge::GRAPH_SUCCESS;
    }
    return Refuse(context);
  }

 private:
  static ge::graphStatus Refuse(gert::TilingContext *context) {
    OPS_LOG_E(context, "no registered tiling class takes these inputs");
    return ge::GRAPH_FAILED;
  }

  std::map<std::string, std::map<std::int32_t, TilingClassCase>> cases_;
};

}  // namespace optiling

#define REGISTER_TILING_TEMPLATE(op_type, class_name, priority)       \
  static const int twin_template_##class_name##_##priority =          \
      ::optiling::TilingRegistry::GetInstance().Add<class_name>(op_type, priority)
