// SPDX-License-Identifier: Apache-2.0
#include "build/profiles.h"

#include <algorithm>

namespace lathe {
namespace {

// What the profile says of the input that gives the symbol; null when it says nothing. A symbol of an input that was
// given another type since may stand for a dimension or element that there is no more.
const ProfileShapes::Input* input_of(const ir::Graph& graph, const ProfileShapes& shapes, const Symbol& symbol) {
  if (symbol.source == SymbolSource::computed || symbol.tensor >= graph.inputs().size()) return nullptr;
  const auto it = shapes.inputs.find(graph.inputs()[symbol.tensor]->name());
  const bool fits = it != shapes.inputs.end() && it->second.is_values == (symbol.source == SymbolSource::input_value);
  return fits && symbol.index < it->second.min.size() ? &it->second : nullptr;
}

// The range and optimum of every symbol under one profile.
class ProfileResolver {
 public:
  ProfileResolver(const ir::Graph& graph, const ProfileShapes& shapes, size_t index)
      : graph_(graph), shapes_(shapes), index_(index) {}

  Result<plan::Profile> resolve() {
    plan::Profile profile;
    for (const auto& [name, input] : shapes_.inputs) LATHE_TRY(check(name, input));
    for (const Symbol& symbol : graph_.symbols()) {
      const int64_t fallback = symbol.source == SymbolSource::input_dim ? 1 : 0;
      plan::SymbolProfile range{symbol.range.min, std::clamp(fallback, symbol.range.min, symbol.range.max),
                                symbol.range.max};
      if (const ProfileShapes::Input* input = input_of(graph_, shapes_, symbol))
        range = {input->min[symbol.index], input->opt[symbol.index], input->max[symbol.index]};
      profile.symbols.push_back(range);
    }
    return profile;
  }

 private:
  Result<> check(const std::string& name, const ProfileShapes::Input& input) const {
    const ir::Value* value = nullptr;
    for (const ir::Value* candidate : graph_.inputs())
      if (candidate->name() == name) value = candidate;
    if (!value)
      return fail(ErrorCode::profile_invalid, "profile {} names '{}', which is not an input of the network", index_,
                  name);
    size_t wanted = static_cast<size_t>(value->rank());
    if (input.is_values) wanted = value->elements() ? value->elements()->size() : 0;
    if (input.min.size() != wanted || input.opt.size() != wanted || input.max.size() != wanted)
      return fail(ErrorCode::profile_invalid,
                  "profile {}: input '{}' needs {} {}, got {}, {} and {} for min, opt and max", index_, name, wanted,
                  input.is_values ? "values" : "dimensions", input.min.size(), input.opt.size(), input.max.size());
    for (size_t d = 0; d < wanted; ++d) {
      if ((!input.is_values && input.min[d] < 0) || input.min[d] > input.opt[d] || input.opt[d] > input.max[d])
        return fail(ErrorCode::profile_invalid,
                    "profile {}: input '{}' {} {} needs {}min <= opt <= max, got {}, {}, {}", index_, name,
                    input.is_values ? "element" : "dimension", d, input.is_values ? "" : "0 <= ", input.min[d],
                    input.opt[d], input.max[d]);
      const std::optional<int64_t> fixed = input.is_values ? std::nullopt : value->shape()[d].as_constant();
      if (fixed && (input.min[d] != *fixed || input.max[d] != *fixed))
        return fail(ErrorCode::profile_invalid,
                    "profile {}: input '{}' dimension {} is fixed at {} by the network, the profile gives {} to {}",
                    index_, name, d, *fixed, input.min[d], input.max[d]);
    }
    return {};
  }

  const ir::Graph& graph_;
  const ProfileShapes& shapes_;
  size_t index_;
};

}  // namespace

Result<std::vector<plan::Profile>> resolve_profiles(const ir::Graph& graph, const BuildOptions& options) {
  std::vector<ProfileShapes> shapes = options.profiles;
  if (shapes.empty()) shapes.emplace_back();
  std::vector<plan::Profile> profiles;
  for (size_t i = 0; i < shapes.size(); ++i) {
    LATHE_ASSIGN(plan::Profile profile, ProfileResolver(graph, shapes[i], i).resolve());
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

bool is_given(const ir::Graph& graph, const BuildOptions& options, size_t index, SymbolId symbol) {
  return index < options.profiles.size() && input_of(graph, options.profiles[index], graph.symbols()[symbol]);
}

}  // namespace lathe
