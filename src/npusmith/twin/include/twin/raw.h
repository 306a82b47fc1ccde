// C-style names that kernels mix with the class API.
#pragma once

#include "twin/mask.h"
#include "twin/pipe.h"
#include "twin/reduce.h"
#include "twin/sync.h"

inline void pipe_barrier(pipe_t pipe, twin::Site site = twin::Here()) {
  twin::Barrier({"pipe_barrier", site}, pipe);
}
inline void set_flag(pipe_t first, pipe_t second, std::int64_t id, twin::Site site = twin::Here()) {
  const twin::Call call{"set_flag", site};
  twin::SetEvent(call, twin::EventBetween(call, first, second), id);
}
inline void wait_flag(pipe_t first, pipe_t second, std::int64_t id,
                      twin::Site site = twin::Here()) {
  const twin::Call call{"wait_flag", site};
  twin::WaitEvent(call, twin::EventBetween(call, first, second), id);
}
#define PRELOAD(lines) static_cast<void>(lines)  // of instructions: nothing to fetch here

namespace AscendC {
// Events between two pipes, by their ids.
template <pipe_t src, pipe_t dst>
class TQueSync {
 public:
  void SetFlag(TEventID id, twin::Site site = twin::Here()) { set_flag(src, dst, id, site); }
  void WaitFlag(TEventID id, twin::Site site = twin::Here()) { wait_flag(src, dst, id, site); }
};
}  // namespace AscendC
// Bits of `config`: 1, mode in 4..5, flag in 8..11.
inline void ffts_cross_core_sync(pipe_t pipe, std::uint64_t config,
                                 twin::Site site = twin::Here()) {
  twin::CrossSet({"ffts_cross_core_sync", site}, static_cast<int>(config >> 4 & 3), pipe,
                 static_cast<std::int64_t>(config >> 8 & 15));
}
inline void wait_flag_dev(std::int64_t id, twin::Site site = twin::Here()) {
  twin::CrossWait({"wait_flag_dev", site}, id);
}
inline void set_mask_norm(twin::Site site = twin::Here()) { AscendC::SetMaskNorm(site); }
inline void set_mask_count(twin::Site site = twin::Here()) { AscendC::SetMaskCount(site); }
inline void set_vector_mask(std::uint64_t high, std::uint64_t low,
                            twin::Site site = twin::Here()) {
  twin::SetMask({"set_vector_mask", site}, high, low);
}
inline void set_atomic_none(twin::Site site = twin::Here()) { AscendC::SetAtomicNone(site); }

inline std::int64_t get_block_idx() { return twin::GroupIndex(); }
inline std::int64_t get_block_num() { return twin::BlockCount(); }
inline std::int64_t get_subblockid() { return twin::SubIndex(); }
inline std::int64_t get_subblockdim() { return twin::SubCount(); }

namespace twin {

// Reads like a variable, so that a local variable of the same name may hide it.
template <std::int64_t (*read)()>
struct Live {
  operator std::int64_t() const { return read(); }
};

}  // namespace twin

inline constexpr twin::Live<twin::GroupIndex> block_idx{};
inline constexpr twin::Live<twin::BlockCount> block_num{};

// Sum of each repeat; under the mask register as it stands.
template <typename T>
void vcadd(__ubuf__ T *dst, __ubuf__ T *src, twin::Byte repeat, std::int64_t dstRepeatStride,
           std::int64_t srcBlockStride, std::int64_t srcRepeatStride, bool = false,
           twin::Site site = twin::Here()) {
  twin::FoldRepeat({"vcadd", site}, twin::Fold::kSum, twin::TagOf<T>(), twin::RawView(dst),
                   twin::RawView(src), twin::Masked(false, std::uint64_t{0}, repeat.value),
                   {dstRepeatStride, srcBlockStride, srcRepeatStride},
                   AscendC::ReduceOrder::ORDER_ONLY_VALUE);
}

// Without a destination the sum of all repeats goes to the accumulator register.
template <typename T>
void vcadd(std::nullptr_t, __ubuf__ T *src, twin::Byte repeat, std::int64_t,
           std::int64_t srcBlockStride, std::int64_t srcRepeatStride, bool = true,
           twin::Site site = twin::Here()) {
  twin::FoldToRegister({"vcadd", site}, twin::TagOf<T>(), twin::RawView(src),
                       twin::Masked(false, std::uint64_t{0}, repeat.value),
                       {0, srcBlockStride, srcRepeatStride});
}
inline std::int64_t get_acc_val() { return AscendC::GetAccVal(); }

namespace AscendC {

// The part of the internal helpers that published kernels call.
struct AscendCUtils {
  template <typename T>
  static void SetMask(std::int32_t length, twin::Site site = twin::Here()) {
    twin::SetMaskLength({"SetMask", site}, length, twin::TagOf<T>());
  }
  template <typename T>
  static void SetMask(std::uint64_t high, std::uint64_t low, twin::Site site = twin::Here()) {
    twin::SetMask({"SetMask", site}, high, low);
  }
  static void ResetMask(twin::Site site = twin::Here()) {
    twin::ResetMaskRegister({"ResetMask", site});
  }
  // 0: arithmetic saturates, 1: it overflows to infinity. The twin has one of them for a whole run.
  static void SetOverflow(std::uint64_t) {}
  template <typename T>
  static void SetMaskCount(twin::Site site = twin::Here()) {
    AscendC::SetMaskCount(site);
  }
  template <typename T>
  static void SetMaskNorm(twin::Site site = twin::Here()) {
    AscendC::SetMaskNorm(site);
  }
  static std::int32_t GetBitSize(std::int32_t bytes) { return bytes * 8; }
  static std::int32_t GetC0Size() { return ONE_BLK_SIZE; }
  static std::int32_t GetC0Count(std::int32_t size) { return ONE_BLK_SIZE / size; }
};

template <typename T>
__aicore__ constexpr std::int32_t AuxGetC0Size() {
  return static_cast<std::int32_t>(ONE_BLK_SIZE / sizeof(T));
}

// Where the flags between cores lie, and what a build with memory checks asks: nothing to do here.
inline void SetSyncBaseAddr(std::uint64_t) {}
template <typename T>
void OOMCheckAddrRange(__gm__ T *, std::uint64_t) {}
template <int cycles>
void Nop() {}

// Of blocks of 32 bytes, inside of the library: as BlockReduceMax, on addresses.
#define TWIN_BLOCK_FOLD(name, fold)                                                               \
  template <typename T>                                                                           \
  void name##IntrinsicsImpl(__ubuf__ T *dst, __ubuf__ T *src, std::int32_t repeat,                \
                            std::int64_t dstRepeatStride, std::int64_t srcBlockStride,            \
                            std::int64_t srcRepeatStride, twin::Site site = twin::Here()) {       \
    twin::FoldBlock({#name, site}, fold, twin::TagOf<T>(), twin::RawView(dst),                    \
                    twin::RawView(src), twin::Masked(false, std::uint64_t{0}, repeat),            \
                    {dstRepeatStride, srcBlockStride, srcRepeatStride});                          \
  }
TWIN_BLOCK_FOLD(BlockReduceMax, twin::Fold::kMax)
TWIN_BLOCK_FOLD(BlockReduceMin, twin::Fold::kMin)
TWIN_BLOCK_FOLD(BlockReduceSum, twin::Fold::kSum)
#undef TWIN_BLOCK_FOLD

}  // namespace AscendC

// Names that kernels use before, or without, `using namespace AscendC`.
using AscendC::GetBlockIdx;
using AscendC::GetBlockNum;
using AscendC::GetSubBlockIdx;
using AscendC::GetTPipePtr;
