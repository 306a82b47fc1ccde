// An operator's description for graphs (REG_OP chains). The twin builds no graphs: what it says is
// not looked at, only its names are declared.
#pragma once

#include "graph/operator.h"

namespace twin::host {
struct GraphOperator {
  constexpr GraphOperator Said() const { return {}; }
};
}  // namespace twin::host

#define REG_OP(name) [[maybe_unused]] static const auto twin_graph_##name = ::twin::host::GraphOperator()
#define INPUT(...) Said()
#define OPTIONAL_INPUT(...) Said()
#define DYNAMIC_INPUT(...) Said()
#define OUTPUT(...) Said()
#define DYNAMIC_OUTPUT(...) Said()
#define ATTR(...) Said()
#define REQUIRED_ATTR(...) Said()
#define DATATYPE(...) Said()
#define GRAPH(...) Said()
#define DYNAMIC_GRAPH(...) Said()
#define OP_END_FACTORY_REG(name) Said();
