// SPDX-License-Identifier: Apache-2.0
#include "onnx/importer.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "onnx/import.h"
#include "onnx/plugins.h"

namespace lathe::onnx {
namespace {

const ImporterRow kRows[] = {
#define LATHE_ONNX_OP(domain, name, first, last, function) {domain, #name, first, last, &import_##function},
#include "onnx/importers.def"
#undef LATHE_ONNX_OP
};

const std::unordered_map<std::string_view, std::vector<const ImporterRow*>>& rows_by_name() {
  static const auto rows = [] {
    std::unordered_map<std::string_view, std::vector<const ImporterRow*>> map;
    for (const ImporterRow& row : kRows) map[row.op].push_back(&row);
    return map;
  }();
  return rows;
}

}  // namespace

const ImporterRow* find_importer(std::string_view domain, std::string_view op, int64_t version,
                                 const ImporterRow** other) {
  const auto found = rows_by_name().find(op);
  if (found == rows_by_name().end()) return nullptr;
  for (const ImporterRow* row : found->second) {
    if (row->domain != domain) continue;
    if (row->first_version <= version && version <= row->last_version) return row;
    if (other) *other = row;
  }
  return nullptr;
}

bool is_operator_known(std::string_view domain, std::string_view op_type, int64_t version) {
  return find_importer(normal_domain(domain), op_type, version) != nullptr;
}

bool is_operator_known(std::string_view op_type) {
  return rows_by_name().contains(op_type) || is_standard_plugin(op_type);
}

}  // namespace lathe::onnx
