// A program that opens files outside of its folder: the sandbox only says that they are not there, so
// the calls that open files are looked at here on their way to the C library.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "files.h"
#include "twin/direct.h"

namespace twin::host {

namespace {

bool watching = false;

template <typename Function>
Function *Next(const char *name) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

// The parts of an absolute path without "." and "..".
std::vector<std::string> PartsOf(const std::string &path) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    at = end + 1;
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
  }
  return parts;
}

bool IsOutside(const char *path) {
  char here[4096];
  if (getcwd(here, sizeof here) == nullptr) return false;
  const std::vector<std::string> base = PartsOf(here);
  const std::vector<std::string> full =
      PartsOf(*path == '/' ? path : std::string(here) + "/" + path);
  return full.size() < base.size() || !std::equal(base.begin(), base.end(), full.begin());
}

// A file could not be opened: told once for each path.
void Refused(const char *path, bool write) {
  const int error = errno;
  if (watching && path != nullptr && IsOutside(path)) {
    FindingRecord finding;
    finding.code = "program-outside";
    finding.level = write ? "error" : "warning";
    finding.message = std::string("the program cannot ") + (write ? "write" : "read") +
                      " a file outside of the folder that it runs in";
    finding.seen = path;
    auto &findings = Directs().findings;
    bool known = findings.size() > 20;  // enough to see what is meant
    for (const FindingRecord &other : findings) known = known || other.seen == finding.seen;
    if (!known) findings.push_back(finding);
  }
  errno = error;
}

bool Writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0; }

std::FILE *Open(const char *name, const char *path, const char *mode) {
  std::FILE *file = Next<std::FILE *(const char *, const char *)>(name)(path, mode);
  if (file == nullptr) Refused(path, mode != nullptr && std::strpbrk(mode, "wa+") != nullptr);
  return file;
}

int Open(const char *name, const char *path, int flags, mode_t mode) {
  const int file = Next<int(const char *, int, ...)>(name)(path, flags, mode);
  if (file < 0) Refused(path, Writes(flags));
  return file;
}

}  // namespace

void WatchFiles(bool on) { watching = on; }

}  // namespace twin::host

#define TWIN_OPEN(name)                                               \
  int name(const char *path, int flags, ...) {                        \
    va_list rest;                                                     \
    va_start(rest, flags);                                            \
    const mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                     \
    return twin::host::Open(#name, path, flags, mode);                \
  }

extern "C" {
std::FILE *fopen(const char *path, const char *mode) {
  return twin::host::Open("fopen", path, mode);
}
std::FILE *fopen64(const char *path, const char *mode) {
  return twin::host::Open("fopen64", path, mode);
}
TWIN_OPEN(open)
TWIN_OPEN(open64)
}
