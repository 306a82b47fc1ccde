// TPipe: hands out UB and event ids.
#pragma once

#include "twin/copy.h"
#include "twin/resource.h"

namespace AscendC {

class TPipe {
 public:
  TPipe(twin::Site site = twin::Here()) { twin::OpenPipe({"TPipe", site}, this); }
  ~TPipe() { twin::ClosePipe({"TPipe::Destroy", twin::Site{}}, this); }
  // Published operators pass and keep the kernel's pipe by value: one core has one state of it.
  TPipe(const TPipe &) {}
  TPipe &operator=(const TPipe &) { return *this; }

  void Init(twin::Site site = twin::Here()) {
    twin::ClosePipe({"TPipe::Init", site}, this);
    twin::OpenPipe({"TPipe::Init", site}, this);
  }
  void Destroy(twin::Site site = twin::Here()) { twin::ClosePipe({"TPipe::Destroy", site}, this); }
  void Reset(twin::Site site = twin::Here()) { twin::ResetPipe({"TPipe::Reset", site}); }

  template <TPosition source, TPosition target, std::int32_t depth, auto mask>
  bool InitBuffer(TQueBind<source, target, depth, mask> &queue, twin::Byte num, std::int64_t len,
                  twin::Site site = twin::Here()) {
    using Queue = TQueBind<source, target, depth, mask>;
    queue.Bind(twin::OpenQueue({"InitBuffer", site}, Queue::Shape(), num.value, len));
    return true;
  }
  template <TPosition position>
  bool InitBuffer(TBuf<position> &buffer, std::int64_t len, twin::Site site = twin::Here()) {
    buffer.Bind(twin::OpenBuffer({"InitBuffer", site}, position, len));
    return true;
  }

  // A TBufPool, or a class with EXTERN_IMPL_BUFPOOL.
  template <class Pool>
  bool InitBufPool(Pool &pool, std::uint32_t len, twin::Site site = twin::Here()) {
    pool.Bind(twin::OpenPool({"InitBufPool", site}, -1, Pool::Position(), len, -1));
    return true;
  }
  template <class Pool, class Shared>
  bool InitBufPool(Pool &pool, std::uint32_t len, Shared &shareBuf,
                   twin::Site site = twin::Here()) {
    pool.Bind(twin::OpenPool({"InitBufPool", site}, -1, Pool::Position(), len, shareBuf.Id()));
    return true;
  }

  // Global memory that takes what does not fit UB; `bufferSize` and offsets in bytes.
  template <typename T>
  void InitSpmBuffer(const GlobalTensor<T> &workspace, std::int32_t bufferSize) {
    spm_ = workspace.gm();
    if (spm_.bytes < 0) spm_.bytes = bufferSize;
  }
  template <typename T>
  void WriteSpmBuffer(const LocalTensor<T> &tensor, std::int32_t copySize,
                      std::int32_t offset = 0, twin::Site site = twin::Here()) {
    twin::CopyOut({"WriteSpmBuffer", site}, twin::TagOf<T>(), Spm(offset), tensor.view(),
                  copySize);
  }
  template <typename T>
  void WriteSpmBuffer(const LocalTensor<T> &tensor, const DataCopyParams &how,
                      std::int32_t offset = 0, twin::Site site = twin::Here()) {
    twin::CopyOutBlocks({"WriteSpmBuffer", site}, twin::TagOf<T>(), Spm(offset), tensor.view(),
                        twin::BlocksOf(how));
  }
  template <typename T>
  void ReadSpmBuffer(const LocalTensor<T> &tensor, std::int32_t copySize, std::int32_t offset = 0,
                     twin::Site site = twin::Here()) {
    twin::CopyIn({"ReadSpmBuffer", site}, twin::TagOf<T>(), tensor.view(), Spm(offset), copySize);
  }
  template <typename T>
  void ReadSpmBuffer(const LocalTensor<T> &tensor, const DataCopyParams &how,
                     std::int32_t offset = 0, twin::Site site = twin::Here()) {
    twin::CopyInBlocks({"ReadSpmBuffer", site}, twin::TagOf<T>(), tensor.view(), Spm(offset),
                       twin::BlocksOf(how));
  }

  // A tensor at an address of the position's memory.
  template <TPosition position, typename T>
  LocalTensor<T> GetAbsAddr(std::int32_t offset, std::int32_t size) const {
    return LocalTensor<T>(position, static_cast<std::uint32_t>(offset),
                          static_cast<std::uint32_t>(size));
  }
  // Memories start at address 0.
  std::uint64_t GetBaseAddr(std::int8_t logicPos) const {
    return reinterpret_cast<std::uint64_t>(
        twin::LocalPointer(static_cast<TPosition>(logicPos), 0));
  }

  template <HardEvent event>
  TEventID AllocEventID(twin::Site site = twin::Here()) {
    return static_cast<TEventID>(twin::FetchEvent({"AllocEventID", site}, event, true));
  }
  template <HardEvent event>
  void ReleaseEventID(TEventID id, twin::Site site = twin::Here()) {
    twin::ReleaseEvent({"ReleaseEventID", site}, event, id);
  }
  TEventID FetchEventID(HardEvent event, twin::Site site = twin::Here()) {
    return static_cast<TEventID>(twin::FetchEvent({"FetchEventID", site}, event, false));
  }
  template <HardEvent event>
  TEventID FetchEventID(twin::Site site = twin::Here()) {
    return FetchEventID(event, site);
  }

 private:
  twin::Gm Spm(std::int32_t offset) const {
    return {spm_.base + offset, spm_.bytes - offset};
  }
  twin::Gm spm_;
};

inline TPipe *GetTPipePtr(twin::Site site = twin::Here()) {
  return static_cast<TPipe *>(twin::CurrentPipe({"GetTPipePtr", site}));
}

// All UB that is left, as one tensor.
template <typename T, TPosition position>
bool PopStackBuffer(LocalTensor<T> &tensor, twin::Site site = twin::Here()) {
  tensor = LocalTensor<T>(twin::PopStack({"PopStackBuffer", site}, position));
  return tensor.GetSize() > 0;
}

}  // namespace AscendC
