// SPDX-License-Identifier: Apache-2.0
#include "api/network/plugin_layer.h"

#include "api/network/network_add.h"
#include "ops/plugin.h"
#include "ops/rules.h"

namespace lathe::api {
namespace {

// Dims as a plugin is asked with: numbers as they are, others as the next symbols. Every dim takes a symbol.
Shape numbered(const std::vector<Expr>& sizes, SymbolId& next) {
  Shape shape;
  for (const Expr& size : sizes) {
    shape.push_back(size.is_constant() ? size : Expr::symbol(next));
    ++next;
  }
  return shape;
}

// Between the numbering in which a plugin is asked, where declared sizes are the last, and that of the op, where they
// are the first.
std::vector<Expr> renumbering(SymbolId given, size_t sizes) {
  std::vector<Expr> to(given + sizes);
  for (SymbolId i = 0; i < to.size(); ++i)
    to[i] = Expr::symbol(i < given ? i + static_cast<SymbolId>(sizes) : i - given);
  return to;
}

}  // namespace

Result<std::vector<ir::Value*>> PluginV3Layer::lower(LayerLowering& lowering) {
  LATHE_ASSIGN(const auto plugin, plugin::BuildingPlugin::of(*plugin_, name()));
  std::vector<ir::Value*> inputs;
  std::vector<DType> types;
  std::vector<Shape> shapes, contents;
  SymbolId given = 0;
  for (size_t i = 0; i < static_cast<size_t>(Layer::getNbInputs()); ++i) {
    inputs.push_back(in(i));
    if (i < data_inputs_) {
      types.push_back(in(i)->dtype());
      shapes.push_back(numbered(in(i)->shape(), given));
      continue;
    }
    if (!in(i)->elements())
      return fail(ErrorCode::shape_unknown,
                  "shape input {} ('{}') is no shape tensor: its contents are not known from sizes and constants",
                  i - data_inputs_, in(i)->name());
    contents.push_back(numbered(*in(i)->elements(), given));
  }
  LATHE_ASSIGN(const std::vector<DType> result_types, plugin.output_types(types));
  LATHE_ASSIGN(plugin::BuildingPlugin::Shapes results, plugin.output_shapes(shapes, contents, given));
  if (result_types.size() != outputs_)
    return fail(ErrorCode::graph_invalid, "{}: it had {} outputs, and now {}", plugin.who().text(), outputs_,
                result_types.size());
  const std::vector<Expr> to = renumbering(given, results.sizes.size());
  std::vector<ValueType> described;
  for (size_t i = 0; i < outputs_; ++i) {
    ValueType& type = described.emplace_back(ValueType{result_types[i], {}});
    for (const Expr& dim : results.outputs[i]) type.shape.push_back(dim.substitute(to));
  }
  std::vector<PluginSize> sizes;
  for (plugin::DeclaredSize& size : results.sizes) {
    size.opt = size.opt.substitute(to);
    size.upper = size.upper.substitute(to);
    if (!may_hold_symbols(result_types[size.output]))
      return fail(ErrorCode::graph_invalid,
                  "{}: the size tensor, output {}, is of type {}; INT32 and INT64 are allowed", plugin.who().text(),
                  size.output, name_of(result_types[size.output]));
    sizes.push_back({size.output, size.upper});
  }
  sizes_ = std::move(results.sizes);
  PluginAttrs attrs;
  attrs.name = plugin.who().name;
  attrs.version = plugin.who().version;
  attrs.space = plugin.space();
  attrs.data_inputs = static_cast<int64_t>(data_inputs_);
  attrs.results = results_text(described);
  attrs.sizes = sizes_text(sizes);
  return lowering.add_all(attrs, std::move(inputs), outputs_);
}

nv::IPluginV3Layer* NetworkDefinition::addPluginV3(nv::ITensor* const* inputs, int32_t nbInputs,
                                                   nv::ITensor* const* shapeInputs, int32_t nbShapeInputs,
                                                   nv::IPluginV3& plugin) noexcept {
  return guarded(
      entry(), "INetworkDefinition::addPluginV3", static_cast<nv::IPluginV3Layer*>(nullptr),
      [&]() -> Result<nv::IPluginV3Layer*> {
        if (nbInputs < 0 || nbShapeInputs < 0 || (nbInputs > 0 && !inputs) || (nbShapeInputs > 0 && !shapeInputs))
          return fail(ErrorCode::invalid_argument, "there are {} inputs at {} and {} shape inputs at {}", nbInputs,
                      static_cast<const void*>(inputs), nbShapeInputs, static_cast<const void*>(shapeInputs));
        std::vector<TensorView*> views;
        for (int32_t i = 0; i < nbInputs + nbShapeInputs; ++i) {
          LATHE_ASSIGN(TensorView * view, own(i < nbInputs ? inputs[i] : shapeInputs[i - nbInputs]));
          views.push_back(view);
        }
        std::unique_ptr<nv::IPluginV3> clone(plugin.clone());
        if (!clone)
          return fail(ErrorCode::invalid_argument, "the plugin's clone() gives null; the network keeps a clone");
        LATHE_ASSIGN(const auto asked, plugin::BuildingPlugin::of(*clone, "that is added"));
        LATHE_ASSIGN(const size_t outputs, asked.num_outputs());
        auto layer = std::make_unique<PluginV3Layer>(*this, std::move(views), static_cast<size_t>(nbInputs), outputs,
                                                     std::move(clone));
        layer->create();
        PluginV3Layer* made = layer.get();
        layers_.push_back(std::move(layer));
        return made;
      });
}

}  // namespace lathe::api
