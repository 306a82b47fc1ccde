// Events between pipes, barriers, synchronisation of cores, who and how many we are.
#pragma once

#include "twin/tensor.h"

namespace AscendC {

template <HardEvent event>
void SetFlag(std::int64_t id, twin::Site site = twin::Here()) {
  twin::SetEvent({"SetFlag", site}, event, id);
}
template <HardEvent event>
void WaitFlag(std::int64_t id, twin::Site site = twin::Here()) {
  twin::WaitEvent({"WaitFlag", site}, event, id);
}
template <pipe_t pipe>
void PipeBarrier(twin::Site site = twin::Here()) {
  twin::Barrier({"PipeBarrier", site}, pipe);
}
enum class MemDsbT : std::uint8_t { ALL, DDR, UB, SEQ };
template <MemDsbT = MemDsbT::ALL>
void DataSyncBarrier(twin::Site site = twin::Here()) {
  twin::Barrier({"DataSyncBarrier", site}, PIPE_ALL);
}

template <bool isAIVOnly = true>
void SyncAll(twin::Site site = twin::Here()) {
  twin::SyncCores({"SyncAll", site}, !isAIVOnly);
}
template <bool isAIVOnly = true>
void SyncAll(const GlobalTensor<std::int32_t> &gmWorkspace,
             const LocalTensor<std::int32_t> &ubWorkspace, std::int32_t usedCores = 0,
             twin::Site site = twin::Here()) {
  static_assert(isAIVOnly, "SyncAll with a workspace synchronises vector cores only");
  twin::SoftSync({"SyncAll", site}, gmWorkspace.gm(), ubWorkspace.view(), usedCores);
}
template <bool isAIVOnly = true>
void IBSet(const GlobalTensor<std::int32_t> &gmWorkspace, const LocalTensor<std::int32_t> &,
           std::int32_t block, std::int32_t event, twin::Site site = twin::Here()) {
  twin::BlockSet({"IBSet", site}, gmWorkspace.gm(), block, event);
}
template <bool isAIVOnly = true>
void IBWait(const GlobalTensor<std::int32_t> &gmWorkspace, const LocalTensor<std::int32_t> &,
            std::int32_t block, std::int32_t event, twin::Site site = twin::Here()) {
  twin::BlockWait({"IBWait", site}, gmWorkspace.gm(), block, event);
}
template <std::uint8_t mode, pipe_t pipe>
void CrossCoreSetFlag(std::int64_t id, twin::Site site = twin::Here()) {
  static_assert(mode <= 2, "CrossCoreSetFlag on dav-2201 has modes 0, 1 and 2");
  static_assert(pipe != PIPE_S && pipe != PIPE_ALL,
                "CrossCoreSetFlag on dav-2201 takes PIPE_V, M, MTE1, MTE2, MTE3 or FIX");
  twin::CrossSet({"CrossCoreSetFlag", site}, mode, pipe, id);
}
template <std::uint8_t mode = 0, pipe_t pipe = PIPE_S>
void CrossCoreWaitFlag(std::int64_t id, twin::Site site = twin::Here()) {
  twin::CrossWait({"CrossCoreWaitFlag", site}, id);
}
// A flag of mode 2: between a block's cube core and its vector cores.
template <pipe_t pipe>
void NotifyEvent(std::int64_t id, twin::Site site = twin::Here()) {
  twin::CrossSet({"NotifyEvent", site}, 2, pipe, id);
}
template <std::uint8_t mode, pipe_t pipe>
void NotifyEvent(std::int64_t id, twin::Site site = twin::Here()) {
  twin::CrossSet({"NotifyEvent", site}, mode, pipe, id);
}
inline void WaitEvent(std::int64_t id, twin::Site site = twin::Here()) {
  twin::CrossWait({"WaitEvent", site}, id);
}

// ---- vector cores one after the other, in the order of their indices

inline void InitDetermineComputeWorkspace(GlobalTensor<std::int32_t> &gmWorkspace,
                                          LocalTensor<std::int32_t> &ubWorkspace,
                                          twin::Site site = twin::Here()) {
  twin::InitTurns({"InitDetermineComputeWorkspace", site}, gmWorkspace.gm(), ubWorkspace.view());
}
inline void WaitPreBlock(GlobalTensor<std::int32_t> &gmWorkspace,
                         LocalTensor<std::int32_t> &ubWorkspace, twin::Site site = twin::Here()) {
  twin::WaitTurn({"WaitPreBlock", site}, gmWorkspace.gm(), ubWorkspace.view());
}
inline void NotifyNextBlock(GlobalTensor<std::int32_t> &gmWorkspace,
                            LocalTensor<std::int32_t> &ubWorkspace,
                            twin::Site site = twin::Here()) {
  twin::PassTurn({"NotifyNextBlock", site}, gmWorkspace.gm(), ubWorkspace.view());
}

// ---- which core this is

inline std::int64_t GetBlockIdx() { return twin::BlockIndex(); }
inline std::int64_t GetBlockNum() { return twin::BlockCount(); }
inline std::int64_t GetSubBlockIdx() { return twin::SubIndex(); }
inline std::int64_t GetSubBlockNum() { return twin::SubCount(); }
inline std::int64_t GetTaskRatio() { return twin::SubCount(); }
inline std::int64_t GetTaskRation() { return twin::SubCount(); }
inline std::int64_t GetSystemCycle() { return twin::Cycles(); }
// Between kernels of one super kernel: an operator that is run by itself waits for nobody.
inline void WaitPreTaskEnd() {}
inline void SetNextTaskStart() {}
inline void Barrier() {}  // for the compiler alone: no pipe waits
constexpr std::int16_t GetDataBlockSizeInBytes() { return ONE_BLK_SIZE; }

// Cores of the twin see each other's writes at once; that this was needed is checked all the same.
template <typename T, CacheLine line = CacheLine::SINGLE_CACHE_LINE,
          DcciDst target = DcciDst::CACHELINE_ALL>
void DataCacheCleanAndInvalid(const GlobalTensor<T> &tensor, twin::Site site = twin::Here()) {
  twin::CleanCache({"DataCacheCleanAndInvalid", site}, tensor.gm(), sizeof(T),
                   line == CacheLine::ENTIRE_DATA_CACHE);
}
template <typename T>
void DataCachePreload(const GlobalTensor<std::uint64_t> &tensor, T offset,
                      twin::Site site = twin::Here()) {
  const auto element = tensor[static_cast<std::uint64_t>(offset) / sizeof(std::uint64_t)];
  twin::CheckGm({"DataCachePreload", site}, element.gm(), 1);
}
inline void ICachePreLoad(std::int64_t) {}

}  // namespace AscendC
