// The setters of operator declarations.
#include "register/op_def.h"

#include <algorithm>

template class std::vector<ge::DataType>;
template class std::vector<ge::Format>;

namespace ops {

namespace {

// Declaring a name a second time continues the first declaration.
template <typename Def>
Def &Find(std::vector<Def> &list, const char *name) {
  for (Def &def : list) {
    if (def.Name() == name) return def;
  }
  list.emplace_back(name);
  return list.back();
}

}  // namespace

OpParamDef::OpParamDef(const char *name) : name_(name) {}
OpParamDef::OpParamDef(const OpParamDef &) = default;
OpParamDef::OpParamDef(OpParamDef &&) noexcept = default;
OpParamDef &OpParamDef::operator=(const OpParamDef &) = default;
OpParamDef &OpParamDef::operator=(OpParamDef &&) noexcept = default;
OpParamDef::~OpParamDef() = default;

OpAttrDef::OpAttrDef(const char *name) : name_(name) {}
OpAttrDef::OpAttrDef(const OpAttrDef &) = default;
OpAttrDef::OpAttrDef(OpAttrDef &&) noexcept = default;
OpAttrDef &OpAttrDef::operator=(const OpAttrDef &) = default;
OpAttrDef &OpAttrDef::operator=(OpAttrDef &&) noexcept = default;
OpAttrDef::~OpAttrDef() = default;

OpAICoreConfig::OpAICoreConfig() = default;
OpAICoreConfig::OpAICoreConfig(const char *) {}
OpAICoreConfig::OpAICoreConfig(const OpAICoreConfig &) = default;
OpAICoreConfig::OpAICoreConfig(OpAICoreConfig &&) noexcept = default;
OpAICoreConfig &OpAICoreConfig::operator=(const OpAICoreConfig &) = default;
OpAICoreConfig &OpAICoreConfig::operator=(OpAICoreConfig &&) noexcept = default;
OpAICoreConfig::~OpAICoreConfig() = default;

OpAICoreDef::OpAICoreDef() = default;
OpAICoreDef::OpAICoreDef(const OpAICoreDef &) = default;
OpAICoreDef::OpAICoreDef(OpAICoreDef &&) noexcept = default;
OpAICoreDef &OpAICoreDef::operator=(const OpAICoreDef &) = default;
OpAICoreDef &OpAICoreDef::operator=(OpAICoreDef &&) noexcept = default;
OpAICoreDef::~OpAICoreDef() = default;

OpDef::OpDef(const char *type) : type_(type) {}
OpDef::OpDef(const OpDef &) = default;
OpDef::OpDef(OpDef &&) noexcept = default;
OpDef &OpDef::operator=(const OpDef &) = default;
OpDef &OpDef::operator=(OpDef &&) noexcept = default;
OpDef::~OpDef() = default;

OpParamDef &OpParamDef::ParamType(Option option) {
  option_ = option;
  return *this;
}

OpParamDef &OpParamDef::DataType(std::vector<ge::DataType> types) {
  types_ = std::move(types);
  columns_ = true;
  return *this;
}

OpParamDef &OpParamDef::DataTypeList(std::vector<ge::DataType> types) {
  types_ = std::move(types);
  columns_ = false;
  return *this;
}

OpParamDef &OpParamDef::Format(std::vector<ge::Format> formats) {
  formats_ = std::move(formats);
  return *this;
}

OpParamDef &OpParamDef::FormatList(std::vector<ge::Format> formats) { return Format(std::move(formats)); }

// The twin runs plain tensors, which have the same bytes in ND, NCHW and NCDHW; a host that declares
// only the latter also asks for them.
ge::Format OpParamDef::FormatOf(std::size_t rank) const {
  const ge::Format named = rank == 3   ? ge::FORMAT_NCL
                           : rank == 4 ? ge::FORMAT_NCHW
                           : rank == 5 ? ge::FORMAT_NCDHW
                                       : ge::FORMAT_ND;
  const auto has = [this](ge::Format one) {
    return std::find(formats_.begin(), formats_.end(), one) != formats_.end();
  };
  return !has(ge::FORMAT_ND) && has(named) ? named : ge::FORMAT_ND;
}

// Contiguity and versions do not change what the twin does.
OpParamDef &OpParamDef::UnknownShapeFormat(std::vector<ge::Format>) { return *this; }
OpParamDef &OpParamDef::IgnoreContiguous() { return *this; }
OpParamDef &OpParamDef::AutoContiguous() { return *this; }
OpParamDef &OpParamDef::Scalar() { return *this; }
OpParamDef &OpParamDef::ScalarList() { return *this; }
OpParamDef &OpParamDef::To(ge::DataType) { return *this; }
OpParamDef &OpParamDef::To(const char *) { return *this; }
OpParamDef &OpParamDef::Follow(const char *) { return *this; }
OpParamDef &OpParamDef::OutputShapeDependOnCompute() {
  shapeFromKernel_ = true;
  return *this;
}
OpParamDef &OpParamDef::Version(std::uint32_t) { return *this; }

OpParamDef &OpParamDef::ValueDepend(Option) {
  readOnHost_ = true;
  return *this;
}

OpParamDef &OpParamDef::ValueDepend(Option depend, DependScope) { return ValueDepend(depend); }

OpParamDef &OpParamDef::InitValue(std::uint64_t value) {
  hasInit_ = true;
  init_ = value;
  return *this;
}

OpAttrDef &OpAttrDef::AttrType(Option option) {
  option_ = option;
  return *this;
}

OpAttrDef &OpAttrDef::Set(AttrKind kind, bool hasDefault) {
  kind_ = kind;
  hasDefault_ = hasDefault;
  return *this;
}

OpAttrDef &OpAttrDef::Int() { return Set(AttrKind::kInt, false); }
OpAttrDef &OpAttrDef::Float() { return Set(AttrKind::kFloat, false); }
OpAttrDef &OpAttrDef::Bool() { return Set(AttrKind::kBool, false); }
OpAttrDef &OpAttrDef::String() { return Set(AttrKind::kString, false); }
OpAttrDef &OpAttrDef::ListInt() { return Set(AttrKind::kListInt, false); }
OpAttrDef &OpAttrDef::ListFloat() { return Set(AttrKind::kListFloat, false); }
OpAttrDef &OpAttrDef::ListBool() { return Set(AttrKind::kListBool, false); }

OpAttrDef &OpAttrDef::Int(std::int64_t value) {
  ints_ = {value};
  return Set(AttrKind::kInt, true);
}

OpAttrDef &OpAttrDef::Float(float value) {
  floats_ = {value};
  return Set(AttrKind::kFloat, true);
}

OpAttrDef &OpAttrDef::Bool(bool value) {
  ints_ = {value ? 1 : 0};
  return Set(AttrKind::kBool, true);
}

OpAttrDef &OpAttrDef::String(const char *value) {
  text_ = value;
  return Set(AttrKind::kString, true);
}

OpAttrDef &OpAttrDef::ListInt(std::vector<std::int64_t> value) {
  ints_ = std::move(value);
  return Set(AttrKind::kListInt, true);
}

OpAttrDef &OpAttrDef::ListFloat(std::vector<float> value) {
  floats_ = std::move(value);
  return Set(AttrKind::kListFloat, true);
}

OpAttrDef &OpAttrDef::ListBool(std::vector<bool> value) {
  ints_.assign(value.begin(), value.end());
  return Set(AttrKind::kListBool, true);
}

OpAttrDef &OpAttrDef::Version(std::uint32_t) { return *this; }

OpParamDef &OpAICoreConfig::Input(const char *name) { return Find(inputs_, name); }
OpParamDef &OpAICoreConfig::Output(const char *name) { return Find(outputs_, name); }
// How CANN compiles and caches binaries; the twin compiles once per run of dtypes.
OpAICoreConfig &OpAICoreConfig::DynamicCompileStaticFlag(bool) { return *this; }
OpAICoreConfig &OpAICoreConfig::DynamicFormatFlag(bool) { return *this; }
OpAICoreConfig &OpAICoreConfig::DynamicRankSupportFlag(bool) { return *this; }
OpAICoreConfig &OpAICoreConfig::DynamicShapeSupportFlag(bool) { return *this; }
OpAICoreConfig &OpAICoreConfig::NeedCheckSupportFlag(bool) { return *this; }
OpAICoreConfig &OpAICoreConfig::PrecisionReduceFlag(bool) { return *this; }

OpAICoreConfig &OpAICoreConfig::ExtendCfgInfo(const char *key, const char *value) {
  extended_[key] = value;
  return *this;
}

OpAICoreDef &OpAICoreDef::SetTiling(TilingFunction tiling) {
  tiling_ = tiling;
  return *this;
}

OpAICoreDef &OpAICoreDef::AddConfig(const char *soc) {
  configs_.emplace(soc, OpAICoreConfig());
  return *this;
}

OpAICoreDef &OpAICoreDef::AddConfig(const char *soc, OpAICoreConfig &config) {
  configs_.insert_or_assign(soc, config);
  return *this;
}

OpParamDef &OpDef::Input(const char *name) { return Find(inputs_, name); }
OpParamDef &OpDef::Output(const char *name) { return Find(outputs_, name); }
OpAttrDef &OpDef::Attr(const char *name) { return Find(attrs_, name); }

OpDef &OpDef::SetInferShape(InferShapeFunction infer) {
  inferShape_ = infer;
  return *this;
}

OpDef &OpDef::SetInferDataType(InferDataTypeFunction infer) {
  inferType_ = infer;
  return *this;
}

}  // namespace ops
