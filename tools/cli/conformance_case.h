// SPDX-License-Identifier: Apache-2.0
// One ONNX test folder: model.onnx and test_data_set_*/{input,output}_<i>.pb.
#pragma once

#include <string>

namespace lathe::cli {

enum class Mode { runtime, frozen, symbolic, reload };

// How each case becomes an engine.
struct CaseOptions {
  Mode mode = Mode::runtime;
  std::string target;  // empty: the library's default
  bool tf32 = true;
};

enum class Verdict { passed, failed, unsupported };

struct CaseResult {
  Verdict verdict = Verdict::failed;
  std::string reason;
};

// Never throws but for lack of memory.
CaseResult run_case(const std::string& folder, const CaseOptions& options);

}  // namespace lathe::cli
