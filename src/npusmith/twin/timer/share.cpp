// Max-min fair for each of the two resources, one after the other: all streams that cannot have
// what they ask for get the same rate. A stream that the first holds back asks less of the second.
#include "share.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace twin {

void Share::Add(const Stream &stream, double time) {
  MoveTo(time);
  const double alone = std::max(stream.alone, 1e-6);
  streams_.push_back(stream);
  left_.push_back(alone + stream.held);
  limit_.push_back(1);
  hbms_.push_back(stream.hbm / alone);
  alls_.push_back(stream.bytes / alone);
  pieces_.push_back(stream.pieces / alone);
  speed_.push_back(1);
  const int readers = readers_[stream.line] += 1;
  if (readers > 1) Crowd(stream.line, readers);
  changed_ = true;
}

double Share::Next() {
  Settle();
  return next_;
}

Stream Share::Pop() {
  MoveTo(Next());
  const Stream ended = streams_[least_];
  const auto at = static_cast<std::ptrdiff_t>(least_);
  streams_.erase(streams_.begin() + at);
  for (std::vector<double> *all : {&left_, &limit_, &hbms_, &alls_, &pieces_, &speed_}) {
    all->erase(all->begin() + at);
  }
  const auto line = readers_.find(ended.line);
  const int readers = line->second -= 1;
  if (readers == 0)
    readers_.erase(line);
  else
    Crowd(ended.line, readers);
  changed_ = true;
  return ended;
}

void Share::Hold(std::uint32_t core, std::uint32_t unit, double from, double to, double part) {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (streams_[i].core != core || streams_[i].unit != unit) continue;
    Settle();
    const double ends = now_ + std::max(0.0, left_[i]) / speed_[i];
    const double both = std::min(to, ends) - std::max(from, now_);
    if (both <= 0) return;
    left_[i] += both * part * speed_[i];
    if (i == least_) FindNext();
    return;
  }
}

void Share::MoveTo(double time) {
  Settle();
  const double passed = time - now_;
  now_ = time;
  if (passed <= 0) return;
  for (std::size_t i = 0; i < left_.size(); ++i) left_[i] -= passed * speed_[i];
}

// Requests for one line are served one after the other, whoever they come from.
void Share::Crowd(std::uint64_t line, int readers) {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const Stream &stream = streams_[i];
    if (stream.line != line) continue;
    const double turns = readers > 1 ? stream.requests * rates_.sameLine * readers : 0;
    limit_[i] = turns > stream.alone ? stream.alone / turns : 1;
  }
}

// New speeds, as soon as they are asked for after a change.
void Share::Settle() {
  if (!changed_) return;
  changed_ = false;
  speed_ = limit_;
  Limit(rates_.hbm, hbms_);
  Limit(rates_.l2, alls_);
  Limit(rates_.pieces, pieces_);
  FindNext();
}

void Share::FindNext() {
  next_ = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < left_.size(); ++i) {
    const double ends = now_ + std::max(0.0, left_[i]) / speed_[i];
    if (ends < next_) {
      next_ = ends;
      least_ = i;
    }
  }
}

namespace {

// What is had of a rate by those who together ask for `sum`: x / (1 + x^n)^(1/n) of it, n = 2^knee.
// Nothing but products and roots, which every machine rounds alike.
double Given(double sum, double rate, double knee) {
  if (knee <= 0) return rate;
  double part = sum / rate;
  for (int i = 0; i < static_cast<int>(knee); ++i) part *= part;
  part += 1;
  for (int i = 0; i < static_cast<int>(knee); ++i) part = std::sqrt(part);
  return sum / part;
}

}  // namespace

void Share::Limit(double rate, const std::vector<double> &needs) {
  double sum = 0;
  for (std::size_t i = 0; i < needs.size(); ++i) sum += needs[i] * speed_[i];
  rate = Given(sum, rate, rates_.knee);
  if (sum <= rate) return;
  // Those that ask for less than an equal part keep it and leave the rest to the others.
  double level = rate / static_cast<double>(needs.size());
  for (bool more = true; more;) {
    double rest = rate;
    std::size_t bounded = 0;
    for (std::size_t i = 0; i < needs.size(); ++i) {
      const double asked = needs[i] * speed_[i];
      if (asked <= level)
        rest -= asked;
      else
        bounded += 1;
    }
    const double higher = bounded == 0 ? level : rest / static_cast<double>(bounded);
    more = bounded > 0 && higher > level * (1 + 1e-12);
    level = std::max(level, higher);
  }
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const double asked = needs[i] * speed_[i];
    if (asked > level) speed_[i] *= level / asked;
  }
}

}  // namespace twin
