// The lists that a project's static initialisers fill while its library is loaded.
#include "node.h"

namespace twin::host {

std::vector<ops::OpDef> &Ops() {
  static std::vector<ops::OpDef> list;
  return list;
}

std::map<std::string, Functions> &Implementations() {
  static std::map<std::string, Functions> table;
  return table;
}

std::vector<TilingClass> &TilingClasses() {
  static std::vector<TilingClass> list;
  return list;
}

}  // namespace twin::host

namespace ops {

int AddOp(const OpDef &definition) {
  twin::host::Ops().push_back(definition);
  return 0;
}

}  // namespace ops

namespace optiling {

int AddTilingClass(const char *op, const TilingDef &instance) {
  twin::host::TilingClasses().push_back(
      {op, instance.GetTilingClassName(), instance.GetDataSize(), instance.GetFieldInfo()});
  return 0;
}

}  // namespace optiling

namespace gert {

namespace {
twin::host::Functions &Of(const char *type) { return twin::host::Implementations()[type]; }
}  // namespace

OpImplRegisterV2 &OpImplRegisterV2::Tiling(TilingKernelFunc tiling, std::size_t capacity) {
  Of(type_).tiling = tiling;
  Of(type_).tilingCapacity = capacity;
  return *this;
}

OpImplRegisterV2 &OpImplRegisterV2::InferShape(InferShapeKernelFunc infer) {
  Of(type_).inferShape = infer;
  return *this;
}

OpImplRegisterV2 &OpImplRegisterV2::InferDataType(InferDataTypeKernelFunc infer) {
  Of(type_).inferType = infer;
  return *this;
}

OpImplRegisterV2 &OpImplRegisterV2::InputsDataDependency(
    std::initializer_list<std::int32_t> inputs) {
  Of(type_).dataInputs.assign(inputs.begin(), inputs.end());
  return *this;
}

OpImplRegisterV2 &OpImplRegisterV2::PrivateAttr(const char *name) {
  Of(type_).privateAttrs.emplace_back(name);
  return *this;
}
OpImplRegisterV2 &OpImplRegisterV2::PrivateAttr(const char *name, std::int64_t value) {
  Of(type_).privateAttrs.emplace_back(name).Int(value);
  return *this;
}
OpImplRegisterV2 &OpImplRegisterV2::PrivateAttr(const char *name, float value) {
  Of(type_).privateAttrs.emplace_back(name).Float(value);
  return *this;
}
OpImplRegisterV2 &OpImplRegisterV2::PrivateAttr(const char *name, bool value) {
  Of(type_).privateAttrs.emplace_back(name).Bool(value);
  return *this;
}
OpImplRegisterV2 &OpImplRegisterV2::PrivateAttr(const char *name, const char *value) {
  Of(type_).privateAttrs.emplace_back(name).String(value);
  return *this;
}
OpImplRegisterV2 &OpImplRegisterV2::PrivateAttr(const char *name,
                                                const std::vector<std::int64_t> &value) {
  Of(type_).privateAttrs.emplace_back(name).ListInt(value);
  return *this;
}
OpImplRegisterV2 &OpImplRegisterV2::PrivateAttr(const char *name,
                                                const std::vector<float> &value) {
  Of(type_).privateAttrs.emplace_back(name).ListFloat(value);
  return *this;
}

OpImplRegisterV2 &OpImplRegisterV2::Parse(void *parse, void *(*make)()) {
  Of(type_).parse = parse;
  Of(type_).makeInfo = make;
  return *this;
}

}  // namespace gert
