// SPDX-License-Identifier: Apache-2.0
#include "api/builder/io_formats.h"

#include <algorithm>
#include <bit>

#include "api/tensor_formats.h"
#include "ir/builder.h"

namespace lathe::api {
namespace {

constexpr const char* kDebugFormats =
    "tensor '{}' is handed to debug listeners, which get it row-major: allow kLINEAR, or unmark it";

// Row-major wherever that is allowed; else the first that is.
const TensorLayout* wanted_layout(const nv::ITensor& tensor) {
  const nv::TensorFormats formats = tensor.getAllowedFormats();
  return find_layout(static_cast<nv::TensorFormat>(std::countr_zero(formats)));
}

Result<BindingFormat> format_of(const TensorLayout& layout, const ir::Value& value, const std::string& name) {
  const auto rank = static_cast<size_t>(value.rank());
  const int64_t channels =
      rank > layout.spatial ? value.shape()[rank - 1 - layout.spatial].as_constant().value_or(-1) : -1;
  Result<BindingFormat> format = BindingFormat::make(layout, rank, channels);
  if (!format) return fail(with_context(std::move(format).error(), fmt::format("tensor '{}'", name)));
  if (is_packed(value.dtype()))
    return fail(ErrorCode::config_invalid,
                "tensor '{}' has elements of less than a byte, which are row-major: allow kLINEAR", name);
  return format;
}

// Puts the dimensions of `perm` between those that stay in front.
Ints behind(size_t front, const Ints& perm) {
  Ints whole;
  for (size_t d = 0; d < front; ++d) whole.push_back(static_cast<int64_t>(d));
  for (const int64_t axis : perm) whole.push_back(static_cast<int64_t>(front) + axis);
  return whole;
}

// With c channels (or groups of them) in front of n spatial dimensions: those first, and the reverse.
Ints channels_to_end(size_t n) {
  Ints perm;
  for (size_t d = 1; d <= n; ++d) perm.push_back(static_cast<int64_t>(d));
  perm.push_back(0);
  return perm;
}
Ints channels_to_front(size_t n) {
  Ints perm{static_cast<int64_t>(n)};
  for (size_t d = 0; d < n; ++d) perm.push_back(static_cast<int64_t>(d));
  return perm;
}

// From memory to the network's order.
ir::Value* read_memory(ir::GraphBuilder& b, ir::Value* x, const BindingFormat& format) {
  const TensorLayout& layout = format.layout();
  const size_t front = format.channel_axis(), n = layout.spatial;
  if (!layout.channels_last) {  // groups, spatial, group -> spatial, channels
    Ints perm = channels_to_end(n);
    perm.push_back(static_cast<int64_t>(n) + 1);
    x = b.transpose(x, behind(front, perm));
    Ints sizes(front + n);  // 0: as they are
    sizes.push_back(format.padded_channels());
    x = b.reshape(x, sizes);
  }
  x = b.transpose(x, behind(front, channels_to_front(n)));
  if (format.padded_channels() != format.channels()) x = b.slice(x, static_cast<int64_t>(front), 0, format.channels());
  return x;
}

ir::Value* write_memory(ir::GraphBuilder& b, ir::Value* x, const BindingFormat& format) {
  const TensorLayout& layout = format.layout();
  const size_t front = format.channel_axis(), n = layout.spatial;
  if (format.padded_channels() != format.channels())
    x = b.add(PadAttrs{}, {x, b.ints({0, format.padded_channels() - format.channels()}), nullptr,
                           b.ints({static_cast<int64_t>(front)})});
  x = b.transpose(x, behind(front, channels_to_end(n)));
  if (layout.channels_last) return x;
  Ints sizes(front + n);
  sizes.push_back(format.padded_channels() / layout.vector);
  sizes.push_back(layout.vector);
  x = b.reshape(x, sizes);
  Ints perm = channels_to_front(n);
  perm.push_back(static_cast<int64_t>(n) + 1);
  return b.transpose(x, behind(front, perm));
}

Result<> convert_profiles(std::vector<ProfileShapes>& profiles, const std::string& name, const BindingFormat& format) {
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

Result<> convert_input(ir::Graph& graph, ir::Value* input, const BindingFormat& format) {
  const std::vector<ir::Use> uses = input->uses();
  graph.set_input_type(input, {input->dtype(), format.in_memory(input->shape())});
  ir::Node* const first = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
  ir::GraphBuilder b(graph, {fmt::format("reformat {}", input->name()), {}, {}}, first);
  ir::Value* const value = read_memory(b, input, format);
  if (b.failed()) return fail(b.error().value_or(Error{ErrorCode::internal, "an input cannot be reformatted", {}}));
  for (const ir::Use& use : uses) LATHE_TRY(graph.set_input(use.node, use.index, value));
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    if (graph.outputs()[i].value == input) graph.set_output(i, value);
  return {};
}

Result<> convert_output(ir::Graph& graph, size_t output, const BindingFormat& format) {
  ir::GraphBuilder b(graph, {fmt::format("reformat {}", graph.outputs()[output].name), {}, {}});
  ir::Value* const value = write_memory(b, graph.outputs()[output].value, format);
  if (b.failed()) return fail(b.error().value_or(Error{ErrorCode::internal, "an output cannot be reformatted", {}}));
  graph.set_output(output, value);
  return {};
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> apply_formats(const NetworkDefinition& network,
                                                                       ir::Graph& graph,
                                                                       std::vector<ProfileShapes>& profiles) {
  std::vector<std::pair<std::string, std::string>> formats;
  const nv::INetworkDefinition& definition = network;
  for (int32_t i = 0; i < definition.getNbInputs(); ++i) {
    const TensorLayout* layout = wanted_layout(*definition.getInput(i));
    const std::string name = definition.getInput(i)->getName();
    const auto it = std::ranges::find(graph.inputs(), name, &ir::Value::name);
    if (!layout || it == graph.inputs().end()) continue;
    LATHE_ASSIGN(const BindingFormat format, format_of(*layout, **it, name));
    LATHE_TRY(convert_profiles(profiles, name, format));
    LATHE_TRY(convert_input(graph, *it, format));
    formats.emplace_back(name, format.to_text());
  }
  for (int32_t i = 0; i < definition.getNbOutputs(); ++i) {
    const TensorLayout* layout = wanted_layout(*definition.getOutput(i));
    const std::string name = definition.getOutput(i)->getName();
    const auto it = std::ranges::find(graph.outputs(), name, &ir::Output::name);
    if (!layout || it == graph.outputs().end()) continue;
    LATHE_ASSIGN(const BindingFormat format, format_of(*layout, *it->value, name));
    if (static_cast<const TensorView*>(definition.getOutput(i))->is_debug())
      return fail(ErrorCode::config_invalid, kDebugFormats, name);
    LATHE_TRY(convert_output(graph, static_cast<size_t>(it - graph.outputs().begin()), format));
    formats.emplace_back(name, format.to_text());
  }
  return formats;
}

}  // namespace lathe::api
