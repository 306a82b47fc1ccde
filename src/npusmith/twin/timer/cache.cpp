#include "cache.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace twin {

namespace {

constexpr std::uint64_t kLine =
    512;  // doc: requests of 128, 256 or 512 B; L2 serves lines of 512 B
constexpr std::uint64_t kSector = 128;  // the least that is fetched
constexpr std::uint8_t kWhole = 0xF;
constexpr std::uint64_t kWindows = 1ull << 63;  // their numbers are no lines

// How many of the four bits are set.
std::uint64_t Count(unsigned bits) {
  constexpr std::uint8_t kCount[] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
  return kCount[bits & kWhole];
}

// Bytes of the sectors whose bits are set.
double Sectors(std::uint8_t bits) {
  return static_cast<double>(Count(bits) * kSector);
}

// Rows without gaps are one, but a unit that turns ND into Nz asks for each row that does not fill
// sectors (bank: batches with rows of 160, 320 and 416 B).
bool Merges(const CopyStep &copy, std::uint8_t flags) {
  return (flags & kNd2Nz) == 0 || copy.bytes % kSector == 0 || kSector % copy.bytes == 0;
}

}  // namespace

std::uint64_t GmOffset(const CopyStep &copy) {
  return copy.gm & ((1ull << 48) - 1);
}
std::uint32_t GmRegion(const CopyStep &copy) {
  return static_cast<std::uint32_t>(copy.gm >> 48);
}

void Cache::Free::operator()(Node *nodes) const {
  std::free(nodes);
}

Cache::Cache(const std::vector<std::uint64_t> &regions, const CacheRules &rules)
    : most_(static_cast<std::uint64_t>(rules.capacity) / kLine), rules_(rules) {
  for (const std::uint64_t bytes : regions) {
    first_.push_back(lines_);
    lines_ += bytes / kLine + 1;
  }
  if (lines_ > UINT32_MAX) throw BadLog{"its regions have more than 2 TB"};
  roomy_ = lines_ - 1 <= most_;
  // Zeroed pages come as they are touched: most of a large workspace never is.
  nodes_.reset(static_cast<Node *>(std::calloc(lines_, sizeof(Node))));
  if (nodes_ == nullptr) throw std::bad_alloc();
}

Demand Cache::Take(const CopyStep &copy, std::uint8_t flags, bool write) {
  Demand demand;
  const std::uint32_t region = GmRegion(copy);
  const std::uint64_t low = first_[region - 1];
  const std::uint64_t high = region < first_.size() ? first_[region] : lines_;
  const std::uint64_t bottom = low * kLine, top = high * kLine;
  std::uint64_t from = bottom + GmOffset(copy);
  demand.line = from / kLine;
  if (!write && (flags & kNoL2) != 0) {  // those of a window are one another's readers
    demand.line =
        kWindows + from / std::max<std::uint64_t>(kLine, static_cast<std::uint64_t>(rules_.window));
  }
  if (copy.rows <= 1 || (copy.gmPitch == copy.bytes && Merges(copy, flags))) {
    const std::uint64_t all = std::uint64_t{copy.rows} * copy.bytes;
    demand.unaligned = from % kLine != 0;
    Row(demand, std::min(from, top), std::min(from + all, top), flags, write);
    return demand;
  }
  for (std::uint32_t i = 0; i < copy.rows; ++i, from += copy.gmPitch) {
    demand.unaligned |= from % kLine != 0;
    Row(demand, std::min(from, top), std::min(from + copy.bytes, top), flags, write);
  }
  return demand;
}

void Cache::Settle() {
  for (const std::uint32_t line : written_) nodes_[line].dirty = 0;
  written_.clear();
}

// A row whose ends are not those of sectors is cut into pieces by the lines, of which the chip
// serves so many a cycle (derived: data_copy with a row pitch of 24,574 B).
void Cache::Row(Demand &demand, std::uint64_t from, std::uint64_t to, std::uint8_t flags,
                bool write) {
  const bool ragged =
      (from % kSector != 0 || to % kSector != 0) && from / kSector != (to - 1) / kSector;
  while (from < to) {
    if (roomy_ && from % kLine == 0 && to - from >= kLine && (flags & kNoL2) == 0) {
      const std::uint64_t count = (to - from) / kLine;
      const double moved = Whole(from / kLine, count, write);
      demand.hbm += moved;
      if (!write) demand.missed += moved;
      demand.bytes += static_cast<double>(count * kLine);
      demand.requests += static_cast<double>(count);
      from += count * kLine;
      continue;
    }
    const std::uint64_t line = from / kLine, end = std::min(to, (line + 1) * kLine);
    const std::uint64_t low = from % kLine / kSector, high = (end - 1) % kLine / kSector;
    const auto sectors = static_cast<std::uint8_t>((2u << high) - (1u << low));
    double hbm = write ? Store(line, sectors, flags) : Fetch(line, sectors, flags);
    demand.bytes += Sectors(sectors);
    demand.requests += 1;
    if (!write) {
      const double moved = std::min(hbm, Sectors(sectors));
      demand.missed += moved;
      const bool piece = ragged && end - from < kLine;
      if (piece) demand.pieces += 1;
      if (piece && moved > 0) hbm = std::max(hbm, rules_.pieceBytes);
      if ((flags & kNoL2) != 0 && moved > 0) hbm = std::max(hbm, rules_.bypassBytes);
    }
    demand.hbm += hbm;
    from = end;
  }
}

// Lines from end to end where nobody has to go for them: most of what kernels move.
double Cache::Whole(std::uint64_t line, std::uint64_t count, bool write) {
  std::uint64_t missing = 0, early = 0;
  for (std::uint64_t i = line; i < line + count; ++i) {
    Node &node = nodes_[i];
    if (write) {
      early += GoesEarly(i) ? 1 : 0;
      node.dirty = GoesEarly(i) ? 0 : kWhole;
    } else {
      missing += Count(~unsigned{node.valid});
    }
    node.valid = kWhole;
  }
  return static_cast<double>(missing * kSector) +
         static_cast<double>(early * kLine) * rules_.writeBack;
}

// Lines that L2 does not keep until it needs their room, spread evenly over memory.
bool Cache::GoesEarly(std::uint64_t line) const {
  return static_cast<double>(line * 2654435761u >> 16 & 0xFF) < rules_.earlyBack * 256;
}

// Bytes over the HBM interface. What the line that had to go had not yet written back is paid by
// whoever needed the room.
double Cache::Fetch(std::uint64_t line, std::uint8_t sectors, std::uint8_t flags) {
  Node &node = nodes_[line];
  const auto missing = static_cast<std::uint8_t>(sectors & ~node.valid);
  if (most_ == 0 || (flags & kNoL2) != 0) return Sectors(missing);
  const double back = Use(line);
  node.valid |= sectors;
  return Sectors(missing) + back;
}

double Cache::Store(std::uint64_t line, std::uint8_t sectors, std::uint8_t flags) {
  Node &node = nodes_[line];
  const bool held = node.valid != 0;
  if (most_ == 0 || ((flags & kNoL2) != 0 && !held)) {
    return Sectors(sectors) * rules_.writeBack;
  }
  const double back = Use(line);
  node.valid |= sectors;
  if (GoesEarly(line)) return back + Sectors(sectors) * rules_.writeBack;
  if (node.dirty == 0 && !roomy_) written_.push_back(static_cast<std::uint32_t>(line));
  node.dirty |= sectors;
  return back;
}

// The line becomes the one used last; the bytes that are written back for it. Once the cache is
// full, each line that comes has the line written back that waits for longest, so that what is
// written costs its bytes wherever others are read through L2 (asc-devkit's Adds: add/4), and
// nothing where reads leave L2 alone and the result fits it (add/5), at one and the same rate of
// HBM.
double Cache::Use(std::uint64_t line) {
  if (roomy_) return 0;
  if (nodes_[line].valid != 0) {
    if (nodes_[0].older == line) return 0;
    Unlink(line);
    Link(line);
    return 0;
  }
  double back = 0;
  if (held_ == most_) {
    const std::uint64_t oldest = nodes_[0].newer;
    back = Clean(oldest);
    while (back == 0 && !written_.empty()) {
      back = Clean(written_.front());
      written_.pop_front();
    }
    Unlink(oldest);
    nodes_[oldest] = Node();
  } else {
    held_ += 1;
  }
  Link(line);
  return back;
}

// A line is written back and stays; in bytes read from HBM in the same time.
double Cache::Clean(std::uint64_t line) {
  const double back = Sectors(nodes_[line].dirty & kWhole) * rules_.writeBack;
  nodes_[line].dirty = 0;
  return back;
}

void Cache::Unlink(std::uint64_t line) {
  const Node &node = nodes_[line];
  nodes_[node.older].newer = node.newer;
  nodes_[node.newer].older = node.older;
}

// Behind the newest: the head's `older` is the newest line, its `newer` the oldest.
void Cache::Link(std::uint64_t line) {
  const std::uint32_t newest = nodes_[0].older, self = static_cast<std::uint32_t>(line);
  nodes_[line].older = newest;
  nodes_[line].newer = 0;
  nodes_[newest].newer = self;
  nodes_[0].older = self;
}

}  // namespace twin
