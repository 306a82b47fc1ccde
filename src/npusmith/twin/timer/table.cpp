#include "table.h"

namespace twin {

namespace {

bool Starts(const std::string &text, const char *with) {
  return text.rfind(with, 0) == 0;
}
bool Holds(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos;
}

DestinationUse DestinationUseOf(const std::string &name) {
  DestinationUse use;
  use.readsDst = name == "axpy" || name == "mul_add_dst" || Starts(name, "fused_mul_add");
  use.smallDst = Holds(name, "reduce") || Starts(name, "compare");
  return use;
}

Cost Pick(const Costs &costs, const std::string &kind, const std::string &name) {
  const Cost own = costs.FindAny({kind + "." + name});
  return own != kNoCost ? own : costs.Find(kind + ".other");
}

VectorCosts VectorOf(const Costs &costs, const std::string &name) {
  VectorCosts found{};
  const char *const widths[] = {".16", ".32"};
  for (std::size_t i = 0; i < 2; ++i) {
    const Cost own = costs.FindAny({"vector." + name + widths[i], "vector." + name});
    found.repeat[i] = own != kNoCost ? own : costs.Find("vector.other");
    const Cost more = costs.FindAny({"conflict." + name + widths[i], "conflict." + name});
    found.conflict[i] = more != kNoCost ? more : costs.Find("conflict.other");
  }
  found.head = costs.FindAny({"head." + name});
  found.use = DestinationUseOf(name);
  return found;
}

PathCosts PathOf(const Costs &costs, const std::string &name) {
  const auto full = [&](const char *field) {
    const std::string own = "path." + name + field;
    return costs.FindAny({own}) != kNoCost ? own : std::string("path.other") + field;
  };
  PathCosts found{costs.Find(full(".start")),  costs.FindRate(full(".rate")),
                  costs.Find(full(".issue")),  costs.Find(full(".row")),
                  costs.Find(full(".nz_row")), costs.Find(full(".request")),
                  costs.Find(full(".gap"))};
  found.fromL0c = Starts(name, "l0c_");
  const std::string miss = "path." + name + ".miss";
  if (costs.FindAny({miss}) != kNoCost) found.miss = costs.FindRate(miss);
  return found;
}

}  // namespace

Table::Table(Costs &all, const Log &log) : costs(all) {
  issue = all.Find("scalar.issue");
  depth = all.Find("queue.depth");
  outstanding = all.Find("queue.outstanding");
  head = all.Find("vector.head");
  floor = all.Find("vector.floor");
  partial = all.Find("bank.partial");
  readWrite = all.Find("bank.read_write");
  libraryRepeat = all.Find("library.repeat");
  cubeHead = all.Find("cube.head");
  cubeGap = all.Find("cube.gap");
  cubeTile = all.Find("cube.tile");
  cubeFloat = all.Find("cube.float");
  hold = all.Find("ub.hold");
  missLatency = all.Find("gm.miss_latency");
  atomic = all.Find("gm.atomic");
  hbm = all.FindRate("hbm.rate");
  hbmTransfer = all.Find("hbm.transfer_bytes");
  hbmShare = all.Find("hbm.transfer_share");
  l2 = all.FindRate("l2.rate");
  sameLine = all.Find("l2.same_line");
  read = all.Find("scalar.read");
  write = all.Find("scalar.write");
  readUse = all.Find("scalar.read_use");
  stagger = all.Find("launch.stagger");
  prologue = all.Find("launch.prologue");
  prologueCube = all.Find("launch.prologue_cube");
  warm = all.Find("launch.warm");
  cold = all.Find("launch.cold");
  epilogue = all.Find("launch.epilogue");
  for (const std::string &name : log.names) {
    scalar_.push_back(Pick(all, "scalar", name));
    join_.push_back(Pick(all, "join", name));
    library_.push_back(Pick(all, "library", name));
    vector_.push_back(VectorOf(all, name));
    path_.push_back(PathOf(all, name));
    writes_.push_back(name.size() > 3 && name.compare(name.size() - 3, 3, "_gm") == 0);
  }
}

}  // namespace twin
