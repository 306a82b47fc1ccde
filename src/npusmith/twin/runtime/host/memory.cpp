// Mapping of global memory.
#include "memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace twin::host {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kGuard = 1 << 20;  // inaccessible bytes on either side
constexpr std::uint64_t kPoisonChunk = 2 << 20;
constexpr std::uint16_t kPoison = 0x7FFF;  // a NaN as half, bfloat16 and float
constexpr std::uint8_t kPattern = 0xC7;

[[noreturn]] void Fail(const std::string &what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

void FillPoison(std::uint8_t *base, std::uint64_t bytes) {
  auto *words = reinterpret_cast<std::uint16_t *>(base);
  for (std::uint64_t at = 0; at < bytes / 2; ++at) words[at] = kPoison;
  if (bytes % 2 != 0) base[bytes - 1] = 0xFF;
}

// A file of poison that areas map copy-on-write: untouched workspace costs no memory. No memfd:
// the sandbox denies it, since no limit counts its memory.
int PoisonFile() {
  static const int file = [] {
    const char *folder = std::getenv("TMPDIR");
    std::string name = std::string(folder != nullptr ? folder : "/tmp") + "/poison-XXXXXX";
    const int fd = mkostemp(name.data(), O_CLOEXEC);
    if (fd < 0) Fail("file for poison in " + name);
    unlink(name.c_str());
    if (ftruncate(fd, kPoisonChunk) != 0) Fail("room for poison");
    void *base = mmap(nullptr, kPoisonChunk, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) Fail("mapping poison");
    FillPoison(static_cast<std::uint8_t *>(base), kPoisonChunk);
    munmap(base, kPoisonChunk);
    return fd;
  }();
  return file;
}

}  // namespace

Area::Area(const std::string &name, std::uint64_t bytes, bool writable)
    : name_(name),
      bytes_(bytes),
      span_((bytes + Padding() + kPage - 1) / kPage * kPage),
      writable_(writable) {
  void *space = mmap(nullptr, span_ + 2 * kGuard, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) Fail(name + ": address space for " + std::to_string(bytes) + " bytes");
  base_ = static_cast<std::uint8_t *>(space) + kGuard;
}

Area Area::OfFile(const std::string &name, int file, std::uint64_t bytes, bool writable) {
  Area area(name, bytes, writable);
  if (bytes == 0) return area;
  const int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void *at = mmap(area.base_, area.span_, access, MAP_SHARED | MAP_FIXED, file, 0);
  if (at == MAP_FAILED) Fail("mapping " + name);
  if (writable) area.Protect();
  return area;
}

Area Area::OfPoison(const std::string &name, std::uint64_t bytes) {
  Area area(name, bytes, true);
  for (std::uint64_t at = 0; at < area.span_; at += kPoisonChunk) {
    const std::uint64_t length = std::min(kPoisonChunk, area.span_ - at);
    void *got = mmap(area.base_ + at, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
                     PoisonFile(), 0);
    if (got == MAP_FAILED) Fail(name + ": " + std::to_string(bytes) + " bytes");
  }
  area.Protect();
  return area;
}

Area Area::OfBytes(const std::string &name, const void *from, std::uint64_t bytes) {
  Area area(name, bytes, false);
  if (bytes == 0) return area;
  void *at = mmap(area.base_, area.span_, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (at == MAP_FAILED) Fail(name + ": " + std::to_string(bytes) + " bytes");
  std::memcpy(area.base_, from, bytes);
  area.Protect();
  return area;
}

void Area::Protect() { std::memset(base_ + bytes_, kPattern, span_ - bytes_); }

void Area::Allow(bool access) {
  const int kind = !access ? PROT_NONE : writable_ ? PROT_READ | PROT_WRITE : PROT_READ;
  if (span_ > 0 && mprotect(base_, span_, kind) != 0) Fail(name_ + ": access");
}

void Area::Poison() { FillPoison(base_, bytes_); }

std::uint64_t Area::Overrun() const {
  if (!writable_) return 0;
  for (std::uint64_t at = bytes_; at < span_; ++at) {
    if (base_[at] != kPattern) return at - bytes_ + 1;
  }
  return 0;
}

void Area::Release() { munmap(base_ - kGuard, span_ + 2 * kGuard); }

bool Area::Near(const void *address) const {
  const auto *at = static_cast<const std::uint8_t *>(address);
  return at >= base_ - kGuard && at < base_ + span_ + kGuard;
}

}  // namespace twin::host
