// SPDX-License-Identifier: Apache-2.0
#include "api/builder/plugin_reformat.h"

#include <algorithm>

#include "api/builder/reformat.h"

namespace lathe::api {

Result<> PluginReformat::apply(PluginAttrs attrs) {
  if (std::ranges::none_of(formats_, [](const auto& format) { return format.has_value(); }))
    return graph_.set_attributes(&node_, attrs);
  attrs.formats = formats_text(formats_);
  std::vector<ir::Value*> inputs = node_.inputs();
  for (size_t i = 0; i < static_cast<size_t>(attrs.data_inputs); ++i) {
    if (!formats_[i]) continue;
    ir::GraphBuilder b(graph_, {fmt::format("reformat {}", inputs[i]->name()), node_.origin(), {}}, &node_);
    inputs[i] = write_memory(b, inputs[i], *formats_[i]);
    if (b.failed()) return fail(*b.error());
  }
  LATHE_ASSIGN(ir::Node* const made,
               graph_.add(attrs, std::move(inputs), {node_.name(), node_.origin(), {}}, node_.num_outputs(), &node_));
  made->metadata = node_.metadata;
  for (size_t i = 0; i < node_.num_outputs(); ++i) LATHE_TRY(convert_output(*made, i));
  const std::string name = node_.name();
  graph_.erase(&node_);
  graph_.rename(made, name);
  return {};
}

Result<> PluginReformat::convert_output(ir::Node& made, size_t i) {
  const std::string name = node_.output(i)->name();
  ir::Value* result = made.output(i);
  if (const auto& format = formats_[formats_.size() - node_.num_outputs() + i]) {
    ir::GraphBuilder b(graph_, {fmt::format("reformat {}", name), node_.origin(), {}}, &node_);
    result = read_memory(b, result, *format);
    if (b.failed()) return fail(*b.error());
  }
  LATHE_TRY(graph_.replace_uses(node_.output(i), result));
  graph_.rename(node_.output(i), fmt::format("{} before", name));
  graph_.rename(result, name);
  return {};
}

}  // namespace lathe::api
