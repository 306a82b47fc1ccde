#include "costs.h"

#include <cmath>
#include <fstream>
#include <sstream>

namespace twin {

Costs::Costs(const std::string &file) {
  std::ifstream in(file);
  if (!in) throw BadCosts{"the file of constants cannot be read"};
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name, rest;
    double value = 0;
    if (!(words >> name)) continue;
    if (!(words >> value) || words >> rest || !std::isfinite(value) || value < 0) {
      throw BadCosts{"not a name and a number of at least 0: " + line};
    }
    if (!names_.emplace(name, static_cast<Cost>(values_.size())).second) {
      throw BadCosts{"given twice: " + name};
    }
    values_.push_back(value);
  }
  charged_.resize(values_.size());
}

Cost Costs::Find(const std::string &name) const {
  const auto found = names_.find(name);
  if (found == names_.end()) throw BadCosts{"missing: " + name};
  return found->second;
}

Cost Costs::FindRate(const std::string &name) const {
  const Cost rate = Find(name);
  if (!((*this)[rate] > 0)) throw BadCosts{"a rate of 0: " + name};
  return rate;
}

Cost Costs::FindAny(const std::vector<std::string> &names) const {
  for (const std::string &name : names) {
    const auto found = names_.find(name);
    if (found != names_.end()) return found->second;
  }
  return kNoCost;
}

}  // namespace twin
