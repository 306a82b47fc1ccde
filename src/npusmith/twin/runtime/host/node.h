// One operator call on the host side: what the contexts read and what tiling decided.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "register/op_def.h"
#include "register/op_impl_registry.h"
#include "register/tilingdata_base.h"

namespace twin::host {

struct Attrs : gert::RuntimeAttrs {
  // One block of 8-byte words per attribute, so that every attribute type is aligned in it.
  std::vector<std::vector<std::uint64_t>> values;
};

struct Node : gert::ComputeNodeInfo {
  std::string type;
  std::string name;
  std::vector<gert::Tensor> inputs;  // absent optional inputs are left out
  std::vector<gert::CompileTimeTensorDesc> inputDescs;
  std::vector<gert::AnchorInstanceInfo> inputAnchors;  // one per declared input
  std::vector<gert::Tensor> outputs;
  std::vector<gert::CompileTimeTensorDesc> outputDescs;
  std::vector<gert::AnchorInstanceInfo> outputAnchors;
  Attrs attrs;

  std::vector<std::uint64_t> tilingBuffer;
  gert::TilingData tiling{nullptr, 0};
  void *compileInfo = nullptr;
  std::uint32_t blocks = 0;
  bool blocksSet = false;
  std::uint64_t tilingKey = 0;
  bool needAtomic = false;
  std::uint32_t scheduleMode = 0;
  std::int32_t tilingCondition = 0;
  std::vector<std::size_t> workspaces;

  std::vector<gert::Shape> inferredShapes;
  std::vector<ge::DataType> inferredTypes;
};

// Host functions registered for an operator type through IMPL_OP_*.
struct Functions {
  gert::OpImplRegisterV2::TilingKernelFunc tiling = nullptr;
  std::size_t tilingCapacity = 2048;
  gert::OpImplRegisterV2::InferShapeKernelFunc inferShape = nullptr;
  gert::OpImplRegisterV2::InferDataTypeKernelFunc inferType = nullptr;
  void *parse = nullptr;
  void *(*makeInfo)() = nullptr;
  std::vector<std::int32_t> dataInputs;
  std::vector<ops::OpAttrDef> privateAttrs;
};

struct TilingClass {
  std::string op;
  std::string name;
  std::size_t bytes;
  std::vector<optiling::FieldInfo> fields;
};

// Filled while a project's library is loaded.
std::vector<ops::OpDef> &Ops();
std::map<std::string, Functions> &Implementations();
std::vector<TilingClass> &TilingClasses();

}  // namespace twin::host
