// timer LOG COSTS REPORT [EVENTS MOST]: how long the launch of a log would take on the chip.
//
// COSTS holds `name value` lines (npusmith/target/costs.py). REPORT becomes JSON. EVENTS gets a
// line of numbers for each of the first MOST steps: core unit start end what place reason wait
// bytes. Exit status: 0, 2 when the log is not one, 3 when a constant is missing or no number, 4
// when a file cannot be written; a line on stderr says more.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "report.h"

namespace {

int Time(int count, char **words) {
  const twin::Log log(words[1]);
  twin::Costs costs(words[2]);
  std::unique_ptr<twin::EventFile> events;
  if (count == 6) events = std::make_unique<twin::EventFile>(words[4], std::atoll(words[5]));
  twin::Engine engine(log, costs, events.get());
  engine.Run();
  twin::WriteReport(words[3], log, costs, engine, events.get());
  return 0;
}

}  // namespace

int main(int count, char **words) {
  if (count != 4 && count != 6) {
    std::fputs("timer LOG COSTS REPORT [EVENTS MOST]\n", stderr);
    return 1;
  }
  try {
    return Time(count, words);
  } catch (const twin::BadLog &bad) {
    std::fprintf(stderr, "%s\n", bad.what.c_str());
    return 2;
  } catch (const twin::BadCosts &bad) {
    std::fprintf(stderr, "%s\n", bad.what.c_str());
    return 3;
  } catch (const twin::BadFile &bad) {
    std::fprintf(stderr, "%s\n", bad.what.c_str());
    return 4;
  }
}
