// Global memory of a run: every allocation stands alone between inaccessible pages, and the rest of
// its last page holds a pattern that is looked at after the run.
#pragma once

#include <cstdint>
#include <string>

namespace twin::host {

class Area {
 public:
  // Throws std::runtime_error when the file or the memory cannot be had.
  // Of an open file, which may be closed then.
  static Area OfFile(const std::string &name, int file, std::uint64_t bytes, bool writable);
  static Area OfPoison(const std::string &name, std::uint64_t bytes);  // as uninitialised memory
  static Area OfBytes(const std::string &name, const void *from, std::uint64_t bytes);

  std::uint8_t *Base() const { return base_; }
  std::uint64_t Bytes() const { return bytes_; }
  const std::string &Name() const { return name_; }
  bool Writable() const { return writable_; }
  // Bytes behind the end that a kernel may touch without a fault.
  // torch_npu's allocator gives the size and 32 B more, rounded up to 512 B
  std::uint64_t Padding() const { return bytes_ == 0 ? 0 : (bytes_ + 32 + 511) / 512 * 512 - bytes_; }
  void Poison();
  // Whether anybody may touch it; without, every access is a fault.
  void Allow(bool access);
  // How far behind the end the first changed byte of the pattern is, counted from 1; 0: it is whole.
  std::uint64_t Overrun() const;
  // Gives the memory back; areas are handles and do not do it by themselves.
  void Release();
  // Is this address in the area or in the pages that surround it?
  bool Near(const void *address) const;

 private:
  Area(const std::string &name, std::uint64_t bytes, bool writable);
  void Protect();

  std::string name_;
  std::uint64_t bytes_;
  std::uint64_t span_;  // bytes, rounded up to pages
  bool writable_;
  std::uint8_t *base_;
};

}  // namespace twin::host
