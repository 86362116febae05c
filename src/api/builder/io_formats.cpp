// SPDX-License-Identifier: Apache-2.0
#include "api/builder/io_formats.h"

#include <algorithm>
#include <bit>

#include "api/builder/boundary.h"
#include "api/builder/reformat.h"

namespace lathe::api {
namespace {

constexpr const char* kDebugFormats =
    "tensor '{}' is handed to debug listeners, which get it row-major: allow kLINEAR, or unmark it";

// Row-major wherever that is allowed; else the first that is.
const MemoryLayout* wanted_layout(const nv::ITensor& tensor) {
  const nv::TensorFormats formats = tensor.getAllowedFormats();
  return find_layout(std::countr_zero(formats));
}

Result<MemoryFormat> format_of(const MemoryLayout& layout, const ir::Value& value, const std::string& name) {
  const auto rank = static_cast<size_t>(value.rank());
  const int64_t channels =
      rank > layout.spatial ? value.shape()[rank - 1 - layout.spatial].as_constant().value_or(-1) : -1;
  Result<MemoryFormat> format = MemoryFormat::make(layout, rank, channels);
  if (!format) return fail(with_context(std::move(format).error(), fmt::format("tensor '{}'", name)));
  if (is_packed(value.dtype()))
    return fail(ErrorCode::config_invalid,
                "tensor '{}' has elements of less than a byte, which are row-major: allow kLINEAR", name);
  return format;
}

Result<> convert_profiles(std::vector<ProfileShapes>& profiles, const std::string& name, const MemoryFormat& format) {
  for (ProfileShapes& profile : profiles) {
    const auto it = profile.inputs.find(name);
    if (it == profile.inputs.end()) continue;
    for (Dims* dims : {&it->second.min, &it->second.opt, &it->second.max})
      if (!dims->empty()) {
        LATHE_ASSIGN(*dims, format.in_memory_checked(*dims));
      }
  }
  return {};
}

Result<> reformat_input(ir::Graph& graph, ir::Value* input, const MemoryFormat& format) {
  return convert_input(graph, input, {input->dtype(), format.in_memory(input->shape())},
                       [&](ir::GraphBuilder& b, ir::Value* memory) { return read_memory(b, memory, format); });
}

Result<> reformat_output(ir::Graph& graph, size_t output, const MemoryFormat& format) {
  return convert_output(graph, output,
                        [&](ir::GraphBuilder& b, ir::Value* value) { return write_memory(b, value, format); });
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> apply_formats(const NetworkDefinition& network,
                                                                       ir::Graph& graph,
                                                                       std::vector<ProfileShapes>& profiles) {
  std::vector<std::pair<std::string, std::string>> formats;
  const nv::INetworkDefinition& definition = network;
  for (int32_t i = 0; i < definition.getNbInputs(); ++i) {
    const MemoryLayout* layout = wanted_layout(*definition.getInput(i));
    const std::string name = definition.getInput(i)->getName();
    const auto it = std::ranges::find(graph.inputs(), name, &ir::Value::name);
    if (!layout || it == graph.inputs().end()) continue;
    LATHE_ASSIGN(const MemoryFormat format, format_of(*layout, **it, name));
    LATHE_TRY(convert_profiles(profiles, name, format));
    LATHE_TRY(reformat_input(graph, *it, format));
    formats.emplace_back(name, format.to_text());
  }
  for (int32_t i = 0; i < definition.getNbOutputs(); ++i) {
    const MemoryLayout* layout = wanted_layout(*definition.getOutput(i));
    const std::string name = definition.getOutput(i)->getName();
    const auto it = std::ranges::find(graph.outputs(), name, &ir::Output::name);
    if (!layout || it == graph.outputs().end()) continue;
    LATHE_ASSIGN(const MemoryFormat format, format_of(*layout, *it->value, name));
    if (static_cast<const TensorView*>(definition.getOutput(i))->is_debug())
      return fail(ErrorCode::config_invalid, kDebugFormats, name);
    LATHE_TRY(reformat_output(graph, static_cast<size_t>(it - graph.outputs().begin()), format));
    formats.emplace_back(name, format.to_text());
  }
  return formats;
}

}  // namespace lathe::api
