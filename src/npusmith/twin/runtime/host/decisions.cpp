// Decisions as text and back.
#include "decisions.h"

#include <sstream>
#include <stdexcept>

#include "request.h"

namespace twin::host {

namespace {

std::string Hex(const std::string &text) {
  static const char digits[] = "0123456789abcdef";
  std::string word = "x";
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    word += digits[code >> 4];
    word += digits[code & 15];
  }
  return word;
}

void WritePorts(std::ostream &out, const char *word, const std::vector<Port> &ports) {
  for (const Port &port : ports) {
    out << word << " " << Hex(port.name) << " " << port.list << " " << port.startsAtZero << " "
        << port.shapeFromKernel << "\n";
  }
}

template <typename T>
T Take(std::istream &line) {
  T value;
  if (!(line >> value)) throw std::runtime_error("the host side left half a line");
  return value;
}

std::string TakeText(std::istream &line) { return Unhex(Take<std::string>(line)); }

Port TakePort(std::istream &line) {
  Port port;
  port.name = TakeText(line);
  port.list = Take<bool>(line);
  port.startsAtZero = Take<bool>(line);
  port.shapeFromKernel = Take<bool>(line);
  return port;
}

FindingRecord TakeFinding(std::istream &line) {
  FindingRecord finding;
  finding.code = TakeText(line);
  finding.level = TakeText(line);
  finding.message = TakeText(line);
  finding.seen = TakeText(line);
  finding.file = TakeText(line);
  finding.line = Take<int>(line);
  return finding;
}

}  // namespace

std::string Write(const Decisions &decisions) {
  const Report &report = decisions.report;
  std::ostringstream out;
  out << "op " << Hex(report.op) << "\n"
      << "decide " << report.blocks << " " << report.tilingKey << " " << report.workspaceBytes << "\n"
      << "tiling " << Hex({report.tiling.begin(), report.tiling.end()}) << "\n";
  WritePorts(out, "in", decisions.inputs);
  WritePorts(out, "out", decisions.outputs);
  for (const FindingRecord &finding : report.findings) {
    out << "finding " << Hex(finding.code) << " " << Hex(finding.level) << " " << Hex(finding.message)
        << " " << Hex(finding.seen) << " " << Hex(finding.file) << " " << finding.line << "\n";
  }
  for (const std::uint32_t block : report.ran[kHostCode]) out << "ran " << block << "\n";
  out << "end " << decisions.decided << "\n";
  return out.str();
}

Decisions ReadDecisions(const std::string &text) {
  Decisions decisions;
  Report &report = decisions.report;
  bool ended = false;
  std::istringstream lines(text);
  for (std::string each; std::getline(lines, each);) {
    std::istringstream line(each);
    const auto word = Take<std::string>(line);
    if (word == "op") report.op = TakeText(line);
    else if (word == "decide") {
      report.blocks = Take<std::uint32_t>(line);
      report.tilingKey = Take<std::uint64_t>(line);
      report.workspaceBytes = Take<std::uint64_t>(line);
    } else if (word == "tiling") {
      const std::string bytes = TakeText(line);
      report.tiling.assign(bytes.begin(), bytes.end());
    } else if (word == "in") decisions.inputs.push_back(TakePort(line));
    else if (word == "out") decisions.outputs.push_back(TakePort(line));
    else if (word == "finding") report.findings.push_back(TakeFinding(line));
    else if (word == "ran") report.ran[kHostCode].push_back(Take<std::uint32_t>(line));
    else if (word == "end") {
      decisions.decided = Take<bool>(line);
      ended = true;
    } else throw std::runtime_error("the host side left a line that means nothing");
  }
  if (!ended) throw std::runtime_error("the host side's words break off");
  return decisions;
}

}  // namespace twin::host
