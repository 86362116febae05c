// SPDX-License-Identifier: Apache-2.0
#include "plugin/building_plugin.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "plugin/field_bytes.h"
#include "shape/memory_format.h"

namespace lathe::plugin {
namespace {

constexpr ErrorCode kWrong = ErrorCode::graph_invalid;
constexpr size_t kMaxName = 1024;
constexpr int32_t kMostOutputs = 1024;
constexpr int32_t kMostTactics = 4096;

Result<std::string> name_of(const char* text, const char* callback, const std::string& layer) {
  if (text && strnlen(text, kMaxName) < kMaxName) return std::string(text);
  return fail(kWrong, "the plugin of layer '{}': {}() gives {}; a text of at most {} characters is wanted", layer,
              callback, text ? "a longer text" : "null", kMaxName - 1);
}

}  // namespace

Result<BuildingPlugin> BuildingPlugin::of(nv::IPluginV3& plugin, std::string layer) {
  BuildingPlugin made;
  const auto capability = [&](nv::PluginCapabilityType type, const char* what) -> Result<nv::IPluginCapability*> {
    nv::IPluginCapability* const found = plugin.getCapabilityInterface(type);
    if (found) return found;
    return fail(kWrong,
                "the plugin of layer '{}': getCapabilityInterface({}) gives null; networks need plugins that "
                "have the capabilities core, build and runtime",
                layer, what);
  };
  LATHE_ASSIGN(auto* const core, capability(nv::PluginCapabilityType::kCORE, "kCORE"));
  LATHE_ASSIGN(auto* const build, capability(nv::PluginCapabilityType::kBUILD, "kBUILD"));
  LATHE_ASSIGN(auto* const runtime, capability(nv::PluginCapabilityType::kRUNTIME, "kRUNTIME"));
  const auto& names = *static_cast<nv::IPluginV3OneCore*>(core);
  made.build_ = static_cast<nv::IPluginV3OneBuild*>(build);
  made.runtime_ = static_cast<nv::IPluginV3OneRuntime*>(runtime);
  LATHE_ASSIGN(made.who_.name, name_of(names.getPluginName(), "getPluginName", layer));
  LATHE_ASSIGN(made.who_.version, name_of(names.getPluginVersion(), "getPluginVersion", layer));
  LATHE_ASSIGN(made.space_, name_of(names.getPluginNamespace(), "getPluginNamespace", layer));
  made.who_.layer = std::move(layer);
  return made;
}

Result<size_t> BuildingPlugin::num_outputs() const {
  const int32_t count = build_->getNbOutputs();
  if (count >= 1 && count <= kMostOutputs) return static_cast<size_t>(count);
  return refuse(kWrong, who_, "getNbOutputs", "gives {}; 1 to {} is allowed", count, kMostOutputs);
}

Result<std::vector<DType>> BuildingPlugin::output_types(const std::vector<DType>& inputs) const {
  LATHE_ASSIGN(const size_t count, num_outputs());
  std::vector<nv::DataType> given, answer(count, static_cast<nv::DataType>(-1));
  for (const DType type : inputs) given.push_back(to_nv(type));
  LATHE_TRY(expect_success(kWrong, who_, "getOutputDataTypes",
                           build_->getOutputDataTypes(answer.data(), static_cast<int32_t>(count), given.data(),
                                                      static_cast<int32_t>(given.size()))));
  std::vector<DType> types;
  for (size_t i = 0; i < count; ++i) {
    const Result<DType> type = to_dtype(answer[i]);
    if (!type)
      return refuse(kWrong, who_, "getOutputDataTypes", "gives output {} the type {}, which does not exist", i,
                    static_cast<int>(answer[i]));
    types.push_back(*type);
  }
  return types;
}

Result<BuildingPlugin::Shapes> BuildingPlugin::output_shapes(const std::vector<Shape>& inputs,
                                                             const std::vector<Shape>& shape_inputs,
                                                             SymbolId first_size) const {
  LATHE_ASSIGN(const size_t count, num_outputs());
  ExprBuilder builder(first_size);
  std::vector<nv::DimsExprs> given, contents, answer(count);
  for (const Shape& shape : inputs) given.push_back(builder.add(shape));
  for (const Shape& elements : shape_inputs) {
    if (elements.size() > nv::Dims::MAX_DIMS)
      return fail(kWrong, "{}: a shape input has {} elements; at most {} are told", who_.text(), elements.size(),
                  nv::Dims::MAX_DIMS + 0);
    contents.push_back(builder.add(elements));
  }
  for (nv::DimsExprs& dims : answer) dims = {-1, {}};
  LATHE_TRY(expect_success(kWrong, who_, "getOutputShapes",
                           build_->getOutputShapes(given.data(), static_cast<int32_t>(given.size()), contents.data(),
                                                   static_cast<int32_t>(contents.size()), answer.data(),
                                                   static_cast<int32_t>(count), builder)));
  Shapes shapes;
  for (size_t i = 0; i < count; ++i) {
    if (answer[i].nbDims < 0 || answer[i].nbDims > nv::Dims::MAX_DIMS)
      return refuse(kWrong, who_, "getOutputShapes", "gives output {} {} dimensions; 0 to {} are allowed", i,
                    answer[i].nbDims, nv::Dims::MAX_DIMS + 0);
    Shape& shape = shapes.outputs.emplace_back();
    for (int32_t d = 0; d < answer[i].nbDims; ++d) {
      const Expr* expr = builder.find(answer[i].d[d]);
      if (!expr)
        return refuse(kWrong, who_, "getOutputShapes",
                      "gives output {} a dimension {} that is {}; the expressions of its IExprBuilder are wanted", i, d,
                      answer[i].d[d] ? "from elsewhere" : "null");
      if (expr->as_constant().value_or(0) < 0)
        return refuse(kWrong, who_, "getOutputShapes", "gives output {} the size {}", i, *expr->as_constant());
      shape.push_back(*expr);
    }
  }
  for (const DeclaredSize& size : builder.sizes())
    if (size.output >= count || !shapes.outputs[size.output].empty())
      return refuse(kWrong, who_, "getOutputShapes",
                    "declares output {} to be a size tensor; those are outputs without dimensions", size.output);
  shapes.sizes = builder.sizes();
  return shapes;
}

namespace {

// A plugin is asked for one tensor after the other, given the formats of those before.
class FormatSearch {
 public:
  FormatSearch(nv::IPluginV3OneBuild& plugin, std::vector<nv::DynamicPluginTensorDesc>& all, size_t inputs,
               const std::vector<std::vector<int32_t>>& offered)
      : plugin_(plugin),
        all_(all),
        inputs_(static_cast<int32_t>(inputs)),
        outputs_(static_cast<int32_t>(all.size() - inputs)),
        offered_(offered),
        questions_(std::max<int64_t>(plugin.getFormatCombinationLimit(), 1) * static_cast<int64_t>(all.size())) {}

  // Whether formats of the tensors from this one on are found.
  bool run(size_t position = 0) {
    if (position == all_.size()) return true;
    farthest_ = std::max(farthest_, position);
    for (const int32_t format : offered_[position]) {
      if (questions_-- <= 0) return false;
      all_[position].desc.format = static_cast<nv::TensorFormat>(format);
      if (plugin_.supportsFormatCombination(static_cast<int32_t>(position), all_.data(), inputs_, outputs_) &&
          run(position + 1))
        return true;
    }
    return false;
  }
  size_t farthest() const { return farthest_; }  // the tensor behind the longest combination that suits the plugin

 private:
  nv::IPluginV3OneBuild& plugin_;
  std::vector<nv::DynamicPluginTensorDesc>& all_;
  int32_t inputs_, outputs_;
  const std::vector<std::vector<int32_t>>& offered_;
  int64_t questions_;
  size_t farthest_ = 0;
};

std::string names_of(const std::vector<int32_t>& formats) {
  std::string text;
  for (const int32_t format : formats) {
    const MemoryLayout* const layout = find_layout(format);
    text += fmt::format("{}k{}", text.empty() ? "" : ", ", layout ? layout->name : "LINEAR");
  }
  return text;
}

}  // namespace

Result<> BuildingPlugin::choose_formats(Tensors& tensors, const std::vector<std::vector<int32_t>>& offered) const {
  std::vector<nv::DynamicPluginTensorDesc> all = tensors.inputs;
  all.insert(all.end(), tensors.outputs.begin(), tensors.outputs.end());
  const size_t inputs = tensors.inputs.size();
  FormatSearch search(*build_, all, inputs, offered);
  if (search.run()) {
    std::copy_n(all.begin(), inputs, tensors.inputs.begin());
    std::copy(all.begin() + static_cast<std::ptrdiff_t>(inputs), all.end(), tensors.outputs.begin());
    return {};
  }
  const size_t refused = search.farthest();
  return fail(ErrorCode::no_tactic,
              "{}: supportsFormatCombination() refuses {} {}, of {}, in each format that it can have: {}. Plugins are "
              "given tensors of the types that the network has: cast the inputs, or let the plugin take such",
              who_.text(), refused < inputs ? "input" : "output", refused < inputs ? refused : refused - inputs,
              lathe::name_of(*to_dtype(all[refused].desc.type)), names_of(offered[refused]));
}

Result<> BuildingPlugin::configure(const Tensors& tensors) const {
  return expect_success(kWrong, who_, "configurePlugin",
                        build_->configurePlugin(tensors.inputs.data(), static_cast<int32_t>(tensors.inputs.size()),
                                                tensors.outputs.data(), static_cast<int32_t>(tensors.outputs.size())));
}

Result<size_t> BuildingPlugin::workspace(const Tensors& tensors) const {
  const size_t bytes = build_->getWorkspaceSize(tensors.inputs.data(), static_cast<int32_t>(tensors.inputs.size()),
                                                tensors.outputs.data(), static_cast<int32_t>(tensors.outputs.size()));
  constexpr size_t kMost = size_t{1} << 40;  // more is a mistake: an error code, say
  if (bytes <= kMost) return bytes;
  return refuse(kWrong, who_, "getWorkspaceSize", "gives {} bytes; at most {} are allowed", bytes, kMost);
}

Result<std::vector<int32_t>> BuildingPlugin::tactics() const {
  const int32_t count = build_->getNbTactics();
  if (count < 0 || count > kMostTactics)
    return refuse(kWrong, who_, "getNbTactics", "gives {}; 0 to {} are allowed", count, kMostTactics);
  if (count == 0) return std::vector<int32_t>{0};
  std::vector<int32_t> tactics(static_cast<size_t>(count));
  LATHE_TRY(expect_success(kWrong, who_, "getValidTactics", build_->getValidTactics(tactics.data(), count)));
  for (const int32_t tactic : tactics)
    if (tactic <= 0) return refuse(kWrong, who_, "getValidTactics", "gives tactic {}; they are positive", tactic);
  if (std::set<int32_t>(tactics.begin(), tactics.end()).size() != tactics.size())
    return refuse(kWrong, who_, "getValidTactics", "gives a tactic twice");
  return tactics;
}

Result<std::vector<int64_t>> BuildingPlugin::aliases(size_t inputs, size_t outputs) const {
  std::vector<int64_t> aliases(outputs, -1);
  const nv::InterfaceInfo info = build_->getInterfaceInfo();
  if (!info.kind || std::strcmp(info.kind, "PLUGIN_V3ONE_BUILD") != 0 || info.major < 2) return aliases;
  auto& build = static_cast<nv::IPluginV3OneBuildV2&>(*build_);
  for (size_t i = 0; i < outputs; ++i) {
    const int32_t input = build.getAliasedInput(static_cast<int32_t>(i));
    if (input < -1 || input >= static_cast<int32_t>(inputs))
      return refuse(kWrong, who_, "getAliasedInput", "gives input {} for output {}; the plugin has {} inputs", input, i,
                    inputs);
    if (input >= 0 && std::find(aliases.begin(), aliases.end(), input) != aliases.end())
      return refuse(kWrong, who_, "getAliasedInput", "gives input {} for two outputs", input);
    aliases[i] = input;
  }
  return aliases;
}

Result<std::vector<std::byte>> BuildingPlugin::fields() const {
  const nv::PluginFieldCollection* const fields = runtime_->getFieldsToSerialize();
  if (!fields) return refuse(kWrong, who_, "getFieldsToSerialize", "gives null");
  Result<std::vector<std::byte>> bytes = encode_fields(*fields);
  if (bytes) return bytes;
  return refuse(kWrong, who_, "getFieldsToSerialize", "gives what cannot be stored: {}", bytes.error().message);
}

std::string BuildingPlugin::timing_id() const {
  const char* const text = build_->getTimingCacheID();
  return text ? text : "";
}

std::string BuildingPlugin::metadata() const {
  const char* const text = build_->getMetadataString();
  return text ? text : "";
}

}  // namespace lathe::plugin
