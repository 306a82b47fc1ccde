// The orders of one run, as the Python side writes them: a line each, words separated by blanks,
// strings in hexadecimal with a leading x.
//   kernel PATH | cube PATH | host PATH | soc NAME | seconds N | cap BYTES
//   type N | keytype KEY N | entrytype NAME N   a twin::KernelType, of one tiling key, of one kernel
//   in PORT DTYPE BYTES PATH RANK DIM...        one line per tensor; absent optional ports have none
//   out PORT DTYPE BYTES PATH REF RANK DIM...   REF: position of the input it shares memory with, -1
//   write POSITION       the kernel may change this input tensor
//   filled POSITION      this output tensor holds what its file does; else nothing is there
//   direct BLOCKS        call a launcher of the kernel's file, without host side or operator
//   tail workspace BYTES | tail value BYTES-IN-HEX      its arguments behind inputs and outputs
//   check AUTO-SYNC NOTES SHUFFLE   0 or 1, 0 or 1, a seed: as in LaunchSpec
//   ends COUNT           as in LaunchSpec
//   traced               a debugger looks on
//   record PATH MOSTSTEPS DRY       as in LaunchSpec; without a path only DRY counts
//   program              call the main function of the kernel's file
//   argument TEXT        of that function; may be repeated
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
  int file = -1;  // of that path, once it is open
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
  std::string kernel, cube, host, soc;
  int type = 0;                           // a twin::KernelType
  std::map<std::uint64_t, int> keyTypes;  // of tiling keys that have their own
  std::map<std::string, int> entryTypes;  // of kernels of a direct launch that have their own
  double seconds = 60;
  std::uint64_t cap = 0;  // bytes of workspace that this machine can give
  std::vector<TensorOrder> inputs, outputs;
  std::vector<std::size_t> writes;  // positions of input tensors that the kernel may change
  std::vector<std::size_t> filled;  // positions of output tensors whose contents count
  std::map<std::string, AttrOrder> attrs;
  std::uint32_t direct = 0;  // blocks; 0 for an operator
  bool program = false;
  std::vector<std::string> arguments;
  bool autoSync = true, notes = false;  // as in LaunchSpec
  std::uint32_t shuffle = 0;
  std::string log;              // as in LaunchSpec
  std::uint64_t mostSteps = 0;
  bool dry = false;
  std::uint32_t ends = 0;
  bool traced = false;
  bool saturate = false;  // how CTRL[48] starts
  std::vector<TailOrder> tail;
};

// Throws std::runtime_error on a malformed file.
Request ReadRequest(const char *path);
std::string Unhex(const std::string &word);

}  // namespace twin::host
