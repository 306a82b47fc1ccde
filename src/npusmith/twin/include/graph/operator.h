// A graph's view of an operator, which support checks take. The twin never calls those checks: they
// choose between implementations, and a project under test is the only one.
#pragma once

#include "graph/tensor.h"

namespace ge {

class Operator {
 public:
  Operator() = default;
  explicit Operator(const std::string &type) : type_(type) {}
  graphStatus GetOpType(AscendString &type) const {
    type = AscendString(type_.c_str());
    return GRAPH_SUCCESS;
  }
  graphStatus GetName(AscendString &name) const { return GetOpType(name); }
  TensorDesc GetInputDescByName(const char *) const { return {}; }
  TensorDesc GetOutputDescByName(const char *) const { return {}; }
  TensorDesc GetInputDesc(std::uint32_t) const { return {}; }
  TensorDesc GetInputDesc(const std::string &) const { return {}; }
  TensorDesc GetOutputDesc(std::uint32_t) const { return {}; }
  TensorDesc GetOutputDesc(const std::string &) const { return {}; }
  std::size_t GetInputsSize() const { return 0; }
  std::size_t GetOutputsSize() const { return 0; }
  template <typename T>
  graphStatus GetAttr(const char *, T &) const { return GRAPH_FAILED; }
  template <typename T>
  graphStatus GetAttr(const std::string &, T &) const { return GRAPH_FAILED; }

 private:
  std::string type_;
};

}  // namespace ge
