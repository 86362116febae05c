// SPDX-License-Identifier: Apache-2.0
// One compilation by NVRTC: its inputs and its results as plain structures.
#pragma once

#include <string>
#include <vector>

#include "device/cuda/nvrtc.h"

namespace lathe::cuda {

// fields() calls `visit` with all members of a structure, visit(a, b, c): worker_protocol.h serializes structures by
// it.
struct CompileRequest {
  struct Header {
    std::string name, text;
    template <class Visit>
    void fields(Visit&& visit) {
      visit(name, text);
    }
  };
  std::string source;
  std::vector<Header> headers;
  std::vector<std::string> options;
  template <class Visit>
  void fields(Visit&& visit) {
    visit(source, headers, options);
  }
};

struct Compiled {
  int32_t result = NVRTC_SUCCESS;  // an nvrtcResult
  std::string log;                 // only its beginning and end where it exceeds 256 KiB
  std::string code;                // the cubin, where result is NVRTC_SUCCESS
  template <class Visit>
  void fields(Visit&& visit) {
    visit(result, log, code);
  }
};

// Runs NVRTC in this process. What it says of the source is in Compiled::result. Not to be called by several threads at
// once (decision 0013).
Compiled compile_source(const Nvrtc& nvrtc, const CompileRequest& request);

}  // namespace lathe::cuda
