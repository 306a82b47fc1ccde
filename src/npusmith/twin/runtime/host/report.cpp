// The report as JSON.
#include "report.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace twin::host {

void Report::Add(const char *code, const char *level, const std::string &message,
                 const std::string &seen, const std::string &legal, const std::string &hint) {
  FindingRecord record;
  record.code = code;
  record.level = level;
  record.message = message;
  record.seen = seen;
  record.legal = legal;
  record.hint = hint;
  findings.push_back(record);
}

std::string Quote(const std::string &text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      quoted += '\\';
      quoted += letter;
    } else if (code < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", code);
      quoted += escape;
    } else {
      quoted += letter;
    }
  }
  return quoted + "\"";
}

namespace {

void Write(std::ostream &out, const FindingRecord &finding) {
  out << "{\"code\":" << Quote(finding.code) << ",\"level\":" << Quote(finding.level)
      << ",\"message\":" << Quote(finding.message) << ",\"file\":" << Quote(finding.file)
      << ",\"line\":" << finding.line << ",\"count\":" << finding.count;
  if (finding.core >= 0) out << ",\"core\":" << finding.core;
  if (finding.step >= 0) out << ",\"step\":" << finding.step;
  out << ",\"seen\":" << Quote(finding.seen) << ",\"legal\":" << Quote(finding.legal)
      << ",\"hint\":" << Quote(finding.hint) << "}";
}

void Write(std::ostream &out, const PrintRecord &print) {
  out << "{\"api\":" << Quote(print.api) << ",\"file\":" << Quote(print.file)
      << ",\"line\":" << print.line << ",\"text\":" << Quote(print.text);
  if (print.core >= 0) out << ",\"core\":" << print.core;
  out << "}";
}

template <typename Record>
void WriteList(std::ostream &out, const std::vector<Record> &records) {
  for (std::size_t at = 0; at < records.size(); ++at) {
    if (at > 0) out << ",";
    Write(out, records[at]);
  }
}

std::string Hex(const std::vector<std::uint8_t> &bytes) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace

namespace {

std::string Text(const Report &report) {
  std::ostringstream out;
  out.precision(9);
  out << "{\"completed\":" << (report.completed ? "true" : "false")
      << ",\"op\":" << Quote(report.op) << ",\"blocks\":" << report.blocks
      << ",\"tiling_key\":" << report.tilingKey
      << ",\"workspace_bytes\":" << report.workspaceBytes
      << ",\"tiling\":" << Quote(Hex(report.tiling))
      << ",\"host_seconds\":" << report.hostSeconds
      << ",\"kernel_seconds\":" << report.kernelSeconds
      << ",\"instructions\":" << report.instructions << ",\"findings\":[";
  WriteList(out, report.findings);
  out << "],\"prints\":[";
  WriteList(out, report.prints);
  out << "],\"apis\":[";
  for (std::size_t at = 0; at < report.apis.size(); ++at) {
    out << (at > 0 ? "," : "") << Quote(report.apis[at]);
  }
  out << "],\"ran\":{";
  constexpr const char *kParts[] = {"kernel", "cube", "host"};
  for (std::size_t part = 0; part < kCodeParts; ++part) {
    out << (part > 0 ? "," : "") << "\"" << kParts[part] << "\":[";
    for (std::size_t at = 0; at < report.ran[part].size(); ++at) {
      out << (at > 0 ? "," : "") << report.ran[part][at];
    }
    out << "]";
  }
  out << "}}\n";
  return out.str();
}

}  // namespace

void SendReport(const Report &report, int file) {
  const std::string text = Text(report);
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = write(file, text.data() + at, text.size() - at);
    if (written <= 0) throw std::runtime_error("cannot write the report");
    at += static_cast<std::size_t>(written);
  }
}

void WriteReport(const Report &report, const std::string &path) {
  const std::string draft = path + ".new";
  std::ofstream file(draft, std::ios::binary);
  file << Text(report);
  file.close();
  if (!file || std::rename(draft.c_str(), path.c_str()) != 0) {
    throw std::runtime_error("cannot write " + path);
  }
}

}  // namespace twin::host
