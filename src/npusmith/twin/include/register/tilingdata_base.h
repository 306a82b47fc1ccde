// Tiling structs that host code declares with macros: set_ and get_ by name, then SaveToBuffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace optiling {

struct FieldInfo {
  std::string dtype_;
  std::string name_;
  std::size_t arrSize_;
  std::size_t offset_;
  std::size_t bytes_;
};

// Each field lies at a multiple of its element size, a nested struct at a multiple of 8, and the
// whole is padded to a multiple of 8 bytes.
class TilingDef {
 public:
  TilingDef(const TilingDef &);
  TilingDef &operator=(const TilingDef &);
  virtual ~TilingDef();
  void SaveToBuffer(void *buffer, std::size_t capacity);
  // From here on the fields lie at `data`, usually the launch's raw tiling, not in this object.
  void SetDataPtr(void *data);
  std::size_t GetDataSize() const { return (size_ + 7) / 8 * 8; }
  const std::vector<FieldInfo> &GetFieldInfo() const { return fields_; }
  const char *GetTilingClassName() const { return name_; }

 protected:
  explicit TilingDef(const char *name);
  std::size_t Place(const char *type, const char *name, std::size_t bytes, std::size_t count);
  std::size_t PlaceStruct(const char *type, const char *name, const TilingDef &nested,
                          std::ptrdiff_t distance);
  void Store(std::size_t offset, const void *from, std::size_t bytes) {
    std::memcpy(Bytes() + offset, from, bytes);
  }
  template <typename T>
  T Load(std::size_t offset) const {
    T value;
    std::memcpy(&value, Bytes() + offset, sizeof(T));
    return value;
  }
  std::uint8_t *Bytes() { return const_cast<std::uint8_t *>(std::as_const(*this).Bytes()); }
  const std::uint8_t *Bytes() const {
    return outside_ != nullptr ? outside_ : reinterpret_cast<const std::uint8_t *>(data_.data());
  }
  std::ptrdiff_t Distance(const void *member) const {
    return static_cast<const char *>(member) - reinterpret_cast<const char *>(this);
  }

 private:
  struct Nested {
    std::ptrdiff_t distance;  // of the member from this object, so that a copy stays right
    std::size_t offset;
  };
  const char *name_;
  std::size_t size_ = 0;
  std::vector<std::uint64_t> data_;
  std::uint8_t *outside_ = nullptr;  // of SetDataPtr
  std::vector<FieldInfo> fields_;
  std::vector<Nested> nested_;
};

// Keeps the class for the runner, which reports its layout; called by REGISTER_TILING_DATA_CLASS.
int AddTilingClass(const char *op, const TilingDef &instance);

}  // namespace optiling

#define BEGIN_TILING_DATA_DEF(class_name)                       \
  class class_name : public ::optiling::TilingDef {             \
   public:                                                      \
    class_name() : ::optiling::TilingDef(#class_name) {}

#define TILING_DATA_FIELD_DEF(data_type, field_name)                                       \
  void set_##field_name(data_type value) { Store(twin_##field_name, &value, sizeof(value)); } \
  data_type get_##field_name() const { return Load<data_type>(twin_##field_name); }         \
  std::size_t twin_##field_name = Place(#data_type, #field_name, sizeof(data_type), 1);

#define TILING_DATA_FIELD_DEF_ARR(data_type, arr_size, field_name)                     \
  void set_##field_name(const data_type *values) {                                     \
    Store(twin_##field_name, values, sizeof(data_type) * (arr_size));                  \
  }                                                                                    \
  data_type *get_##field_name() {                                                      \
    return reinterpret_cast<data_type *>(Bytes() + twin_##field_name);                 \
  }                                                                                    \
  std::size_t twin_##field_name = Place(#data_type, #field_name, sizeof(data_type), (arr_size));

#define TILING_DATA_FIELD_DEF_STRUCT(struct_type, field_name) \
  struct_type field_name;                                     \
  std::size_t twin_##field_name =                             \
      PlaceStruct(#struct_type, #field_name, field_name, Distance(&field_name));

#define END_TILING_DATA_DEF };  // many add a semicolon of their own, some do not

#define REGISTER_TILING_DATA_CLASS(op_type, class_name) \
  static const int twin_tiling_class_##op_type##_##class_name = \
      ::optiling::AddTilingClass(#op_type, class_name());
