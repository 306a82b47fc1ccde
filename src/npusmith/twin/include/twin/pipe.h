// TPipe: hands out UB and event ids.
#pragma once

#include "twin/queue.h"

namespace AscendC {

class TPipe {
 public:
  TPipe(twin::Site site = twin::Here()) { twin::OpenPipe({"TPipe", site}, this); }
  ~TPipe() { twin::ClosePipe({"TPipe::Destroy", twin::Site{}}, this); }
  TPipe(const TPipe &) = delete;
  TPipe &operator=(const TPipe &) = delete;

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
};

inline TPipe *GetTPipePtr(twin::Site site = twin::Here()) {
  return static_cast<TPipe *>(twin::CurrentPipe({"GetTPipePtr", site}));
}

// All UB that is left, as one tensor.
template <typename T, TPosition position>
bool PopStackBuffer(LocalTensor<T> &tensor, twin::Site site = twin::Here()) {
  tensor = LocalTensor<T>(twin::RestOfUb({"PopStackBuffer", site}, position));
  return tensor.GetSize() > 0;
}

}  // namespace AscendC
