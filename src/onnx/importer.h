// SPDX-License-Identifier: Apache-2.0
// The table of operator importers, made from importers.def.
#pragma once

#include <string_view>

#include "onnx/node_context.h"

namespace lathe::onnx {

#define LATHE_ONNX_OP(domain, name, first, last, function) void import_##function(NodeContext& c);
#include "onnx/importers.def"
#undef LATHE_ONNX_OP

struct ImporterRow {
  std::string_view domain;
  std::string_view op;
  int64_t first_version;  // of the operator set
  int64_t last_version;   // kAnyVersion: still alive
  void (*run)(NodeContext& c);
};

inline constexpr int64_t kAnyVersion = INT64_MAX;

// Null when there is none at this version. `other` receives a row of the same name at another version, if any.
const ImporterRow* find_importer(std::string_view domain, std::string_view op, int64_t version,
                                 const ImporterRow** other = nullptr);

}  // namespace lathe::onnx
