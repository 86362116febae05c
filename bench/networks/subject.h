// SPDX-License-Identifier: Apache-2.0
// A network as an engine with a context, its tensors in the device's memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lowering/build.h"
#include "runtime/context.h"

namespace lathe::bench {

struct SubjectOptions {
  std::string model;
  std::string target = "cpu";
  int threads = 1;
  DType precision = DType::f32;
  bool tf32 = true;
  int64_t batch = 1;
  double budget = 10;
  std::string timing_cache;
  bool libraries = false;            // cuBLASLt and cuDNN are tactic sources
  std::vector<std::string> without;  // names of tactics
};

struct Timings {
  double median_ms = 0;  // of one run, the host waiting for each
  double min_ms = 0;
  double stream_ms = 0;  // of one run among many that follow each other without the host waiting
  size_t runs = 0;
};

class Subject {
 public:
  static Result<std::unique_ptr<Subject>> make(const SubjectOptions& options);

  Result<Timings> time(double seconds);
  std::string describe(const Timings& timings) const;
  std::string to_json(const Timings& timings) const;
  Result<> print_steps();
  // Runs so many times and demands the same bits in every output.
  Result<> check_repeat(int runs);

 private:
  Result<> build(const SubjectOptions& options);
  Result<> load();
  Result<std::vector<std::byte>> outputs();

  std::shared_ptr<Device> device_;
  BuildReport report_;
  std::vector<std::byte> bytes_;
  double build_ms_ = 0, load_ms_ = 0, first_ms_ = 0;
  std::shared_ptr<const Engine> engine_;
  std::vector<DeviceMemory> memory_;
  std::vector<std::byte*> addresses_;  // of bindings
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Context> context_;  // goes first: it waits for the work that uses the memory
  std::string name_;
};

}  // namespace lathe::bench
