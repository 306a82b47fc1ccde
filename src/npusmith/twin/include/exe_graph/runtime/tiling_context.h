// What a tiling function reads (shapes, types, attributes, platform) and decides.
#pragma once

#include "exe_graph/runtime/context.h"
#include "exe_graph/runtime/tiling_data.h"

namespace gert {

// The strides of an input that is a view.
class Stride {
 public:
  std::size_t GetDimNum() const { return 0; }
  std::int64_t GetStride(std::size_t) const { return 0; }
};

class TilingContext : public KernelContext {
 public:
  using KernelContext::KernelContext;
  bool InputIsView(std::size_t) const { return false; }  // a run's tensors are dense
  const Stride *GetInputStride(std::size_t) const { return nullptr; }

  const StorageShape *GetInputShape(std::size_t at) const { return InputShape(at); }
  const StorageShape *GetRequiredInputShape(std::size_t at) const { return OptionalShape(at); }
  const StorageShape *GetOptionalInputShape(std::size_t at) const { return OptionalShape(at); }
  const StorageShape *GetDynamicInputShape(std::size_t at, std::size_t which) const {
    return DynamicShape(at, which);
  }
  const StorageShape *GetOutputShape(std::size_t at) const;
  const Tensor *GetInputTensor(std::size_t at) const { return Input(at); }
  const Tensor *GetRequiredInputTensor(std::size_t at) const { return OptionalInput(at); }
  const Tensor *GetOptionalInputTensor(std::size_t at) const { return OptionalInput(at); }
  const Tensor *GetDynamicInputTensor(std::size_t at, std::size_t which) const {
    return DynamicInput(at, which);
  }

  fe::PlatFormInfos *GetPlatformInfo() const;
  const void *GetCompileInfo() const;
  template <typename T>
  const T *GetCompileInfo() const { return static_cast<const T *>(GetCompileInfo()); }
  std::int32_t GetDeterministic() const;

  ge::graphStatus SetBlockDim(std::uint32_t blocks);
  ge::graphStatus SetSimdNumBlocks(std::uint32_t blocks) { return SetBlockDim(blocks); }
  std::uint32_t GetBlockDim() const;
  ge::graphStatus SetTilingKey(std::uint64_t key);
  std::uint64_t GetTilingKey() const;
  ge::graphStatus SetNeedAtomic(bool atomic);
  bool NeedAtomic() const;
  ge::graphStatus SetScheduleMode(std::uint32_t mode);
  std::uint32_t GetScheduleMode() const;
  ge::graphStatus SetTilingCond(std::int32_t condition);
  std::int32_t GetTilingCond() const;
  ge::graphStatus SetLocalMemorySize(std::uint32_t bytes);
  std::size_t *GetWorkspaceSizes(std::size_t count);
  std::size_t GetWorkspaceNum() const;
  TilingData *GetRawTilingData();

  // The raw buffer seen as the user's struct, which then is what the kernel gets; null when it is
  // larger than the buffer.
  template <typename T>
  T *GetTilingData() {
    TilingData *raw = GetRawTilingData();
    if (raw->GetCapacity() < sizeof(T)) return nullptr;
    raw->SetDataSize(sizeof(T));
    return static_cast<T *>(raw->GetData());
  }
};

}  // namespace gert
