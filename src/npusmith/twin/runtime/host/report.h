// What a run reports: findings, decisions of tiling, times. Written once, as JSON.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "twin/launch.h"

namespace twin::host {

// The three pieces of code of a project, by which blocks that ran are told.
enum CodePart { kVectorCode, kCubeCode, kHostCode, kCodeParts };

struct Report {
  bool completed = false;
  std::string op;
  std::uint32_t blocks = 0;
  std::uint64_t tilingKey = 0;
  std::uint64_t workspaceBytes = 0;
  std::vector<std::uint8_t> tiling;
  double hostSeconds = 0;
  double kernelSeconds = 0;
  std::uint64_t instructions = 0;  // that all cores began
  std::vector<FindingRecord> findings;
  std::vector<PrintRecord> prints;  // of the kernel
  std::vector<std::string> apis;  // that the kernel called
  std::array<std::vector<std::uint32_t>, kCodeParts> ran;  // offsets of blocks of code (fence.h)

  void Add(const char *code, const char *level, const std::string &message,
           const std::string &seen = "", const std::string &legal = "",
           const std::string &hint = "");
};

// Writes beside the path and renames, so that a half-written report is never read.
void WriteReport(const Report &report, const std::string &path);
// The same to a file that is open.
void SendReport(const Report &report, int file);
std::string Quote(const std::string &text);

}  // namespace twin::host
