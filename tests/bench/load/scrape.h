#ifndef HONE_TESTS_BENCH_LOAD_SCRAPE_H_
#define HONE_TESTS_BENCH_LOAD_SCRAPE_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::load {

// A server's metrics at one moment.
class Scrape {
 public:
  // Reads the metrics of a local server. Unavailable: it does not answer.
  static absl::StatusOr<Scrape> Of(int port);
  // Parses Prometheus' text form.
  static Scrape Parse(absl::string_view text);

  // Returns a value by its name with labels, as in the text; 0 if it is missing.
  double operator[](const std::string& name) const;
  // Returns the sum over all sets of labels.
  double Sum(const std::string& name) const;

  // Returns the q-quantile of a histogram's counts since an earlier scrape, interpolated within its
  // bucket; infinity above the last bucket; 0 if there are no counts.
  double Quantile(const Scrape& earlier, const std::string& histogram, double q) const;

 private:
  std::map<std::string, double> values_;
};

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_SCRAPE_H_
