// SPDX-License-Identifier: Apache-2.0
// One compilation by NVRTC, as data.
#pragma once

#include <string>
#include <vector>

#include "device/cuda/nvrtc.h"

namespace lathe::cuda {

// Whoever hands a structure to another process calls `visit` with all of its fields: visit(a, b, c).
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
  std::string log;                 // of a very long one, the beginning and the end
  std::string code;
  template <class Visit>
  void fields(Visit&& visit) {
    visit(result, log, code);
  }
};

Compiled compile_source(const Nvrtc& nvrtc, const CompileRequest& request);

}  // namespace lathe::cuda
