// CPU tensors as device memory: each stands alone between pages that fault, is filled with a NaN
// pattern, and is known to the twin, so that a kernel launched with its address is checked.
#include "torch.hpp"

#include <c10/core/CPUAllocator.h>

#include "../acl/acl.h"

extern "C" void twin_embed(const char *path, double seconds);
extern "C" void twin_embed_report();

namespace {

void Free(void *memory) { aclrtFree(memory); }

struct Device final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    void *memory = nullptr;
    const bool failed =
        bytes > 0 && aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_NORMAL_ONLY) != ACL_SUCCESS;
    TORCH_CHECK(!failed, "not enough memory for ", bytes, " bytes");
    return {memory, memory, bytes > 0 ? &Free : nullptr, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void *target, const void *source, std::size_t bytes) const override {
    default_copy_data(target, source, bytes);
  }
};
Device device;

void Start(const std::string &report, double seconds) {
  c10::SetCPUAllocator(&device, 100);
  twin_embed(report.c_str(), seconds);
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("start", &Start);
  module.def("report", &twin_embed_report);
}
