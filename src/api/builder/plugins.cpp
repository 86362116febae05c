// SPDX-License-Identifier: Apache-2.0
#include "api/builder/plugins.h"

#include <algorithm>
#include <cstring>

#include "api/builder/plugin_reformat.h"
#include "api/network/plugin_import.h"
#include "api/network/plugin_layer.h"
#include "device/family.h"
#include "lowering/plugin_sizes.h"
#include "lowering/profiles.h"
#include "ops/plugin.h"
#include "plugin/running_plugin.h"

namespace lathe::api {
namespace {

using plugin::BuildingPlugin;

// One node and its plugin.
class PluginNode {
 public:
  PluginNode(ir::Graph& graph, ir::Node& node, HeldPlugin& held, const BuildOptions& options)
      : graph_(graph), node_(node), held_(held), options_(options), attrs_(node.attrs<PluginAttrs>()) {}

  Result<> settle(const std::vector<plan::Profile>& profiles, bool allows_aliases) {
    LATHE_ASSIGN(const BuildingPlugin plugin, BuildingPlugin::of(*held_.plugin, node_.name()));
    LATHE_ASSIGN(results_, parse_plugin_results(attrs_));
    attrs_.workspace = 0;
    LATHE_ASSIGN(BuildingPlugin::Tensors first, tensors_under(profiles[0]));
    LATHE_TRY(plugin.choose_formats(first, offered_formats(first)));
    for (const plan::Profile& profile : profiles) {
      BuildingPlugin::Tensors tensors = first;
      if (&profile != &profiles[0]) {
        LATHE_ASSIGN(tensors, tensors_under(profile));
        copy_formats(first, tensors);
      }
      LATHE_TRY(plugin.configure(tensors));
      LATHE_ASSIGN(const size_t workspace, plugin.workspace(tensors));
      if (workspace > options_.tuner.most_workspace)
        return fail(ErrorCode::no_tactic,
                    "{}: getWorkspaceSize() gives {} bytes, and MemoryPoolType::kWORKSPACE allows {}",
                    plugin.who().text(), workspace, options_.tuner.most_workspace);
      attrs_.workspace = std::max(attrs_.workspace, static_cast<int64_t>(workspace));
    }
    if (allows_aliases) LATHE_TRY(find_aliases(plugin, first));
    LATHE_ASSIGN(const std::vector<int32_t> tactics, plugin.tactics());
    LATHE_ASSIGN(attrs_.tactic, fastest(plugin, tactics, first));
    LATHE_TRY(plugin::expect_success(ErrorCode::graph_invalid, plugin.who(), "setTactic",
                                     plugin.runtime().setTactic(static_cast<int32_t>(attrs_.tactic))));
    LATHE_ASSIGN(const std::vector<std::byte> fields, plugin.fields());
    LATHE_ASSIGN(attrs_.fields, Tensor::allocate(DType::u8, {static_cast<int64_t>(fields.size())}));
    std::memcpy(attrs_.fields.mutable_data(), fields.data(), fields.size());
    if (const DeviceFamily* family = find_family(options_.target); family && family->is_host())
      options_.log->print(
          Severity::warning,
          "{} is in an engine for the CPU, where plugins are given memory of the host and a null stream: "
          "one that is written for GPUs must ask lathe::runsOnHost() in attachToContext()",
          plugin.who().text());
    return PluginReformat(graph_, node_, formats_of(first)).apply(attrs_);
  }

 private:
  enum class At { min, opt, max };

  Result<int64_t> value_of(const Expr& size, const plan::Profile& profile, At at) const {
    std::vector<int64_t> symbols;
    for (const plan::SymbolProfile& symbol : profile.symbols)
      symbols.push_back(at == At::min                                      ? symbol.min
                        : at == At::max && symbol.max != Range::kUnbounded ? symbol.max
                                                                           : symbol.opt);
    if (const std::optional<int64_t> value = size.evaluate(symbols)) return *value;
    return fail(ErrorCode::shape_unknown, "plugin '{}' of layer '{}': the size {} has no value under a profile",
                attrs_.name, node_.name(), size.to_string());
  }

  // Of the op's own symbols.
  Result<std::vector<int64_t>> sizes_at(const plan::Profile& profile, At at) const {
    std::vector<int64_t> values;
    for (const Expr& size : given_sizes(node_, results_.sizes.size())) {
      LATHE_ASSIGN(const int64_t value, value_of(size, profile, at));
      values.push_back(value);
    }
    for (size_t i = 0; i < results_.sizes.size() && at != At::min; ++i) {
      const plugin::DeclaredSize& size = held_.sizes[i];
      values[i] = (at == At::opt ? size.opt : size.upper).evaluate(values).value_or(0);
    }
    return values;
  }

  Result<nv::DynamicPluginTensorDesc> describe(const ValueType& type, const Shape& dims, const plan::Profile& profile,
                                               bool is_local) const {
    nv::DynamicPluginTensorDesc desc{};
    Dims known;
    for (const Expr& dim : dims) known.push_back(dim.as_constant().value_or(-1));
    desc.desc = plugin::describe(type.dtype, known);
    const std::pair<At, nv::Dims*> ends[] = {{At::min, &desc.min}, {At::opt, &desc.opt}, {At::max, &desc.max}};
    for (const auto& [at, to] : ends) {
      LATHE_ASSIGN(const std::vector<int64_t> sizes, sizes_at(profile, at));
      to->nbDims = static_cast<int32_t>(dims.size());
      for (size_t d = 0; d < dims.size(); ++d) {
        if (is_local) {
          to->d[d] = type.shape[d].evaluate(sizes).value_or(-1);
        } else {
          LATHE_ASSIGN(to->d[d], value_of(dims[d], profile, at));
        }
      }
    }
    return desc;
  }

  Result<BuildingPlugin::Tensors> tensors_under(const plan::Profile& profile) const {
    BuildingPlugin::Tensors tensors;
    for (size_t i = 0; i < static_cast<size_t>(attrs_.data_inputs); ++i) {
      const ir::Value* input = node_.input(i);
      LATHE_ASSIGN(const auto desc, describe(input->type(), input->shape(), profile, kOfGraph));
      tensors.inputs.push_back(desc);
    }
    for (size_t i = 0; i < node_.num_outputs(); ++i) {
      LATHE_ASSIGN(const auto desc, describe(results_.types[i], node_.output(i)->shape(), profile, kOfOp));
      tensors.outputs.push_back(desc);
    }
    return tensors;
  }

  static std::optional<MemoryFormat> format_of(const nv::DynamicPluginTensorDesc& tensor, int32_t number) {
    const MemoryLayout* const layout = find_layout(number);
    if (!layout) return std::nullopt;
    const nv::Dims& dims = tensor.desc.dims;
    const auto rank = static_cast<size_t>(dims.nbDims);
    const int64_t channels = rank > layout->spatial ? dims.d[rank - 1 - layout->spatial] : -1;
    Result<MemoryFormat> format = MemoryFormat::make(*layout, rank, channels);
    return format ? std::optional(*std::move(format)) : std::nullopt;
  }

  // What each tensor can lie in: row-major memory, and what else its rank and number of channels allow. Plugins that
  // find sizes out have row-major tensors alone.
  std::vector<std::vector<int32_t>> offered_formats(const BuildingPlugin::Tensors& tensors) const {
    std::vector<std::vector<int32_t>> offered;
    for (const auto* side : {&tensors.inputs, &tensors.outputs})
      for (const nv::DynamicPluginTensorDesc& tensor : *side) {
        std::vector<int32_t>& own = offered.emplace_back(1, 0);
        if (!results_.sizes.empty() || is_packed(*to_dtype(tensor.desc.type))) continue;
        for (const MemoryLayout& layout : memory_layouts())
          if (format_of(tensor, layout.number)) own.push_back(layout.number);
      }
    return offered;
  }

  static void copy_formats(const BuildingPlugin::Tensors& from, BuildingPlugin::Tensors& to) {
    for (size_t i = 0; i < from.inputs.size(); ++i) to.inputs[i].desc.format = from.inputs[i].desc.format;
    for (size_t i = 0; i < from.outputs.size(); ++i) to.outputs[i].desc.format = from.outputs[i].desc.format;
  }

  static PluginFormats formats_of(const BuildingPlugin::Tensors& tensors) {
    PluginFormats formats;
    for (const auto* side : {&tensors.inputs, &tensors.outputs})
      for (const auto& tensor : *side) formats.push_back(format_of(tensor, static_cast<int32_t>(tensor.desc.format)));
    return formats;
  }

  Result<> find_aliases(const BuildingPlugin& plugin, const BuildingPlugin::Tensors& tensors) {
    LATHE_ASSIGN(attrs_.aliases, plugin.aliases(static_cast<size_t>(attrs_.data_inputs), node_.num_outputs()));
    for (size_t i = 0; i < attrs_.aliases.size(); ++i) {
      if (attrs_.aliases[i] < 0) continue;
      const ir::Value* input = node_.input(static_cast<size_t>(attrs_.aliases[i]));
      if (input->dtype() != node_.output(i)->dtype() || input->shape() != node_.output(i)->shape() ||
          tensors.inputs[static_cast<size_t>(attrs_.aliases[i])].desc.format != tensors.outputs[i].desc.format)
        return plugin::refuse(ErrorCode::graph_invalid, plugin.who(), "getAliasedInput",
                              "gives input {} for output {}, whose type, dimensions or format differ",
                              attrs_.aliases[i], i);
    }
    return {};
  }

  // The first one where nothing can be measured.
  Result<int32_t> fastest(const BuildingPlugin& plugin, const std::vector<int32_t>& tactics,
                          const BuildingPlugin::Tensors& tensors) const {
    if (tactics.size() == 1) return tactics[0];
    const std::string id = plugin.timing_id();
    lathe::TimingCache* const cache = id.empty() ? nullptr : options_.tuner.cache;
    const lathe::TimingCache::Key key =
        lathe::TimingCache::key_of(problem_text(plugin, id, tensors), options_.tuner.timing_key);
    if (const std::optional<lathe::TimingCache::Entry> known = cache ? cache->find(key) : std::nullopt)
      for (const int32_t tactic : tactics)
        if (known->chosen.tactic == std::to_string(tactic)) return tactic;
    if (!options_.tuner.device) return tactics[0];
    lathe::TimingCache::Entry entry;
    for (const int32_t tactic : tactics) {
      LATHE_ASSIGN(const double time, time_of(plugin, tactic, tensors));
      options_.log->print(Severity::verbose, "{}: tactic {} takes {:.3f} us", plugin.who().text(), tactic, time);
      entry.candidates.push_back({std::to_string(tactic), "", static_cast<float>(time)});
    }
    const auto best = std::min_element(entry.candidates.begin(), entry.candidates.end(),
                                       [](const auto& a, const auto& b) { return a.microseconds < b.microseconds; });
    entry.chosen = *best;
    const int32_t chosen = tactics[static_cast<size_t>(best - entry.candidates.begin())];
    if (!options_.tuner.keeps_candidates) entry.candidates.clear();
    if (cache) cache->insert(key, std::move(entry));
    return chosen;
  }

  // What the times of tactics depend on besides the device. The id stands for the plugin's fields.
  std::string problem_text(const BuildingPlugin& plugin, const std::string& id,
                           const BuildingPlugin::Tensors& tensors) const {
    std::string text = fmt::format("plugin {} {} {} {} workspace={}", attrs_.space, attrs_.name, plugin.who().version,
                                   id, attrs_.workspace);
    for (const auto* side : {&tensors.inputs, &tensors.outputs})
      for (const nv::DynamicPluginTensorDesc& tensor : *side) {
        text += fmt::format("; {} {}", static_cast<int>(tensor.desc.type), static_cast<int>(tensor.desc.format));
        for (int32_t d = 0; d < tensor.opt.nbDims; ++d) text += fmt::format(" {}", tensor.opt.d[d]);
      }
    return text;
  }

  Result<double> time_of(const BuildingPlugin& plugin, int32_t tactic, const BuildingPlugin::Tensors& tensors) const {
    Device& device = *options_.tuner.device;
    const plugin::ResourceContext context(device.is_host(), nullptr, nullptr);
    LATHE_ASSIGN(const auto attached, plugin::PluginClone::attach(plugin.runtime(), plugin.who(), context, tactic));
    LATHE_ASSIGN(const std::unique_ptr<Queue> queue, device.make_queue());
    std::vector<DeviceMemory> memory;
    PluginTensors inputs, outputs;
    std::vector<const void*> in;
    std::vector<void*> out;
    const auto place = [&](const nv::DynamicPluginTensorDesc& each) -> Result<PluginTensor> {
      LATHE_ASSIGN(const DType type, to_dtype(each.desc.type));
      const auto number = static_cast<int32_t>(each.desc.format);
      PluginTensor tensor{type, number, each.opt.nbDims, {}};
      std::copy_n(each.opt.d, each.opt.nbDims, tensor.dims);
      Dims room(each.max.d, each.max.d + each.max.nbDims);
      for (size_t d = 0; d < room.size(); ++d) room[d] = std::max(room[d], tensor.dims[d]);
      if (const auto format = format_of(each, number)) room = format->in_memory(room);
      const int64_t largest = checked_volume(room).value_or(0);
      LATHE_ASSIGN(DeviceMemory block, device.allocate(static_cast<size_t>(bytes_of(type, largest).value_or(0))));
      const std::vector<std::byte> zeros(block.size());
      if (!zeros.empty()) LATHE_TRY(device.upload(block.data(), zeros.data(), zeros.size(), *queue));
      memory.push_back(std::move(block));
      return tensor;
    };
    LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(*queue));
    for (const auto& each : tensors.inputs) {
      LATHE_ASSIGN(const PluginTensor tensor, place(each));
      inputs.push_back(tensor);
      in.push_back(memory.back().data());
    }
    for (size_t i = 0; i < tensors.outputs.size(); ++i) {
      LATHE_ASSIGN(const PluginTensor tensor, place(tensors.outputs[i]));
      outputs.push_back(tensor);
      out.push_back(memory.back().data());
      if (i < attrs_.aliases.size() && attrs_.aliases[i] >= 0) in[static_cast<size_t>(attrs_.aliases[i])] = out.back();
    }
    LATHE_ASSIGN(DeviceMemory workspace, device.allocate(static_cast<size_t>(attrs_.workspace)));
    LATHE_TRY(attached->change_shapes(inputs, outputs));
    const auto work = [&](Queue& on) {
      return attached->enqueue(in.data(), out.data(), workspace.data(), device.native_stream(on));
    };
    LATHE_ASSIGN(const std::vector<double> times, device.time(*queue, work, std::max(options_.tuner.repeats, 1)));
    return *std::min_element(times.begin(), times.end());
  }

  static constexpr bool kOfGraph = false, kOfOp = true;
  ir::Graph& graph_;
  ir::Node& node_;
  HeldPlugin& held_;
  const BuildOptions& options_;
  PluginAttrs attrs_;
  PluginResults results_;
};

// Of the node's layer; nodes of bodies that an importer made have none.
Result<HeldPlugin*> plugin_of(const NetworkDefinition& network, const ir::Node& node) {
  HeldPlugin* held = nullptr;
  for (const auto& any : network.layers()) {
    auto* const layer = dynamic_cast<PluginLayer*>(any.get());
    if (!layer || any->name() != node.name()) continue;
    if (held)
      return fail(ErrorCode::graph_invalid, "two plugin layers are called '{}'; give one another name", node.name());
    held = &layer->held();
  }
  if (held) return held;
  if (network.plugins()) held = network.plugins()->find(node.name()).get();
  if (held) return held;
  return fail(ErrorCode::graph_invalid, "no layer of the network is plugin '{}'", node.name());
}

struct Place {
  ir::Graph* graph;
  ir::Node* node;
};

void find_plugins(ir::Graph& graph, std::vector<Place>& places) {
  for (const auto& node : graph.nodes()) {
    if (node->is(OpKind::plugin)) places.push_back({&graph, node.get()});
    for (const auto& body : node->bodies()) find_plugins(*body, places);
  }
}

}  // namespace

Result<> settle_plugins(const NetworkDefinition& network, ir::Graph& graph, const BuildOptions& options,
                        bool allows_aliases) {
  std::vector<Place> places;
  find_plugins(graph, places);
  if (places.empty()) return {};
  LATHE_ASSIGN(const std::vector<plan::Profile> profiles, resolve_profiles(graph, options));
  for (const Place& place : places) {
    LATHE_ASSIGN(HeldPlugin * held, plugin_of(network, *place.node));
    LATHE_TRY(PluginNode(*place.graph, *place.node, *held, options).settle(profiles, allows_aliases));
  }
  return {};
}

}  // namespace lathe::api
