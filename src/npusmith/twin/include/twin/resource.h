// Memory beside queues and buffers: pools that share a piece, tensors without a pipe, spilling.
#pragma once

#include "twin/queue.h"

namespace twin {

// A pool is a piece of a memory that InitBuffer divides; -1 is the pipe itself.
int OpenPool(const Call &call, int parent, AscendC::TPosition position, std::int64_t bytes,
             int shared);
void EnterPool(const Call &call, int pool);  // the next InitBuffer takes from it
void LeavePool(const Call &call, int pool);
void ResetPool(const Call &call, int pool);
// Tensors at fixed places, one after the other.
View PlaceTensor(const Call &call, AscendC::TPosition position, std::int64_t addr,
                 std::int64_t bytes);
// The rest of UB; what an earlier call took is no longer valid.
View PopStack(const Call &call, AscendC::TPosition position);

}  // namespace twin

namespace AscendC {

enum class Hardware : std::uint8_t { GM, UB, L1, L0A, L0B, L0C, BIAS, FIXBUF, MAX };

constexpr std::uint32_t QBUFPOOL_MAX_LEN = 16;

// A piece of the pipe's memory with buffers of its own; two pools may share their piece.
template <TPosition pos, std::uint32_t bufIDSize = 4>
class TBufPool {
 public:
  template <TPosition inner, std::uint32_t size>
  bool InitBufPool(TBufPool<inner, size> &pool, std::uint32_t len, twin::Site site = twin::Here()) {
    pool.Bind(twin::OpenPool({"InitBufPool", site}, id_, inner, len, -1));
    return true;
  }
  template <TPosition inner, std::uint32_t size, TPosition other, std::uint32_t otherSize>
  bool InitBufPool(TBufPool<inner, size> &pool, std::uint32_t len,
                   TBufPool<other, otherSize> &shareBuf, twin::Site site = twin::Here()) {
    pool.Bind(twin::OpenPool({"InitBufPool", site}, id_, inner, len, shareBuf.Id()));
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
  void Reset(twin::Site site = twin::Here()) { twin::ResetPool({"TBufPool::Reset", site}, id_); }

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
