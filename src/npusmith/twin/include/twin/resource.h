// Memory beside queues and buffers: pools that share a piece, tensors without a pipe, spilling.
#pragma once

#include "twin/queue.h"

namespace twin {

// A pool is a piece of a memory that InitBuffer divides; -1 is the pipe itself.
int OpenPool(const Call &call, int parent, AscendC::TPosition position, std::int64_t bytes,
             int shared);
void EnterPool(const Call &call, int pool);  // the next InitBuffer takes from it
void LeavePool(const Call &call, int pool);
// Ends what its queues have begun; `gone`: its buffers are not used again without InitBuffer.
void ResetPool(const Call &call, int pool, bool gone);
std::int64_t PoolAddress(const Call &call, int pool);
// A handle that a pool of the kernel's own has not: `index` of its `count`.
void CheckHandle(const Call &call, int index, int count);
// Tensors at fixed places, one after the other.
View PlaceTensor(const Call &call, AscendC::TPosition position, std::int64_t addr,
                 std::int64_t bytes);
// The rest of UB; what an earlier call took is no longer valid.
View PopStack(const Call &call, AscendC::TPosition position);

}  // namespace twin

namespace twin {

// What EXTERN_IMPL_BUFPOOL keeps: which piece of memory, up to where it is given out, and how many
// of its `count` handles are taken. The kernel's own InitBuffer divides the piece.
template <AscendC::TPosition position, int count>
class OwnPool {
 public:
  void Bind(int id, Site site = Here()) {
    id_ = id;
    addr_ = static_cast<std::uint32_t>(PoolAddress({"InitBufPool", site}, id));
    taken_ = 0;
  }
  int Id() const { return id_; }
  void Reset(Site site) {
    ResetPool({"TBufPool::Reset", site}, id_, true);
    Bind(id_, site);
  }
  AscendC::TBufHandle Handle(std::uint8_t index, Site site) {
    CheckHandle({"GetBufHandle", site}, index, count);
    return handles_ + (index < count ? index : 0);
  }
  std::uint32_t addr_ = 0;
  std::uint8_t taken_ = 0;

 private:
  int id_ = -1;
  std::uint8_t handles_[count] = {};
};

}  // namespace twin

// The members of a pool class of the kernel's own, beside its InitBuffer.
#define EXTERN_IMPL_BUFPOOL(EXT_BUFPOOL, POSITION, BUFID_SIZE)                                  \
 public:                                                                                        \
  void Init() {}                                                                                \
  void Reset(::twin::Site site = ::twin::Here()) { twinPool_.Reset(site); }                     \
  ::AscendC::TBufHandle GetBufHandle(std::uint8_t offset, ::twin::Site site = ::twin::Here()) { \
    return twinPool_.Handle(offset, site);                                                      \
  }                                                                                             \
  void SetCurAddr(std::uint32_t curAddr) { twinPool_.addr_ = curAddr; }                         \
  std::uint32_t GetCurAddr() { return twinPool_.addr_; }                                        \
  void SetCurBufSize(std::uint8_t curBufSize) { twinPool_.taken_ = curBufSize; }                \
  std::uint8_t GetCurBufSize() { return twinPool_.taken_; }                                     \
  static constexpr ::AscendC::TPosition Position() { return POSITION; }                         \
  void Bind(int id, ::twin::Site site = ::twin::Here()) { twinPool_.Bind(id, site); }           \
  int Id() const { return twinPool_.Id(); }                                                     \
                                                                                                \
 private:                                                                                       \
  ::twin::OwnPool<POSITION, BUFID_SIZE> twinPool_

namespace AscendC {

enum class Hardware : std::uint8_t { GM, UB, L1, L0A, L0B, L0C, BIAS, FIXBUF, MAX };

constexpr std::uint32_t QBUFPOOL_MAX_LEN = 16;

// A piece of the pipe's memory with buffers of its own; two pools may share their piece.
template <TPosition pos, std::uint32_t bufIDSize = 4>
class TBufPool {
 public:
  template <class Pool>
  bool InitBufPool(Pool &pool, std::uint32_t len, twin::Site site = twin::Here()) {
    pool.Bind(twin::OpenPool({"InitBufPool", site}, id_, Pool::Position(), len, -1));
    return true;
  }
  template <class Pool, class Shared>
  bool InitBufPool(Pool &pool, std::uint32_t len, Shared &shareBuf,
                   twin::Site site = twin::Here()) {
    pool.Bind(twin::OpenPool({"InitBufPool", site}, id_, Pool::Position(), len, shareBuf.Id()));
    return true;
  }
  template <TPosition source, TPosition target, std::int32_t depth, auto mask>
  bool InitBuffer(TQueBind<source, target, depth, mask> &queue, twin::Byte num, std::uint32_t len,
                  twin::Site site = twin::Here()) {
    const twin::Call call{"InitBuffer", site};
    twin::EnterPool(call, id_);
    using Queue = TQueBind<source, target, depth, mask>;
    queue.Bind(twin::OpenQueue(call, Queue::Shape(), num.value, len));
    twin::LeavePool(call, id_);
    return true;
  }
  template <TPosition position>
  bool InitBuffer(TBuf<position> &buffer, std::uint32_t len, twin::Site site = twin::Here()) {
    const twin::Call call{"InitBuffer", site};
    twin::EnterPool(call, id_);
    buffer.Bind(twin::OpenBuffer(call, position, len));
    twin::LeavePool(call, id_);
    return true;
  }
  void Reset(twin::Site site = twin::Here()) { twin::ResetPool({"TBufPool::Reset", site}, id_, false); }

  static constexpr TPosition Position() { return pos; }
  void Bind(int id) { id_ = id; }
  int Id() const { return id_; }

 private:
  int id_ = -1;
};

// Tensors one after the other from address 0 on, without a pipe.
template <Hardware hard = Hardware::UB>
class LocalMemAllocator {
 public:
  template <TPosition position, typename T, std::uint32_t tileSize>
  LocalTensor<T> Alloc(twin::Site site = twin::Here()) {
    return Place<T>(position, tileSize, site);
  }
  template <typename T, std::uint32_t tileSize>
  LocalTensor<T> Alloc(twin::Site site = twin::Here()) {
    return Place<T>(Natural(), tileSize, site);
  }
  template <TPosition position, typename T>
  LocalTensor<T> Alloc(std::uint32_t tileSize, twin::Site site = twin::Here()) {
    return Place<T>(position, tileSize, site);
  }
  template <typename T>
  LocalTensor<T> Alloc(std::uint32_t tileSize, twin::Site site = twin::Here()) {
    return Place<T>(Natural(), tileSize, site);
  }
  std::uint32_t GetCurAddr() const { return static_cast<std::uint32_t>(top_); }

 private:
  static constexpr TPosition Natural() {
    constexpr TPosition kPositions[] = {TPosition::MAX, TPosition::VECCALC, TPosition::A1,
                                        TPosition::A2,  TPosition::B2,      TPosition::CO1,
                                        TPosition::C2,  TPosition::C2PIPE2GM};
    static_assert(hard != Hardware::GM && hard != Hardware::MAX,
                  "LocalMemAllocator takes UB, L1, L0A, L0B, L0C, BIAS or FIXBUF");
    return kPositions[static_cast<int>(hard)];
  }
  template <typename T>
  LocalTensor<T> Place(TPosition position, std::uint32_t count, twin::Site site) {
    const std::int64_t bytes = twin::BytesFor<T>(count);
    const twin::View view = twin::PlaceTensor({"LocalMemAllocator::Alloc", site}, position, top_,
                                              bytes);
    top_ += (bytes + ONE_BLK_SIZE - 1) / ONE_BLK_SIZE * ONE_BLK_SIZE;
    return LocalTensor<T>(view);
  }
  std::int64_t top_ = 0;
};

}  // namespace AscendC
