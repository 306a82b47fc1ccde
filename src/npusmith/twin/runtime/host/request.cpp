// Parsing of the orders file.
#include "request.h"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace twin::host {

std::string Unhex(const std::string &word) {
  if (word.empty() || word[0] != 'x' || word.size() % 2 == 0) {
    throw std::runtime_error("not a hexadecimal string: " + word);
  }
  std::string text;
  for (std::size_t at = 1; at + 1 < word.size(); at += 2) {
    text.push_back(static_cast<char>(std::stoi(word.substr(at, 2), nullptr, 16)));
  }
  return text;
}

namespace {

template <typename T>
T Take(std::istream &line) {
  T value;
  if (!(line >> value)) throw std::runtime_error("a word is missing in the orders");
  return value;
}

std::string TakeText(std::istream &line) { return Unhex(Take<std::string>(line)); }

TensorOrder TakeTensor(std::istream &line, bool output) {
  TensorOrder tensor;
  tensor.port = Take<std::size_t>(line);
  tensor.dtype = Take<int>(line);
  tensor.bytes = Take<std::uint64_t>(line);
  tensor.path = TakeText(line);
  if (output) tensor.ref = Take<int>(line);
  for (int rank = Take<int>(line); rank > 0; --rank) {
    tensor.dims.push_back(Take<std::int64_t>(line));
  }
  return tensor;
}

TailOrder TakeTail(std::istream &line) {
  TailOrder tail;
  if (Take<std::string>(line) == "workspace") tail.workspace = Take<std::uint64_t>(line);
  else tail.value = TakeText(line);
  return tail;
}

void TakeAttr(std::istream &line, Request &request) {
  const std::string name = TakeText(line);
  AttrOrder attr{Take<std::string>(line) == "list", {}};
  for (std::string value; line >> value;) attr.values.push_back(value);
  request.attrs[name] = attr;
}

}  // namespace

Request ReadRequest(const char *path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  Request request;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    const auto word = Take<std::string>(line);
    if (word == "kernel") request.kernel = TakeText(line);
    else if (word == "cube") request.cube = TakeText(line);
    else if (word == "type") request.type = Take<int>(line);
    else if (word == "entrytype") {
      const auto name = TakeText(line);
      request.entryTypes[name] = Take<int>(line);
    } else if (word == "keytype") {
      const auto key = Take<std::uint64_t>(line);
      request.keyTypes[key] = Take<int>(line);
    } else if (word == "host") request.host = TakeText(line);
    else if (word == "soc") request.soc = TakeText(line);
    else if (word == "seconds") request.seconds = Take<double>(line);
    else if (word == "saturate") request.saturate = Take<int>(line) != 0;
    else if (word == "cap") request.cap = Take<std::uint64_t>(line);
    else if (word == "in") request.inputs.push_back(TakeTensor(line, false));
    else if (word == "out") request.outputs.push_back(TakeTensor(line, true));
    else if (word == "write") request.writes.push_back(Take<std::size_t>(line));
    else if (word == "filled") request.filled.push_back(Take<std::size_t>(line));
    else if (word == "direct") request.direct = Take<std::uint32_t>(line);
    else if (word == "check") {
      request.autoSync = Take<int>(line) != 0;
      request.notes = Take<int>(line) != 0;
      request.shuffle = Take<std::uint32_t>(line);
    } else if (word == "record") {
      request.log = TakeText(line);
      request.mostSteps = Take<std::uint64_t>(line);
      request.dry = Take<int>(line) != 0;
    } else if (word == "ends") request.ends = Take<std::uint32_t>(line);
    else if (word == "traced") request.traced = true;
    else if (word == "program") request.program = true;
    else if (word == "argument") request.arguments.push_back(TakeText(line));
    else if (word == "tail") request.tail.push_back(TakeTail(line));
    else if (word == "attr") TakeAttr(line, request);
    else throw std::runtime_error("unknown order: " + word);
  }
  return request;
}

}  // namespace twin::host
