// The orders of one run, as the Python side writes them: a line each, words separated by blanks,
// strings in hexadecimal with a leading x.
//   kernel PATH | host PATH | soc NAME | seconds N | cap BYTES
//   in PORT DTYPE BYTES PATH RANK DIM...        one line per tensor; absent optional ports have none
//   out PORT DTYPE BYTES PATH REF RANK DIM...   REF: position of the input it shares memory with, -1
//   direct BLOCKS        call a launcher of the kernel's file, without host side or operator
//   tail workspace BYTES | tail value BYTES-IN-HEX      its arguments behind inputs and outputs
//   attr NAME scalar|list VALUE...              VALUE: i:12, f:0x1p3, b:1, s:x6162
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace twin::host {

struct TensorOrder {
  std::size_t port;
  int dtype;  // ge::DataType
  std::uint64_t bytes;
  std::string path;
  int ref = -1;
  std::vector<std::int64_t> dims;
};

struct AttrOrder {
  bool list;
  std::vector<std::string> values;
};

// An argument of a direct launch: scratch memory, or a value's bytes.
struct TailOrder {
  std::uint64_t workspace = 0;
  std::string value;
};

struct Request {
  std::string kernel, host, soc;
  double seconds = 60;
  std::uint64_t cap = 0;  // bytes of workspace that this machine can give
  std::vector<TensorOrder> inputs, outputs;
  std::map<std::string, AttrOrder> attrs;
  std::uint32_t direct = 0;  // blocks; 0 for an operator
  std::vector<TailOrder> tail;
};

// Throws std::runtime_error on a malformed file.
Request ReadRequest(const char *path);
std::string Unhex(const std::string &word);

}  // namespace twin::host
