// The constants of the model by name, and how many cycles each was charged for.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace twin {

// A number of the table: its place in it.
using Cost = std::int32_t;
constexpr Cost kNoCost = -1;

class Costs {
 public:
  // One `name value` a line; throws BadCosts.
  explicit Costs(const std::string &file);

  // The number of that name; throws BadCosts when it is not there.
  Cost Find(const std::string &name) const;
  // The same of one by which is divided; throws BadCosts when it is 0 too.
  Cost FindRate(const std::string &name) const;
  // The first of these that is there, else kNoCost.
  Cost FindAny(const std::vector<std::string> &names) const;

  double operator[](Cost cost) const { return values_[static_cast<std::size_t>(cost)]; }
  // `cycles` of some core went by because of it.
  void Charge(Cost cost, double cycles) { charged_[static_cast<std::size_t>(cost)] += cycles; }

  const std::map<std::string, Cost> &names() const { return names_; }
  double charged(Cost cost) const { return charged_[static_cast<std::size_t>(cost)]; }

 private:
  std::map<std::string, Cost> names_;
  std::vector<double> values_, charged_;
};

struct BadCosts {
  std::string what;
};

}  // namespace twin
