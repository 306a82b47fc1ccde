// The base class of host tiling that operator libraries share: steps to override, run in order.
#pragma once

#include <memory>
#include <sstream>
#include <string>

#include "exe_graph/runtime/tiling_context.h"
#include "graph/utils/type_utils.h"
#include "log/ops_log.h"
#include "tiling/platform/platform_ascendc.h"

#define ASCENDC_EXTERN_C

namespace optiling {

struct AiCoreParams {
  std::uint64_t ubSize = 0;
  std::uint64_t blockDim = 0;
  std::uint64_t aicNum = 0;
  std::uint64_t l1Size = 0;
  std::uint64_t l0aSize = 0;
  std::uint64_t l0bSize = 0;
  std::uint64_t l0cSize = 0;
};

class TilingBaseClass {
 public:
  TilingBaseClass() = default;
  explicit TilingBaseClass(gert::TilingContext *context) : context_(context) {}
  virtual ~TilingBaseClass() = default;
  virtual void Reset(gert::TilingContext *context) { context_ = context; }

  // GRAPH_PARAM_INVALID: not a case for this class, the next one may try.
  ge::graphStatus DoTiling() {
    using Step = ge::graphStatus (TilingBaseClass::*)();
    for (const Step step : {&TilingBaseClass::GetShapeAttrsInfo, &TilingBaseClass::GetPlatformInfo,
                            &TilingBaseClass::Capable, &TilingBaseClass::DoOpTiling,
                            &TilingBaseClass::DoLibApiTiling, &TilingBaseClass::GetWorkspaceSize,
                            &TilingBaseClass::PostTiling}) {
      const ge::graphStatus status = (this->*step)();
      if (status != ge::GRAPH_SUCCESS) return status;
    }
    context_->SetTilingKey(GetTilingKey());
    DumpTilingInfo();
    return ge::GRAPH_SUCCESS;
  }

 protected:
  virtual bool IsCapable() = 0;
  virtual ge::graphStatus GetPlatformInfo() = 0;
  virtual ge::graphStatus GetShapeAttrsInfo() = 0;
  virtual ge::graphStatus DoOpTiling() = 0;
  virtual ge::graphStatus DoLibApiTiling() = 0;
  virtual std::uint64_t GetTilingKey() const = 0;
  virtual ge::graphStatus GetWorkspaceSize() = 0;
  virtual ge::graphStatus PostTiling() = 0;
  virtual void DumpTilingInfo() {}

  static std::uint32_t CalcTschBlockDim(std::uint32_t slices, std::uint32_t aicCores,
                                        std::uint32_t aivCores) {
    return platform_ascendc::PlatformAscendC(nullptr).CalcTschBlockDim(slices, aicCores, aivCores);
  }

  template <typename S>
  std::string GetShapeDebugStr(const S &shape) const {
    std::ostringstream text;
    for (std::size_t at = 0; at < shape.GetDimNum(); ++at) {
      text << (at == 0 ? "[" : ", ") << shape.GetDim(at);
    }
    return shape.GetDimNum() == 0 ? "[]" : text.str() + "]";
  }

  std::string GetTensorDebugStr(const gert::StorageShape *shape,
                                const gert::CompileTimeTensorDesc *tensor) const {
    if (shape == nullptr || tensor == nullptr) return "nil";
    return ge::TypeUtils::DataTypeToSerialString(tensor->GetDataType()) +
           GetShapeDebugStr(shape->GetStorageShape());
  }

  std::string GetTilingContextDebugStr() const {
    std::string text;
    for (std::size_t at = 0; at < context_->GetComputeNodeInputNum(); ++at) {
      text += " input " + GetTensorDebugStr(context_->GetInputShape(at), context_->GetInputDesc(at));
    }
    for (std::size_t at = 0; at < context_->GetComputeNodeOutputNum(); ++at) {
      text += " output " +
              GetTensorDebugStr(context_->GetOutputShape(at), context_->GetOutputDesc(at));
    }
    return text;
  }

  std::string GetTilingDataDebugStr() const {
    const gert::TilingData *raw = context_->GetRawTilingData();
    const auto *words = static_cast<const std::int32_t *>(raw->GetData());
    std::ostringstream text;
    for (std::size_t at = 0; at < raw->GetDataSize() / sizeof *words; ++at) text << words[at] << " ";
    return text.str();
  }

  gert::TilingContext *context_ = nullptr;
  std::unique_ptr<platform_ascendc::PlatformAscendC> ascendcPlatform_;
  std::uint32_t blockDim_ = 0;
  std::uint64_t workspaceSize_ = 0;
  std::uint64_t tilingKey_ = 0;
  AiCoreParams aicoreParams_;

 private:
  ge::graphStatus Capable() { return IsCapable() ? ge::GRAPH_SUCCESS : ge::GRAPH_PARAM_INVALID; }
};

}  // namespace optiling
