// The older way to register host functions: IMPL_OP_OPTILING and IMPL_OP_INFERSHAPE chains.
#pragma once

#include <cstdint>
#include <vector>

#include "exe_graph/runtime/infer_datatype_context.h"
#include "exe_graph/runtime/infer_shape_context.h"
#include "exe_graph/runtime/tiling_context.h"
#include "exe_graph/runtime/tiling_parse_context.h"

namespace gert {

enum class TilingPlacement { TILING_ON_HOST, TILING_ON_AICPU };

class OpImplRegisterV2 {
 public:
  using TilingKernelFunc = ge::graphStatus (*)(TilingContext *);
  using InferShapeKernelFunc = ge::graphStatus (*)(InferShapeContext *);
  using InferDataTypeKernelFunc = ge::graphStatus (*)(InferDataTypeContext *);
  using ParseFunc = ge::graphStatus (*)(TilingParseContext *);
  using KernelParseFunc = ge::graphStatus (*)(KernelContext *);

  explicit OpImplRegisterV2(const char *type) : type_(type) {}
  OpImplRegisterV2 &Tiling(TilingKernelFunc tiling, std::size_t capacity = 2048);
  OpImplRegisterV2 &InferShape(InferShapeKernelFunc infer);
  OpImplRegisterV2 &InferDataType(InferDataTypeKernelFunc infer);
  template <typename F>
  OpImplRegisterV2 &InferShapeRange(F) { return *this; }
  template <typename F>
  OpImplRegisterV2 &GenSimplifiedKey(F) { return *this; }  // names precompiled kernels: none here
  // Inputs whose values host code reads, by position.
  OpImplRegisterV2 &InputsDataDependency(std::initializer_list<std::int32_t> inputs);
  OpImplRegisterV2 &TilingInputsDataDependency(std::initializer_list<std::int32_t> inputs) {
    return InputsDataDependency(inputs);
  }
  OpImplRegisterV2 &TilingInputsDataDependency(std::initializer_list<std::int32_t> inputs,
                                               std::initializer_list<TilingPlacement>) {
    return InputsDataDependency(inputs);
  }

  // Attributes that OpDef does not declare, in this order behind those that it does; without a value
  // a null.
  OpImplRegisterV2 &PrivateAttr(const char *name);
  OpImplRegisterV2 &PrivateAttr(const char *name, std::int64_t value);
  OpImplRegisterV2 &PrivateAttr(const char *name, float value);
  OpImplRegisterV2 &PrivateAttr(const char *name, bool value);
  OpImplRegisterV2 &PrivateAttr(const char *name, const char *value);
  OpImplRegisterV2 &PrivateAttr(const char *name, const std::vector<std::int64_t> &value);
  OpImplRegisterV2 &PrivateAttr(const char *name, const std::vector<float> &value);

  template <typename Info>
  OpImplRegisterV2 &TilingParse(ParseFunc parse) {
    return Parse(reinterpret_cast<void *>(parse), [] { return static_cast<void *>(new Info()); });
  }
  template <typename Info>
  OpImplRegisterV2 &TilingParse(KernelParseFunc parse) {
    return Parse(reinterpret_cast<void *>(parse), [] { return static_cast<void *>(new Info()); });
  }

 private:
  OpImplRegisterV2 &Parse(void *parse, void *(*make)());

  const char *type_;
};
using OpImplRegister = OpImplRegisterV2;

}  // namespace gert

#define IMPL_OP(op_type) \
  static ::gert::OpImplRegisterV2 twin_impl_##op_type = ::gert::OpImplRegisterV2(#op_type)
#define IMPL_OP_OPTILING(op_type) \
  static ::gert::OpImplRegisterV2 twin_tiling_##op_type = ::gert::OpImplRegisterV2(#op_type)
#define IMPL_OP_INFERSHAPE(op_type) \
  static ::gert::OpImplRegisterV2 twin_shape_##op_type = ::gert::OpImplRegisterV2(#op_type)
#define IMPL_OP_INFERDATATYPE(op_type) \
  static ::gert::OpImplRegisterV2 twin_type_##op_type = ::gert::OpImplRegisterV2(#op_type)
