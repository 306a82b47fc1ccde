// Kernel-side tiling: reading the host's struct, choosing a branch by tiling key, workspace.
#pragma once

#include "twin/runtime.h"

namespace twin {

// Set by REGISTER_TILING_DEFAULT in the kernel, or by a global `using` that the build generates.
template <typename T>
T ReadTiling(const void *source, Site site = Here()) {
  T data;
  CopyTiling({"GET_TILING_DATA", site}, &data, source, sizeof(T));
  return data;
}

template <typename T>
const void *PlaceOf(const T *source) { return source; }
template <typename T, std::enable_if_t<std::is_class_v<T>, int> = 0>
const void *PlaceOf(const T &source) { return &source; }

template <typename T>
void ReadTilingArray(const void *source, void *target, std::size_t count, Site site = Here()) {
  CopyTiling({"COPY_TILING_WITH_ARRAY", site}, target, source,
             static_cast<std::int64_t>(count * sizeof(T)));
}

}  // namespace twin

#define REGISTER_TILING_DEFAULT(type) using TwinTilingDefault = type
#define REGISTER_TILING_FOR_TILINGKEY(expression, type) static_assert(sizeof(type) > 0, "")
#define REGISTER_NONE_TILING static_assert(true, "")

#define GET_TILING_DATA(variable, pointer) \
  TwinTilingDefault variable = ::twin::ReadTiling<TwinTilingDefault>(pointer)
#define GET_TILING_DATA_WITH_STRUCT(type, variable, pointer) \
  type variable = ::twin::ReadTiling<type>(pointer)
#define GET_TILING_DATA_MEMBER(type, member, variable, pointer) \
  decltype(type::member) variable = ::twin::ReadTiling<type>(pointer).member
#define GET_TILING_DATA_PTR_WITH_STRUCT(type, variable, pointer) \
  const __gm__ type *variable = reinterpret_cast<const __gm__ type *>(pointer)
// These declare `target`, a pointer to a copy; the source is a pointer or the thing itself.
#define COPY_TILING_WITH_STRUCT(type, source, target)                              \
  type target##Copy = ::twin::ReadTiling<type>(::twin::PlaceOf(source));           \
  const type *target = &target##Copy
#define COPY_TILING_WITH_ARRAY(type, count, source, target)                        \
  type target##Copy[count];                                                        \
  ::twin::ReadTilingArray<type>(::twin::PlaceOf(source), target##Copy, (count));   \
  const type(*target)[count] = &target##Copy

// Every branch compiles; the launch's key chooses at run time.
#define TILING_KEY_IS(key) (::twin::TilingKey() == static_cast<std::uint64_t>(key))
#define TILING_KEY_LIST(first, second) (TILING_KEY_IS(first) || TILING_KEY_IS(second))
#define TILING_KEY_VAR (::twin::TilingKey())

#define KERNEL_TASK_TYPE_DEFAULT(type) static_assert(::AscendC::type >= 0, "kernel type")
#define KERNEL_TASK_TYPE(key, type) static_assert(::AscendC::type >= 0, "kernel type")

namespace AscendC {

inline void SetSysWorkspace(GM_ADDR workspace) { twin::SetWorkspace(workspace); }
inline void SetSysWorkSpace(GM_ADDR workspace) { twin::SetWorkspace(workspace); }
inline void SetSysWorkspaceForce(GM_ADDR workspace) { twin::SetWorkspace(workspace); }
inline GM_ADDR GetSysWorkSpacePtr() { return static_cast<GM_ADDR>(twin::Workspace()); }
// The user's part begins after the system's area.
inline GM_ADDR GetUserWorkspace(GM_ADDR workspace) {
  return workspace == nullptr ? nullptr : workspace + TWIN_SYSTEM_WORKSPACE_BYTES;
}

}  // namespace AscendC

namespace twin {
// What a build with HAVE_WORKSPACE puts in front of a kernel's body.
template <typename T>
void TakeWorkspace(T *&workspace) {
  SetWorkspace((void *)(workspace));
  workspace = (T *)(AscendC::GetUserWorkspace((GM_ADDR)(workspace)));
}
}  // namespace twin

using AscendC::GetSysWorkSpacePtr;
using AscendC::GetUserWorkspace;
using AscendC::SetSysWorkspace;
