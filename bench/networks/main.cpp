// SPDX-License-Identifier: Apache-2.0
// Builds a network and times it, whole and step by step: where the time of an inference goes.
#include <CLI/CLI.hpp>

#include "networks/subject.h"

namespace {

using namespace lathe;

Result<> run(const bench::SubjectOptions& options, double seconds, bool steps, int repeat, const std::string& json) {
  LATHE_ASSIGN(const auto subject, bench::Subject::make(options));
  LATHE_ASSIGN(const bench::Timings timings, subject->time(seconds));
  std::printf("%s\n", subject->describe(timings).c_str());
  if (steps) LATHE_TRY(subject->print_steps());
  if (repeat > 0) LATHE_TRY(subject->check_repeat(repeat));
  if (json.empty()) return {};
  std::FILE* file = std::fopen(json.c_str(), "we");
  if (!file) return fail(ErrorCode::file_not_found, "cannot write '{}'", json);
  std::fprintf(file, "%s\n", subject->to_json(timings).c_str());
  std::fclose(file);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Builds a network and times it, whole and step by step.", "bench_networks");
  bench::SubjectOptions options;
  double seconds = 3;
  bool steps = false;
  int repeat = 0;
  std::string json, precision = "f32";
  app.add_option("MODEL", options.model, "An ONNX model")->required();
  app.add_option("--target", options.target, "As in setTarget(): cpu, cuda, ...");
  app.add_option("--threads", options.threads, "Of a CPU");
  app.add_option("--precision", precision, "What f32 may be narrowed to")->check(CLI::IsMember({"f32", "f16", "bf16"}));
  app.add_flag("!--noTF32", options.tf32, "Products of f32 stay f32");
  app.add_option("--batch", options.batch, "Value of open dimensions");
  app.add_option("--budget", options.budget, "Seconds of tuning");
  app.add_option("--timingCache", options.timing_cache, "File of measurements to reuse, and to add to");
  app.add_flag("--libraries", options.libraries, "cuBLASLt's and cuDNN's kernels may be used beside our own");
  app.add_option("--without", options.without, "Tactics to leave out");
  app.add_option("--seconds", seconds, "To measure for");
  app.add_flag("--steps", steps, "Show the steps that take longest");
  app.add_option("--repeat", repeat, "Runs that must give equal bits");
  app.add_option("--json", json, "File for the numbers");
  CLI11_PARSE(app, argc, argv);
  options.precision = *dtype_from_name(precision);
  const Result<> result = run(options, seconds, steps, repeat, json);
  if (!result) return std::fprintf(stderr, "%s\n", result.error().to_string().c_str()), 1;
}
