// The buffer that tiling writes and the kernel reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gert {

class TilingData {
 public:
  TilingData(void *data, std::size_t capacity) : data_(data), capacity_(capacity) {}
  void *GetData() { return data_; }
  const void *GetData() const { return data_; }
  std::size_t GetCapacity() const { return capacity_; }
  std::size_t GetDataSize() const { return size_; }
  void SetDataSize(std::size_t size) { size_ = size; }
  template <typename T>
  std::uint32_t Append(const T &value) {
    if (size_ + sizeof(T) > capacity_) return 0xFFFFFFFFU;
    std::memcpy(static_cast<char *>(data_) + size_, &value, sizeof(T));
    size_ += sizeof(T);
    return 0;
  }

 private:
  void *data_;
  std::size_t capacity_;
  std::size_t size_ = 0;
};

}  // namespace gert
