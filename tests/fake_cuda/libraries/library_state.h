// SPDX-License-Identifier: Apache-2.0
// What the stand-in libraries share: which calls are to fail, and work on streams.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "fake_cuda/libraries/library_control.h"

namespace fake_library {

struct State {
  std::mutex mutex;
  size_t version = 0;
  size_t offered = 0;
  size_t live = 0;
  struct Failure {
    std::string function;
    size_t countdown = 0;
    int status = 0;
  };
  std::vector<Failure> failures;
  std::vector<const char*> calls;
};
State& state();

// Counts a call; the status that it is to have, 0 where it goes on.
int enter(const char* function);

// Gives work to a stream of the stand-in driver; a CUresult.
int submit(void* stream, const void* kind, std::function<void()> work);
bool holds(const void* address, size_t bytes);  // whether it is memory of a device

// Elements of the floats that the libraries know.
float load(lathe::DType dtype, const void* data, int64_t index);
void store(lathe::DType dtype, void* data, int64_t index, float value);

extern const size_t kFirstVersion;  // of each library
extern const size_t kMostOffered;

}  // namespace fake_library
