// A map from byte ranges to what is known of them, exact to the byte and cheap for large pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace twin {

// Memory is cut in pages; a page that nobody touched costs a pointer, any other the list of its
// pieces in order of address. `Cell` is copied when a piece is cut and compared when pieces meet.
template <typename Cell>
class Ranges {
 public:
  explicit Ranges(std::int64_t bytes = 0, const Cell &blank = Cell())
      : pages_(static_cast<std::size_t>((bytes + kPage - 1) / kPage)), blank_(blank) {}

  // visit(low, high, cell) for every piece of [low, high); the cells stay as they are.
  template <typename Visit>
  void Look(std::int64_t low, std::int64_t high, Visit visit) const {
    OverPages(low, high, [&](std::size_t page, std::int64_t from, std::int64_t to) {
      const std::int64_t base = static_cast<std::int64_t>(page) * kPage;
      if (pages_[page] == nullptr) return visit(base + from, base + to, blank_);
      const Page &pieces = *pages_[page];
      for (std::size_t i = Find(pieces, from); i < pieces.size() && pieces[i].start < to; ++i) {
        const std::int64_t end = i + 1 < pieces.size() ? pieces[i + 1].start : kPage;
        visit(base + std::max<std::int64_t>(pieces[i].start, from), base + std::min(end, to),
              pieces[i].cell);
      }
    });
  }

  // The same, and the cells may be changed: pieces are cut at both ends.
  template <typename Visit>
  void Each(std::int64_t low, std::int64_t high, Visit visit) {
    OverPages(low, high, [&](std::size_t page, std::int64_t from, std::int64_t to) {
      const std::int64_t base = static_cast<std::int64_t>(page) * kPage;
      Page &pieces = Open(page);
      const std::size_t first = Cut(pieces, from);
      const std::size_t last = to == kPage ? pieces.size() : Cut(pieces, to);
      for (std::size_t i = first; i < last; ++i) {
        const std::int64_t end = i + 1 < pieces.size() ? pieces[i + 1].start : kPage;
        visit(base + pieces[i].start, base + end, pieces[i].cell);
      }
      Join(pieces, first, last);
    });
  }

  // All of [low, high) becomes one piece.
  void Fill(std::int64_t low, std::int64_t high, const Cell &cell) {
    OverPages(low, high, [&](std::size_t page, std::int64_t from, std::int64_t to) {
      Page &pieces = Open(page);
      const std::size_t first = Cut(pieces, from);
      const std::size_t last = to == kPage ? pieces.size() : Cut(pieces, to);
      pieces[first].cell = cell;
      if (last > first + 1) {
        const auto begin = pieces.begin();
        pieces.erase(begin + static_cast<std::ptrdiff_t>(first + 1),
                     begin + static_cast<std::ptrdiff_t>(last));
      }
      Join(pieces, first, first + 1);
    });
  }

  std::size_t pieces() const { return pieces_; }

 private:
  static constexpr std::int64_t kPage = 8192;
  struct Piece {
    std::int32_t start;  // in its page
    Cell cell;
  };
  using Page = std::vector<Piece>;

  template <typename Visit>
  void OverPages(std::int64_t low, std::int64_t high, Visit visit) const {
    const std::int64_t end =
        std::min(high, static_cast<std::int64_t>(pages_.size()) * kPage);
    for (std::int64_t at = std::max<std::int64_t>(low, 0); at < end;) {
      const std::int64_t page = at / kPage, from = at % kPage;
      const std::int64_t to = std::min(kPage, end - page * kPage);
      visit(static_cast<std::size_t>(page), from, to);
      at = page * kPage + to;
    }
  }

  Page &Open(std::size_t page) {
    if (pages_[page] == nullptr) {
      pages_[page] = std::make_unique<Page>(1, Piece{0, blank_});
      pieces_ += 1;
    }
    return *pages_[page];
  }

  // The piece that holds a byte.
  static std::size_t Find(const Page &pieces, std::int64_t at) {
    if (pieces.size() == 1) return 0;
    const auto after = std::upper_bound(
        pieces.begin(), pieces.end(), at,
        [](std::int64_t value, const Piece &piece) { return value < piece.start; });
    return static_cast<std::size_t>(after - pieces.begin()) - 1;
  }

  // Makes a piece begin at a byte.
  std::size_t Cut(Page &pieces, std::int64_t at) {
    const std::size_t found = Find(pieces, at);
    if (pieces[found].start == at) return found;
    const Piece rest{static_cast<std::int32_t>(at), pieces[found].cell};
    pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(found + 1), rest);
    pieces_ += 1;
    return found + 1;
  }

  // Joins equal neighbours from the piece before `first` to `last`.
  void Join(Page &pieces, std::size_t first, std::size_t last) {
    std::size_t from = first > 0 ? first - 1 : 0;
    const std::size_t until = std::min(last + 1, pieces.size());
    std::size_t kept = from;
    for (std::size_t i = from + 1; i < until; ++i) {
      if (pieces[i].cell == pieces[kept].cell) continue;
      ++kept;
      if (kept != i) pieces[kept] = pieces[i];
    }
    if (kept + 1 >= until) return;
    const auto begin = pieces.begin();
    pieces.erase(begin + static_cast<std::ptrdiff_t>(kept + 1),
                 begin + static_cast<std::ptrdiff_t>(until));
  }

  std::vector<std::unique_ptr<Page>> pages_;
  Cell blank_;
  std::size_t pieces_ = 0;  // cut so far; joins are not subtracted
};

}  // namespace twin
