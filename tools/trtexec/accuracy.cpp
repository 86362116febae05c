// SPDX-License-Identifier: Apache-2.0
#include "trtexec/accuracy.h"

#include <algorithm>
#include <cmath>

#include "cli/failure.h"
#include "cli/tensor_file.h"
#include "trtexec/values.h"

namespace lathe::trtexec {
namespace {

// Larger is worse, and 0 is equal. A value that is no number on one side alone makes it infinite.
double difference(const cli::HostTensor& given, const cli::HostTensor& wanted, const Options& options) {
  double count = 0, sum = 0, squares = 0, largest = 0, dot = 0, given_square = 0, wanted_square = 0;
  for (int64_t i = 0; i < cli::volume(wanted.dims); ++i) {
    const double a = cli::element(given, i), b = cli::element(wanted, i);
    const bool equal = a == b || (std::isnan(a) && std::isnan(b));
    const double apart = equal ? 0 : std::isfinite(a) && std::isfinite(b) ? std::fabs(a - b) : INFINITY;
    count += apart > options.atol + options.rtol * std::fabs(b) ? 1 : 0;
    sum += apart;
    squares += apart * apart;
    largest = std::max(largest, apart);
    if (std::isfinite(a) && std::isfinite(b)) {
      dot += a * b;
      given_square += a * a;
      wanted_square += b * b;
    }
  }
  if (options.accuracy == "l0") return count;
  if (options.accuracy == "l1") return sum;
  if (options.accuracy == "l2") return std::sqrt(squares);
  if (options.accuracy == "lInf" || std::isinf(largest)) return largest;
  const double length = std::sqrt(given_square) * std::sqrt(wanted_square);
  return length > 0 ? std::max(1 - dot / length, 0.0) : largest;
}

}  // namespace

bool check_accuracy(const std::vector<cli::HostTensor>& outputs, const std::map<std::string, std::string>& files,
                    const Options& options, TrtexecLog& log) {
  const double threshold = options.accuracy_threshold.value_or(options.accuracy == "l0" ? 0 : 1e-5);
  bool good = true;
  for (const auto& [name, path] : files) {
    const auto output =
        std::find_if(outputs.begin(), outputs.end(),
                     [&, &wanted = name](const cli::HostTensor& tensor) { return name_fits(wanted, tensor.name); });
    if (output == outputs.end())
      throw cli::UsageError(fmt::format("--loadRefOutputs: the engine has no output {}", name));
    const cli::HostTensor wanted = cli::read_tensor_file(path, {output->name, output->type, output->dims});
    const double figure = difference(*output, wanted, options);
    const bool within = figure <= threshold;
    good = good && within;
    log.info("Accuracy of {}: {} = {:.6g}, threshold = {:.6g}: {}", output->name, options.accuracy, figure, threshold,
             within ? "PASSED" : "FAILED");
  }
  return good;
}

}  // namespace lathe::trtexec
