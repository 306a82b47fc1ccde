// What a TilingParse function fills: the compile info that tiling reads later.
#pragma once

#include "exe_graph/runtime/context.h"

namespace gert {

class TilingParseContext : public KernelContext {
 public:
  using KernelContext::KernelContext;
  template <typename T>
  T *GetCompiledInfo() { return static_cast<T *>(CompiledInfo()); }
  const char *GetCompiledJson() const { return "{}"; }
  fe::PlatFormInfos *GetPlatformInfo() const;

 private:
  void *CompiledInfo() const;
};

}  // namespace gert
