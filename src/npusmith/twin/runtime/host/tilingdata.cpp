// Layout and serialisation of macro-declared tiling structs.
#include "register/tilingdata_base.h"

namespace optiling {

namespace {
std::size_t Up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }
}  // namespace

TilingDef::TilingDef(const char *name) : name_(name) {}
TilingDef::TilingDef(const TilingDef &) = default;
TilingDef &TilingDef::operator=(const TilingDef &) = default;
TilingDef::~TilingDef() = default;

std::size_t TilingDef::Place(const char *type, const char *name, std::size_t bytes,
                             std::size_t count) {
  const std::size_t offset = Up(size_, bytes);
  size_ = offset + bytes * count;
  data_.resize(GetDataSize() / sizeof(std::uint64_t));
  fields_.push_back({type, name, count, offset, bytes * count});
  return offset;
}

std::size_t TilingDef::PlaceStruct(const char *type, const char *name, const TilingDef &nested,
                                   std::ptrdiff_t distance) {
  const std::size_t offset = Up(size_, sizeof(std::uint64_t));
  size_ = offset + nested.GetDataSize();
  data_.resize(GetDataSize() / sizeof(std::uint64_t));
  fields_.push_back({type, name, 1, offset, nested.GetDataSize()});
  nested_.push_back({distance, offset});
  return offset;
}

void TilingDef::SaveToBuffer(void *buffer, std::size_t capacity) {
  for (const Nested &item : nested_) {
    auto *member = reinterpret_cast<TilingDef *>(reinterpret_cast<char *>(this) + item.distance);
    member->SaveToBuffer(Bytes() + item.offset, member->GetDataSize());
  }
  if (buffer == nullptr || buffer == Bytes() || capacity < GetDataSize()) return;
  std::memcpy(buffer, Bytes(), GetDataSize());
}

void TilingDef::SetDataPtr(void *data) {
  if (data == nullptr) return;
  outside_ = static_cast<std::uint8_t *>(data);
  std::memcpy(outside_, data_.data(), GetDataSize());
  for (const Nested &item : nested_) {
    auto *member = reinterpret_cast<TilingDef *>(reinterpret_cast<char *>(this) + item.distance);
    member->SetDataPtr(outside_ + item.offset);
  }
}

}  // namespace optiling
