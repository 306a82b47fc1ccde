// TQue, TQueBind and TBuf: handles; who owns which buffer is known to the runtime alone.
#pragma once

#include "twin/tensor.h"

namespace AscendC {

class TPipe;

// Static properties of a queue; those of cube queues mean nothing on a vector core.
struct TQueConfig {
  bool nd2nz = false;
  bool nz2nd = false;
  bool scmBlockGroup = false;
  std::uint32_t bufferLen = 0;
  std::uint32_t bufferNumber = 0;
  std::uint32_t consumerSize = 0;
  TPosition consumer[8] = {};
  bool enableStaticEvtId = false;
  bool enableLoopQueue = false;
};

// `mask` is an int or the address of a TQueConfig.
template <TPosition source, TPosition target, std::int32_t depth, auto mask = 0>
class TQueBind {
 public:
  template <typename T>
  LocalTensor<T> AllocTensor(twin::Site site = twin::Here()) {
    return LocalTensor<T>(twin::AllocBuffer({"AllocTensor", site}, id_));
  }
  template <typename T>
  void AllocTensor(LocalTensor<T> &tensor, twin::Site site = twin::Here()) {
    tensor = AllocTensor<T>(site);
  }
  template <typename T>
  bool EnQue(const LocalTensor<T> &tensor, twin::Site site = twin::Here()) {
    return twin::EnqueBuffer({"EnQue", site}, id_, tensor.view());
  }
  // One buffer for a way in and a way out: each call names the positions that it goes between.
  template <TPosition from, TPosition to, typename T>
  bool EnQue(const LocalTensor<T> &tensor, twin::Site site = twin::Here()) {
    constexpr twin::QueueShape way{from, to, depth};
    return twin::EnqueBuffer({"EnQue", site}, id_, tensor.view(), &way);
  }
  template <typename T = std::uint8_t>
  LocalTensor<T> DeQue(twin::Site site = twin::Here()) {
    return LocalTensor<T>(twin::DequeBuffer({"DeQue", site}, id_));
  }
  template <TPosition from, TPosition to, typename T>
  LocalTensor<T> DeQue(twin::Site site = twin::Here()) {
    constexpr twin::QueueShape way{from, to, depth};
    return LocalTensor<T>(twin::DequeBuffer({"DeQue", site}, id_, &way));
  }
  template <typename T>
  void DeQue(LocalTensor<T> &tensor, twin::Site site = twin::Here()) {
    tensor = DeQue<T>(site);
  }
  template <typename T>
  void FreeTensor(const LocalTensor<T> &tensor, twin::Site site = twin::Here()) {
    twin::FreeBuffer({"FreeTensor", site}, id_, tensor.view());
  }
  bool VacantInQue(twin::Site site = twin::Here()) {
    return twin::CountQueued({"VacantInQue", site}, id_) < (depth > 0 ? depth : 1);
  }
  bool HasTensorInQue(twin::Site site = twin::Here()) {
    return twin::CountQueued({"HasTensorInQue", site}, id_) > 0;
  }
  std::int32_t GetTensorCountInQue(twin::Site site = twin::Here()) {
    return twin::CountQueued({"GetTensorCountInQue", site}, id_);
  }
  bool HasIdleBuffer(twin::Site site = twin::Here()) {
    return twin::CountIdle({"HasIdleBuffer", site}, id_) > 0;
  }
  // The events behind EnQue and DeQue are the runtime's: nothing is left to free.
  void FreeAllEvent() {}
  // How a pool of the kernel's own sets up a queue: its buffers one by one, where it puts them.
  void InitStartBufHandle(TBufHandle, std::uint8_t num, std::uint32_t,
                          twin::Site site = twin::Here()) {
    id_ = twin::OpenQueue({"InitStartBufHandle", site}, Shape(), num, -1);
  }
  template <class Pool>
  void InitBufHandle(Pool *pool, std::uint32_t index, TBufHandle, std::uint32_t curPoolAddr,
                     std::uint32_t len, twin::Site site = twin::Here()) {
    twin::PlaceBuffer({"InitBufHandle", site}, pool->Id(), id_, static_cast<int>(index),
                      curPoolAddr, len);
  }

  static constexpr twin::QueueShape Shape() { return {source, target, depth}; }
  void Bind(int id) { id_ = id; }

 private:
  int id_ = -1;
};

// Where the next pipe finds the data: what VECIN hands on stays in VECIN.
template <TPosition position, std::int32_t depth, auto mask = 0>
class TQue : public TQueBind<position, position, depth, mask> {};

// Matrices on their way into L1 by the program's own copies.
template <TPosition position, std::int32_t depth = 1, auto mask = 0>
using TSCM = TQueBind<position, TPosition::TSCM, depth, mask>;

template <TPosition position = TPosition::LCM>
class TBuf {
 public:
  template <typename T>
  LocalTensor<T> Get(twin::Site = twin::Here()) const {
    return LocalTensor<T>(view_);
  }
  template <typename T>
  LocalTensor<T> Get(std::uint32_t count, twin::Site = twin::Here()) const {
    LocalTensor<T> tensor(view_);
    if (count < tensor.GetSize()) tensor.SetSize(count);
    return tensor;
  }
  template <typename T>
  LocalTensor<T> GetWithOffset(std::uint32_t count, std::uint32_t offset,
                               twin::Site = twin::Here()) const {
    twin::View piece = view_;
    piece.addr += offset;  // in bytes
    piece.bytes -= offset;
    LocalTensor<T> tensor(piece);
    if (count < tensor.GetSize()) tensor.SetSize(count);
    return tensor;
  }
  // A TBuf is never taken or given back; kernels call these all the same.
  template <typename T>
  LocalTensor<T> AllocTensor(twin::Site = twin::Here()) const {
    return Get<T>();
  }
  template <typename T>
  void EnQue(const LocalTensor<T> &) {}
  template <typename T>
  LocalTensor<T> DeQue() {
    return Get<T>();
  }
  template <typename T>
  void FreeTensor(const LocalTensor<T> &) {}
  std::uint32_t GetBufLen() const { return static_cast<std::uint32_t>(view_.bytes); }
  void InitStartBufHandle(TBufHandle, std::uint8_t, std::uint32_t) {}
  template <class Pool>
  void InitBufHandle(Pool *pool, std::uint32_t, TBufHandle, std::uint32_t curPoolAddr,
                     std::uint32_t len, twin::Site site = twin::Here()) {
    view_ = twin::PlaceBuffer({"InitBufHandle", site}, pool->Id(), position, curPoolAddr, len);
  }

  static constexpr TPosition Position() { return position; }
  void Bind(const twin::View &view) { view_ = view; }
  TBuffAddr GetBufferAddr(TBufHandle) const {
    TBuffAddr place;
    place.logicPos = static_cast<std::uint8_t>(position);
    place.dataLen = GetBufLen();
    place.view = view_;
    return place;
  }

 private:
  twin::View view_;
};

}  // namespace AscendC
