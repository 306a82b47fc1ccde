// Conversion of attribute values.
#include "attrs.h"

#include <algorithm>
#include <cstring>

namespace twin::host {

namespace {

using ops::AttrKind;

bool IsList(AttrKind kind) {
  return kind == AttrKind::kListInt || kind == AttrKind::kListFloat || kind == AttrKind::kListBool;
}

const char *NameOf(AttrKind kind) {
  switch (kind) {
    case AttrKind::kInt: return "Int";
    case AttrKind::kFloat: return "Float";
    case AttrKind::kBool: return "Bool";
    case AttrKind::kString: return "String";
    case AttrKind::kListInt: return "ListInt";
    case AttrKind::kListFloat: return "ListFloat";
    case AttrKind::kListBool: return "ListBool";
    case AttrKind::kNone: break;
  }
  return "no type";
}

// Which value letters an attribute accepts: a bool or int may stand for a number.
bool Accepts(AttrKind kind, char letter) {
  switch (kind) {
    case AttrKind::kInt:
    case AttrKind::kListInt: return letter == 'i' || letter == 'b';
    case AttrKind::kFloat:
    case AttrKind::kListFloat: return letter == 'f' || letter == 'i' || letter == 'b';
    case AttrKind::kBool:
    case AttrKind::kListBool: return letter == 'b' || letter == 'i';
    case AttrKind::kString: return letter == 's';
    case AttrKind::kNone: break;
  }
  return false;
}

template <typename T>
void StoreScalar(const T &value, std::vector<std::uint64_t> &words) {
  words.assign(1, 0);
  std::memcpy(words.data(), &value, sizeof(T));
}

template <typename T>
void StoreList(const std::vector<T> &values, std::vector<std::uint64_t> &words) {
  const std::size_t bytes = sizeof(gert::ContinuousVector) + values.size() * sizeof(T);
  words.assign((bytes + 7) / 8 + 1, 0);
  auto *list = new (words.data()) gert::ContinuousVector(values.size());
  if (!values.empty()) std::memcpy(list->MutableData(), values.data(), values.size() * sizeof(T));
}

void StoreText(const std::string &text, std::vector<std::uint64_t> &words) {
  words.assign(text.size() / 8 + 1, 0);
  std::memcpy(words.data(), text.c_str(), text.size());
}

std::int64_t IntOf(const std::string &value) { return std::stoll(value.substr(2)); }
float FloatOf(const std::string &value) { return std::stof(value.substr(2)); }

struct Value {
  std::vector<std::int64_t> ints;
  std::vector<float> floats;
  std::string text;
};

Value GivenOrDefault(const ops::OpAttrDef &attr, const AttrOrder *given) {
  if (given == nullptr) return {attr.Ints(), attr.Floats(), attr.Text()};
  Value value;
  for (const std::string &word : given->values) {
    if (word[0] == 's') value.text = Unhex(word.substr(2));
    else if (attr.Kind() == AttrKind::kFloat || attr.Kind() == AttrKind::kListFloat)
      value.floats.push_back(FloatOf(word));
    else value.ints.push_back(IntOf(word));
  }
  return value;
}

void StoreValue(AttrKind kind, const Value &value, std::vector<std::uint64_t> &words) {
  switch (kind) {
    case AttrKind::kInt: return StoreScalar(value.ints.at(0), words);
    case AttrKind::kFloat: return StoreScalar(value.floats.at(0), words);
    case AttrKind::kBool: return StoreScalar(value.ints.at(0) != 0, words);
    case AttrKind::kString: return StoreText(value.text, words);
    case AttrKind::kListInt: return StoreList(value.ints, words);
    case AttrKind::kListFloat: return StoreList(value.floats, words);
    case AttrKind::kListBool:
      return StoreList(std::vector<std::uint8_t>(value.ints.begin(), value.ints.end()), words);
    case AttrKind::kNone: return;
  }
}

const AttrOrder *Given(const Request &request, const std::string &name) {
  const auto at = request.attrs.find(name);
  return at == request.attrs.end() ? nullptr : &at->second;
}

bool CheckAttr(const ops::OpAttrDef &attr, const AttrOrder *given, Report &report) {
  if (given == nullptr) {
    if (attr.HasDefault() || attr.Required() != ops::REQUIRED) return true;
    report.Add("attr-missing", "error", "attribute " + attr.Name() + " has no value");
    return false;
  }
  const bool letters = std::all_of(given->values.begin(), given->values.end(),
                                   [&](const auto &v) { return Accepts(attr.Kind(), v[0]); });
  if (given->list == IsList(attr.Kind()) && letters) return true;
  report.Add("attr-type", "error",
             "attribute " + attr.Name() + " is declared as " + NameOf(attr.Kind()),
             given->list ? "a list was given" : "a value of another type was given");
  return false;
}

}  // namespace

bool CheckAttrs(const ops::OpDef &op, const Request &request, Report &report) {
  bool right = true;
  for (const ops::OpAttrDef &attr : op.Attrs()) {
    right = CheckAttr(attr, Given(request, attr.Name()), report) && right;
  }
  for (const auto &[name, order] : request.attrs) {
    const bool known = std::any_of(op.Attrs().begin(), op.Attrs().end(),
                                   [&, &wanted = name](const auto &a) { return a.Name() == wanted; });
    if (known) continue;
    report.Add("attr-unknown", "error", "operator " + op.Type() + " has no attribute " + name);
    right = false;
  }
  return right;
}

void FillAttrs(const ops::OpDef &op, const Functions &functions, const Request &request,
               Attrs &attrs) {
  attrs.values.resize(op.Attrs().size() + functions.privateAttrs.size());
  for (std::size_t at = 0; at < op.Attrs().size(); ++at) {
    const ops::OpAttrDef &attr = op.Attrs()[at];
    const AttrOrder *given = Given(request, attr.Name());
    if (given == nullptr && !attr.HasDefault()) continue;  // optional without a value: a null
    StoreValue(attr.Kind(), GivenOrDefault(attr, given), attrs.values[at]);
  }
  for (std::size_t at = 0; at < functions.privateAttrs.size(); ++at) {
    const ops::OpAttrDef &attr = functions.privateAttrs[at];
    if (!attr.HasDefault()) continue;
    StoreValue(attr.Kind(), GivenOrDefault(attr, nullptr), attrs.values[op.Attrs().size() + at]);
  }
}

}  // namespace twin::host
