// Bandwidth of the chip, shared by the transfers that stream at one moment.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace twin {

// A transfer that streams. `alone` is how many cycles it would take by itself.
struct Stream {
  std::uint32_t core = 0, unit = 0;
  double alone = 0;
  double held = 0;            // cycles in which it stands still
  double hbm = 0, bytes = 0;  // over HBM; between core and L2
  double requests = 0;        // to lines of 512 B
  double pieces = 0;          // of ragged rows
  std::uint64_t line = 0;     // the first of those
};

// What the chip gives to all transfers together.
struct Rates {
  double hbm = 0, l2 = 0;  // bytes a cycle
  double pieces = 0;       // of ragged rows a cycle
  double sameLine = 0;     // cycles between two requests for one line
  double knee = 0;         // 0: all of a rate is had by whoever asks for it; else see Limit
};

class Share {
 public:
  explicit Share(const Rates &rates) : rates_(rates) {}

  // One more from `time` on, which is not after Next().
  void Add(const Stream &stream, double time);
  // When the next of them ends, if none is added before; infinity when there is none.
  double Next();
  // A transfer of that unit, if there is one, stands still for a part of the cycles from `from` to
  // `to` that it would stream in.
  void Hold(std::uint32_t core, std::uint32_t unit, double from, double to, double part);
  // Takes out the one that ends at Next().
  Stream Pop();

 private:
  Rates rates_;
  double now_ = 0, next_ = 0;
  std::size_t least_ = 0;  // which ends next
  bool changed_ = true;
  // In order of arrival, one entry for each; apart from each other, because every change of the set
  // goes over all of them.
  std::vector<Stream> streams_;
  std::vector<double> left_;   // cycles at full speed
  std::vector<double> limit_;  // the most that requests for the same line leave of the speed
  std::vector<double> hbms_, alls_, pieces_;        // a cycle at full speed
  std::vector<double> speed_;                       // at most 1
  std::unordered_map<std::uint64_t, int> readers_;  // of a line

  void MoveTo(double time);
  void Settle();
  void FindNext();
  void Crowd(std::uint64_t line, int readers);
  void Limit(double rate, const std::vector<double> &needs);
};

}  // namespace twin
