// An operator as host code declares it: ports, attributes, and what the AI core does with them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "exe_graph/runtime/infer_datatype_context.h"
#include "exe_graph/runtime/infer_shape_context.h"
#include "exe_graph/runtime/infer_shape_range_context.h"
#include "exe_graph/runtime/tiling_context.h"
#include "exe_graph/runtime/tiling_parse_context.h"
#include "graph/operator.h"
#include "graph/types.h"

// Instantiated once, in the runtime: host code is compiled for every candidate.
extern template class std::vector<ge::DataType>;
extern template class std::vector<ge::Format>;

namespace ops {

enum Option { IGNORE = 0, OPTIONAL = 1, REQUIRED = 2, DYNAMIC = 3, VIRTUAL = 4 };
enum class DependScope { ALL, TILING };
enum class FormatCheckOption { DEFAULT, STRICT };

enum class ScalarType : std::uint32_t {
  UINT64, INT64, UINT32, INT32, UINT16, INT16, UINT8, INT8, FLOAT32, FLOAT16, INVALID_DTYPE
};
struct ScalarVar {
  ScalarType type = ScalarType::INVALID_DTYPE;
  double value = 0;
};

class OpParamDef {
 public:
  explicit OpParamDef(const char *name);
  OpParamDef(const OpParamDef &);
  OpParamDef(OpParamDef &&) noexcept;
  OpParamDef &operator=(const OpParamDef &);
  OpParamDef &operator=(OpParamDef &&) noexcept;
  ~OpParamDef();
  OpParamDef &ParamType(Option option);
  OpParamDef &DataType(std::vector<ge::DataType> types);
  OpParamDef &DataTypeList(std::vector<ge::DataType> types);
  OpParamDef &Format(std::vector<ge::Format> formats);
  OpParamDef &FormatList(std::vector<ge::Format> formats);
  OpParamDef &UnknownShapeFormat(std::vector<ge::Format> formats);
  OpParamDef &ValueDepend(Option depend);
  OpParamDef &ValueDepend(Option depend, DependScope scope);
  OpParamDef &IgnoreContiguous();
  OpParamDef &AutoContiguous();
  OpParamDef &Scalar();
  OpParamDef &ScalarList();
  OpParamDef &To(ge::DataType type);
  OpParamDef &To(const char *name);
  OpParamDef &Follow(const char *name);
  OpParamDef &OutputShapeDependOnCompute();
  OpParamDef &InitValue(std::uint64_t value);
  OpParamDef &InitValue(const std::vector<ScalarVar> &values) {  // one for each column of types
    double first = values.empty() ? 0 : values[0].value;
    for (const ScalarVar &item : values) first = item.value == 0 ? first : item.value;
    return InitValue(static_cast<std::uint64_t>(first != 0));
  }
  OpParamDef &Version(std::uint32_t version);

  const std::string &Name() const { return name_; }
  Option Kind() const { return option_; }
  bool ReadOnHost() const { return readOnHost_; }
  bool HasInitValue() const { return hasInit_; }
  bool ShapeFromKernel() const { return shapeFromKernel_; }
  std::uint64_t InitialValue() const { return init_; }
  const std::vector<ge::DataType> &Types() const { return types_; }
  bool TypesAreColumns() const { return columns_; }
  ge::Format FormatOf(std::size_t rank) const;  // of a plain tensor that the caller passes

 private:
  std::string name_;
  Option option_ = REQUIRED;
  bool readOnHost_ = false;
  bool columns_ = true;  // DataType lists line up over all ports; a DataTypeList stands alone
  bool hasInit_ = false;
  bool shapeFromKernel_ = false;
  std::uint64_t init_ = 0;
  std::vector<ge::DataType> types_;
  std::vector<ge::Format> formats_;
};

enum class AttrKind { kNone, kInt, kFloat, kBool, kString, kListInt, kListFloat, kListBool };

class OpAttrDef {
 public:
  explicit OpAttrDef(const char *name);
  OpAttrDef(const OpAttrDef &);
  OpAttrDef(OpAttrDef &&) noexcept;
  OpAttrDef &operator=(const OpAttrDef &);
  OpAttrDef &operator=(OpAttrDef &&) noexcept;
  ~OpAttrDef();
  OpAttrDef &AttrType(Option option);
  OpAttrDef &Int();
  OpAttrDef &Int(std::int64_t value);
  OpAttrDef &Float();
  OpAttrDef &Float(float value);
  OpAttrDef &Bool();
  OpAttrDef &Bool(bool value);
  OpAttrDef &String();
  OpAttrDef &String(const char *value);
  OpAttrDef &ListInt();
  OpAttrDef &ListInt(std::vector<std::int64_t> value);
  OpAttrDef &ListFloat();
  OpAttrDef &ListFloat(std::vector<float> value);
  OpAttrDef &ListBool();
  OpAttrDef &ListBool(std::vector<bool> value);
  OpAttrDef &Version(std::uint32_t version);

  const std::string &Name() const { return name_; }
  Option Required() const { return option_; }
  AttrKind Kind() const { return kind_; }
  bool HasDefault() const { return hasDefault_; }
  const std::vector<std::int64_t> &Ints() const { return ints_; }  // Int, Bool and their lists
  const std::vector<float> &Floats() const { return floats_; }
  const std::string &Text() const { return text_; }

 private:
  OpAttrDef &Set(AttrKind kind, bool hasDefault);

  std::string name_;
  Option option_ = REQUIRED;
  AttrKind kind_ = AttrKind::kNone;
  bool hasDefault_ = false;
  std::vector<std::int64_t> ints_;
  std::vector<float> floats_;
  std::string text_;
};

class OpAICoreConfig {
 public:
  OpAICoreConfig();
  explicit OpAICoreConfig(const char *soc);
  OpAICoreConfig(const OpAICoreConfig &);
  OpAICoreConfig(OpAICoreConfig &&) noexcept;
  OpAICoreConfig &operator=(const OpAICoreConfig &);
  OpAICoreConfig &operator=(OpAICoreConfig &&) noexcept;
  ~OpAICoreConfig();
  OpParamDef &Input(const char *name);
  OpParamDef &Output(const char *name);
  OpAICoreConfig &DynamicCompileStaticFlag(bool flag);
  OpAICoreConfig &DynamicFormatFlag(bool flag);
  OpAICoreConfig &DynamicRankSupportFlag(bool flag);
  OpAICoreConfig &DynamicShapeSupportFlag(bool flag);
  OpAICoreConfig &NeedCheckSupportFlag(bool flag);
  OpAICoreConfig &PrecisionReduceFlag(bool flag);
  OpAICoreConfig &ExtendCfgInfo(const char *key, const char *value);

  const std::map<std::string, std::string> &Extended() const { return extended_; }
  const std::vector<OpParamDef> &Inputs() const { return inputs_; }
  const std::vector<OpParamDef> &Outputs() const { return outputs_; }

 private:
  std::vector<OpParamDef> inputs_;
  std::vector<OpParamDef> outputs_;
  std::map<std::string, std::string> extended_;
};

using TilingFunction = ge::graphStatus (*)(gert::TilingContext *);
using InferShapeFunction = ge::graphStatus (*)(gert::InferShapeContext *);
using InferDataTypeFunction = ge::graphStatus (*)(gert::InferDataTypeContext *);

class OpAICoreDef {
 public:
  OpAICoreDef();
  OpAICoreDef(const OpAICoreDef &);
  OpAICoreDef(OpAICoreDef &&) noexcept;
  OpAICoreDef &operator=(const OpAICoreDef &);
  OpAICoreDef &operator=(OpAICoreDef &&) noexcept;
  ~OpAICoreDef();
  OpAICoreDef &SetTiling(TilingFunction tiling);
  OpAICoreDef &AddConfig(const char *soc);
  OpAICoreDef &AddConfig(const char *soc, OpAICoreConfig &config);
  // Support checks and format selection happen before a kernel is chosen: kept out of the twin.
  template <typename F>
  OpAICoreDef &SetCheckSupport(F) { return *this; }
  template <typename F>
  OpAICoreDef &SetOpSelectFormat(F) { return *this; }

  TilingFunction Tiling() const { return tiling_; }
  const std::map<std::string, OpAICoreConfig> &Configs() const { return configs_; }

 private:
  TilingFunction tiling_ = nullptr;
  std::map<std::string, OpAICoreConfig> configs_;
};

class OpDef {
 public:
  explicit OpDef(const char *type);
  OpDef(const OpDef &);
  OpDef(OpDef &&) noexcept;
  OpDef &operator=(const OpDef &);
  OpDef &operator=(OpDef &&) noexcept;
  ~OpDef();
  OpParamDef &Input(const char *name);
  OpParamDef &Output(const char *name);
  OpAttrDef &Attr(const char *name);
  OpAICoreDef &AICore() { return core_; }
  OpDef &SetInferShape(InferShapeFunction infer);
  OpDef &SetInferDataType(InferDataTypeFunction infer);
  template <typename F>
  OpDef &SetInferShapeRange(F) { return *this; }
  template <typename... T>
  OpDef &Comment(T...) { return *this; }

  const std::string &Type() const { return type_; }
  const std::vector<OpParamDef> &Inputs() const { return inputs_; }
  const std::vector<OpParamDef> &Outputs() const { return outputs_; }
  const std::vector<OpAttrDef> &Attrs() const { return attrs_; }
  const OpAICoreDef &Core() const { return core_; }
  InferShapeFunction InferShape() const { return inferShape_; }
  InferDataTypeFunction InferDataType() const { return inferType_; }

 private:
  std::string type_;
  std::vector<OpParamDef> inputs_;
  std::vector<OpParamDef> outputs_;
  std::vector<OpAttrDef> attrs_;
  OpAICoreDef core_;
  InferShapeFunction inferShape_ = nullptr;
  InferDataTypeFunction inferType_ = nullptr;
};

// Keeps a declared operator for the runner; called by OP_ADD.
int AddOp(const OpDef &definition);

}  // namespace ops

#define OP_ADD(op_type, ...) \
  static const int twin_op_##op_type = ::ops::AddOp(static_cast<::ops::OpDef>(op_type(#op_type)))
