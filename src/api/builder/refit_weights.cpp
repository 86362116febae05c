// SPDX-License-Identifier: Apache-2.0
#include "api/builder/refit_weights.h"

#include <map>

#include "api/convert.h"
#include "ir/constants.h"

namespace lathe::api {
namespace {

struct Place {
  std::string layer;
  nv::WeightsRole role;
};

// What an input of a layer's node is to the layer; nullopt = not its weights.
std::optional<nv::WeightsRole> role_of(const ir::Use& use, const Layer& layer) {
  if (layer.getType() == nv::LayerType::kSCALE) {
    if (!use.node->is(OpKind::elementwise) || use.index != 1) return std::nullopt;
    switch (use.node->attrs<ElementwiseAttrs>().op) {
      case ElementwiseOp::mul:
        return nv::WeightsRole::kSCALE;
      case ElementwiseOp::add:
        return nv::WeightsRole::kSHIFT;
      default:
        return nv::WeightsRole::kANY;  // the power
    }
  }
  if (!is_convolution(use.node->info()) || use.index == 0) return std::nullopt;
  return use.index == 1 ? nv::WeightsRole::kKERNEL : nv::WeightsRole::kBIAS;
}

// By the name of the constant's value: the layers whose own weights it is.
std::unordered_map<std::string, std::vector<Place>> find_places(const NetworkDefinition& network) {
  std::unordered_map<std::string, std::vector<Place>> places;
  for (const auto& layer : network.layers()) {
    for (const ir::Node* node : layer->nodes()) {
      if (!node->is(OpKind::constant)) continue;
      std::vector<Place>& own = places[node->output()->name()];
      if (layer->getType() == nv::LayerType::kCONSTANT) {
        own.push_back({layer->name(), nv::WeightsRole::kCONSTANT});
        continue;
      }
      for (const ir::Use& use : node->output()->uses())
        if (const auto role = role_of(use, *layer)) own.push_back({layer->name(), *role});
    }
  }
  return places;
}

Result<plan::RefitKind> kind_of(const BuilderConfig& config) {
  using Flag = nv::BuilderFlag;
  const std::pair<Flag, plan::RefitKind> kinds[] = {{Flag::kREFIT, plan::RefitKind::all},
                                                    {Flag::kREFIT_INDIVIDUAL, plan::RefitKind::individual},
                                                    {Flag::kREFIT_IDENTICAL, plan::RefitKind::identical}};
  plan::RefitKind kind = plan::RefitKind::none;
  for (const auto& [flag, asked] : kinds) {
    if (!config.has(flag)) continue;
    if (kind != plan::RefitKind::none)
      return fail(ErrorCode::config_invalid,
                  "several of BuilderFlag::kREFIT, kREFIT_INDIVIDUAL and kREFIT_IDENTICAL are set, of which a plan has "
                  "one: all weights can be replaced, those that are marked, or all by the same ones");
    kind = asked;
  }
  return kind == plan::RefitKind::none && config.has(Flag::kSTRIP_PLAN) ? plan::RefitKind::identical : kind;
}

}  // namespace

Result<RefitOptions> refit_options(const BuilderConfig& config, const NetworkDefinition& network,
                                   const ir::Graph& graph) {
  RefitOptions options;
  LATHE_ASSIGN(options.kind, kind_of(config));
  options.strips = config.has(nv::BuilderFlag::kSTRIP_PLAN);
  if (options.kind == plan::RefitKind::none) return options;
  // One buffer may be weights of several types and lengths.
  std::map<std::tuple<const void*, nv::DataType, int64_t>, std::string> names;
  for (const auto& [name, weights] : network.weights_names())
    if (weights.values) names.emplace(std::tuple(weights.values, weights.type, weights.count), name);
  const auto places = find_places(network);
  ir::for_each_constant(graph, [&](const std::string& key, const ir::Value& constant, ir::Where) {
    RefitOptions::Source source;
    source.weights.is_added = !network.is_of_model(key);
    const Tensor& content = *constant.content();
    if (const auto given = names.find({content.data(), to_nv(content.dtype()), content.volume()});
        given != names.end()) {
      source.weights.name = given->second;
      source.is_named_by_application = true;
      if (!source.weights.is_added && source.weights.name != key) source.weights.model_name = key;
    } else if (!source.weights.is_added) {
      source.weights.name = key;
    }
    if (const auto own = places.find(key); own != places.end())
      for (const Place& place : own->second) {
        source.weights.layers.push_back(place.layer);
        source.weights.roles.push_back(static_cast<uint32_t>(place.role));
      }
    source.is_replaceable = (!source.weights.name.empty() || !source.weights.layers.empty()) &&
                            (options.kind != plan::RefitKind::individual || network.is_marked(source.weights.name));
    options.weights.emplace(key, std::move(source));
  });
  return options;
}

}  // namespace lathe::api
