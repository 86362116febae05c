// SPDX-License-Identifier: Apache-2.0
// lathe run
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "failure.h"
#include "session.h"

namespace lathe::cli {
namespace {

constexpr int64_t kShown = 8;

std::string value_text(const HostTensor& tensor, int64_t index) {
  const double value = element(tensor, index);
  return is_float(tensor.type) ? fmt::format("{:.6g}", value) : fmt::format("{:.0f}", value);
}

std::string first_values(const HostTensor& tensor) {
  const int64_t count = volume(tensor.dims);
  std::string text;
  for (int64_t i = 0; i < std::min(count, kShown); ++i) text += (i ? " " : "") + value_text(tensor, i);
  return text + (count > kShown ? " ..." : "");
}

// Rows of class scores: two dimensions (after sizes of 1 are dropped) with several columns of floats.
bool looks_like_classes(const HostTensor& tensor, int64_t& classes) {
  std::vector<int64_t> dims = tensor.dims;
  while (dims.size() > 2 && dims.back() == 1) dims.pop_back();
  if (!is_float(tensor.type) || dims.empty() || dims.size() > 2) return false;
  classes = dims.back();
  return classes >= 5 && volume(tensor.dims) > 0;
}

std::string top_classes(const HostTensor& tensor, int64_t row, int64_t classes) {
  std::vector<int64_t> order(static_cast<size_t>(classes));
  std::iota(order.begin(), order.end(), row * classes);
  std::partial_sort(order.begin(), order.begin() + 5, order.end(),
                    [&](int64_t a, int64_t b) { return element(tensor, a) > element(tensor, b); });
  std::string text;
  for (size_t i = 0; i < 5; ++i)
    text += fmt::format("{}{} ({})", i ? ", " : "", order[i] - row * classes, value_text(tensor, order[i]));
  return text;
}

void show(const HostTensor& tensor) {
  fmt::print("{}: {} {}\n", tensor.name, type_name(tensor.type), to_text(tensor.dims));
  fmt::print("  first values: {}\n", first_values(tensor));
  int64_t classes = 0;
  if (!looks_like_classes(tensor, classes)) return;
  const int64_t rows = volume(tensor.dims) / classes;
  for (int64_t row = 0; row < std::min<int64_t>(rows, 3); ++row)
    fmt::print("  top 5{}: {}\n", rows > 1 ? fmt::format(" of row {}", row) : "", top_classes(tensor, row, classes));
}

// A tensor's name may hold characters that mean something to the file system.
std::string file_name(const std::string& name) {
  std::string text = name;
  for (char& c : text)
    if (c == '/' || c == '\\' || c == '\0') c = '_';
  return (text.starts_with('.') ? "_" : "") + text + ".npy";
}

}  // namespace

int run(const RunCommand& command) {
  ConsoleLogger logger(command.settings.least_severity());
  const auto files = parse_files(command.inputs, "--loadInputs");
  BuildRequest request{&command.settings, {}, true, nullptr};
  request.runtime = &command.runtime;
  request.shapes = parse_ranges(command.settings.min_shapes, command.settings.opt_shapes, command.settings.max_shapes);
  Session session = Session::open(command.file, request, logger);
  const std::vector<HostTensor> inputs = gather_inputs(session, files, {}, false);
  Inference inference(session, inputs, logger);
  const auto start = Clock::now();
  inference.run();
  const double milliseconds = seconds_since(start) * 1e3;
  const std::vector<HostTensor> outputs = inference.outputs();
  for (const HostTensor& output : outputs) show(output);
  fmt::print("one inference took {}\n", human_time(milliseconds));
  if (command.output_directory.empty()) return 0;
  std::error_code error;
  std::filesystem::create_directories(command.output_directory, error);
  if (error) throw Failure(fmt::format("{}: {}", command.output_directory, error.message()));
  for (const HostTensor& output : outputs)
    write_file((std::filesystem::path(command.output_directory) / file_name(output.name)).string(), npy_bytes(output));
  fmt::print("outputs are in {}\n", command.output_directory);
  return 0;
}

}  // namespace lathe::cli
