// LocalTensor and GlobalTensor.
#pragma once

#include "twin/params.h"
#include "twin/runtime.h"

namespace AscendC {

template <typename T>
class LocalTensor;

}  // namespace AscendC

namespace twin {

inline void ReadElementOf(const View &view, std::int64_t index, int size, void *out) {
  ReadElement({"LocalTensor", LastSite()}, view, index, size, out);
}
inline void WriteElementOf(const View &view, std::int64_t index, int size, const void *in) {
  WriteElement({"LocalTensor", LastSite()}, view, index, size, in);
}
inline void ReadElementOf(const Gm &gm, std::int64_t index, int size, void *out) {
  ReadGm({"GlobalTensor", LastSite()}, gm, index, size, out);
}
inline void WriteElementOf(const Gm &gm, std::int64_t index, int size, const void *in) {
  WriteGm({"GlobalTensor", LastSite()}, gm, index, size, in);
}

// Where element `index` of a tensor will be read or written: what operator() returns.
template <typename T, typename Place = View>
class Element {
 public:
  using TwinNumber = T;
  Element(const Place &place, std::int64_t index) : place_(place), index_(index) {}
  Element(const Element &) = default;
  Element &operator=(const Element &other) {  // the value, not the place
    const T value = other;
    WriteElementOf(place_, index_, sizeof(T), &value);
    return *this;
  }
  operator T() const {
    T value;
    ReadElementOf(place_, index_, sizeof(T), &value);
    return value;
  }
  template <typename U, std::enable_if_t<std::is_arithmetic_v<U> && !std::is_arithmetic_v<T>, int> = 0>
  explicit operator U() const {
    return static_cast<U>(static_cast<T>(*this));
  }
  const Element &operator=(T value) const {
    WriteElementOf(place_, index_, sizeof(T), &value);
    return *this;
  }
#define TWIN_UPDATE(sign)                                  \
  template <typename V>                                    \
  const Element &operator sign##=(V value) const {         \
    return *this = static_cast<T>(T(*this) sign value);    \
  }
  TWIN_UPDATE(+)
  TWIN_UPDATE(-)
  TWIN_UPDATE(*)
  TWIN_UPDATE(/)
  TWIN_UPDATE(|)
  TWIN_UPDATE(&)
  TWIN_UPDATE(^)
#undef TWIN_UPDATE

 private:
  Place place_;
  std::int64_t index_;
};

// What `a + b` on tensors means until it is assigned: then all of the destination is computed.
template <typename T>
struct WholeTensor {
  Op op;
  View a, b;
  const char *symbol;
};

// The same for `a < b`: bits of all elements of the sources.
template <typename T>
struct WholeCompare {
  AscendC::CMPMODE mode;
  View a, b;
  const char *symbol;
};

template <typename T>
const View &ViewOf(const AscendC::LocalTensor<T> &tensor);
template <typename T>
Lane LaneOf(const AscendC::LocalTensor<T> &tensor, std::int64_t block = 1,
            std::int64_t repeat = 8) {
  return {ViewOf(tensor), block, repeat};
}

}  // namespace twin

namespace AscendC {

using TBufHandle = std::uint8_t *;

// Where a tensor lies: `bufferAddr` as kernels set it from an address, `view` from a TBuf.
struct TBuffAddr {
  std::uint8_t logicPos = 0;
  TBufHandle bufferHandle = nullptr;
  std::uint32_t dataLen = 0;
  std::uint64_t bufferAddr = 0;
  twin::View view;
  void *Local() const { return reinterpret_cast<void *>(bufferAddr); }
};

template <typename T>
class LocalTensor {
 public:
  using PrimType = T;
  static_assert(twin::kElement<T>, "this type cannot be the element type of a tensor on dav-2201");

  LocalTensor() = default;
  // A tensor at a fixed place, without a pipe.
  LocalTensor(TPosition position, std::uint32_t address, std::uint32_t count) {
    view_.addr = address;
    view_.bytes = twin::BytesFor<T>(count);
    view_.position = position;
    twin::NotePlaced(position, view_.addr, view_.bytes);
  }
  explicit LocalTensor(const twin::View &view) : view_(view) {}
  const LocalTensor &operator=(const twin::WholeTensor<T> &value) const {
    twin::VectorOp({value.symbol, twin::LastSite()}, value.op, twin::TagOf<T>(), {view_},
                   {value.a}, {value.b}, twin::Counted(GetSize()));
    return *this;
  }

  template <typename U>
  const LocalTensor &operator=(const twin::WholeCompare<U> &value) const {
    static_assert(twin::kOneOf<T, std::uint8_t, std::int8_t>,
                  "a comparison writes its bits to uint8_t or int8_t");
    const twin::Lane b{value.b};
    twin::CompareOp({value.symbol, twin::LastSite()}, twin::TagOf<U>(), value.mode, view_,
                    {value.a}, &b, nullptr, twin::Counted(LocalTensor<U>(value.a).GetSize()));
    return *this;
  }

  // The tensor from an element offset on.
  LocalTensor operator[](std::uint32_t offset) const {
    LocalTensor rest = *this;
    rest.view_.addr += twin::BytesFor<T>(offset);
    rest.view_.bytes -= twin::BytesFor<T>(offset);
    return rest;
  }
  T GetValue(std::uint32_t index, twin::Site site = twin::Here()) const {
    T value;
    twin::ReadElement({"GetValue", site}, view_, index, sizeof(T), &value);
    return value;
  }
  template <typename V>
  void SetValue(std::uint32_t index, V value, twin::Site site = twin::Here()) const {
    const T element = static_cast<T>(value);
    twin::WriteElement({"SetValue", site}, view_, index, sizeof(T), &element);
  }
  twin::Element<T> operator()(std::uint32_t index) const { return {view_, index}; }

  template <typename U>
  LocalTensor<U> ReinterpretCast() const {
    LocalTensor<U> other(view_);
    return other;
  }
  void SetAddr(const TBuffAddr &place) {
    view_ = place.view.bytes > 0 ? place.view : twin::RawView(place.Local());
  }
  TBufHandle GetBufferHandle() const { return nullptr; }  // TBuf has one buffer
  template <typename U>
  void SetAddrWithOffset(const LocalTensor<U> &source, std::uint32_t offset) {
    view_ = twin::ViewOf(source);
    view_.addr += static_cast<std::int64_t>(offset) * static_cast<std::int64_t>(sizeof(U));
    view_.bytes -= static_cast<std::int64_t>(offset) * static_cast<std::int64_t>(sizeof(U));
  }

  std::uint32_t GetSize() const {
    return static_cast<std::uint32_t>(view_.bytes * twin::kPacked<T> / kSize);
  }
  void SetSize(std::uint32_t count) { view_.bytes = twin::BytesFor<T>(count); }
  std::uint32_t GetLength() const { return static_cast<std::uint32_t>(view_.bytes); }
  void SetBufferLen(std::uint32_t count) { SetSize(count); }
  // doc: a number on the NPU; offset in elements
  std::uint64_t GetPhyAddr() const {
    return reinterpret_cast<std::uint64_t>(twin::LocalPointer(view_.position, view_.addr));
  }
  std::uint64_t GetPhyAddr(std::uint32_t offset) const {
    return GetPhyAddr() + static_cast<std::uint64_t>(twin::BytesFor<T>(offset));
  }
  std::int32_t GetPosition() const { return static_cast<std::int32_t>(view_.position); }
  void SetUserTag(std::int32_t tag) { tag_ = tag; }
  std::int32_t GetUserTag() const { return tag_; }
  void SetShapeInfo(const ShapeInfo &shape) { shape_ = shape; }
  ShapeInfo GetShapeInfo() const { return shape_; }

  const twin::View &view() const { return view_; }

 private:
  static constexpr std::int64_t kSize = sizeof(T);
  twin::View view_;
  std::int32_t tag_ = 0;
  ShapeInfo shape_;
};

template <typename T>
class GlobalTensor {
 public:
  using PrimType = T;

  GlobalTensor() = default;
  void SetGlobalBuffer(__gm__ T *buffer) { gm_ = {Bytes(buffer), -1, 0}; }
  void SetGlobalBuffer(__gm__ T *buffer, std::uint64_t count) {
    gm_ = {Bytes(buffer), twin::BytesFor<T>(static_cast<std::int64_t>(count)), 0};
  }
  GlobalTensor operator[](std::uint64_t offset) const {
    GlobalTensor rest = *this;
    const std::int64_t bytes = twin::BytesFor<T>(static_cast<std::int64_t>(offset));
    rest.gm_.base += bytes;
    if (gm_.bytes >= 0) rest.gm_.bytes = bytes > gm_.bytes ? 0 : gm_.bytes - bytes;
    return rest;
  }
  T GetValue(std::uint64_t index, twin::Site site = twin::Here()) const {
    T value;
    twin::ReadGm({"GetValue", site}, gm_, static_cast<std::int64_t>(index), sizeof(T), &value);
    return value;
  }
  void SetValue(std::uint64_t index, T value, twin::Site site = twin::Here()) const {
    twin::WriteGm({"SetValue", site}, gm_, static_cast<std::int64_t>(index), sizeof(T), &value);
  }
  // A place for numbers, which `=` may write; a struct is read as a whole.
  auto operator()(std::uint64_t index) const {
    if constexpr (std::is_arithmetic_v<T>) {
      return twin::Element<T, twin::Gm>(gm_, static_cast<std::int64_t>(index));
    } else {
      return GetValue(index);
    }
  }

  __gm__ T *GetPhyAddr() const { return reinterpret_cast<T *>(gm_.base); }
  __gm__ T *GetPhyAddr(std::uint64_t offset) const { return GetPhyAddr() + offset; }
  std::uint64_t GetSize() const {
    return gm_.bytes < 0 ? 0 : static_cast<std::uint64_t>(gm_.bytes * twin::kPacked<T>) / sizeof(T);
  }
  void SetShapeInfo(const ShapeInfo &shape) { shape_ = shape; }
  ShapeInfo GetShapeInfo() const { return shape_; }
  // Cache hints change time, not values.
  template <CacheRwMode kinds = CacheRwMode::RW>
  void SetL2CacheHint(CacheMode mode) {
    const auto bits = static_cast<std::uint8_t>(kinds);
    const bool off = mode == CacheMode::CACHE_MODE_DISABLE;
    gm_.uncached = static_cast<std::uint8_t>(off ? gm_.uncached | bits : gm_.uncached & ~bits);
  }

  const twin::Gm &gm() const { return gm_; }

 private:
  static std::uint8_t *Bytes(__gm__ T *buffer) {
    return reinterpret_cast<std::uint8_t *>(const_cast<std::remove_cv_t<T> *>(buffer));
  }
  twin::Gm gm_;
  ShapeInfo shape_;
};

}  // namespace AscendC

namespace twin {

template <typename T>
const View &ViewOf(const AscendC::LocalTensor<T> &tensor) {
  return tensor.view();
}

}  // namespace twin
