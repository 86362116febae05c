// SPDX-License-Identifier: Apache-2.0
#include "lowering/profiles.h"

#include <algorithm>

namespace lathe {
namespace {

// What a profile says of a dimension or element.
struct Given {
  std::string_view input;
  size_t index;
  plan::SymbolProfile range;
};

// What the profile says of the symbol, once for each place that it has in the inputs: a dimension of several inputs has
// several. A symbol of an input that was given another type since may stand for an element that there is no more.
std::vector<Given> given_for(const ir::Graph& graph, const ProfileShapes& shapes, SymbolId id) {
  std::vector<Given> given;
  const Symbol& symbol = graph.symbols()[id];
  const auto note = [&](const ir::Value* value, size_t index) {
    const auto it = shapes.inputs.find(value->name());
    if (it == shapes.inputs.end()) return;
    const ProfileShapes::Input& input = it->second;
    if (input.is_values != (symbol.source == SymbolSource::input_value) || index >= input.min.size()) return;
    given.push_back({it->first, index, {input.min[index], input.opt[index], input.max[index]}});
  };
  if (symbol.source == SymbolSource::input_value && symbol.tensor < graph.inputs().size())
    note(graph.inputs()[symbol.tensor], symbol.index);
  if (symbol.source == SymbolSource::input_dim)
    for (const ir::Value* value : graph.inputs())
      for (size_t d = 0; d < value->shape().size(); ++d)
        if (value->shape()[d].as_symbol() == id) note(value, d);
  return given;
}

// The range and optimum of every symbol under one profile.
class ProfileResolver {
 public:
  ProfileResolver(const ir::Graph& graph, const ProfileShapes& shapes, size_t index)
      : graph_(graph), shapes_(shapes), index_(index) {}

  Result<plan::Profile> resolve() const {
    plan::Profile profile;
    for (const auto& [name, input] : shapes_.inputs) LATHE_TRY(check(name, input));
    for (SymbolId id = 0; id < graph_.symbols().size(); ++id) {
      LATHE_ASSIGN(const plan::SymbolProfile range, range_of(id));
      profile.symbols.push_back(range);
    }
    return profile;
  }

  // That each open dimension has a range. Elements of inputs may lack one, for what the network does with them tells
  // whether they are sizes.
  Result<> check_complete() const {
    for (const ir::Value* input : graph_.inputs())
      for (size_t d = 0; d < input->shape().size(); ++d) {
        const std::optional<SymbolId> symbol = input->shape()[d].as_symbol();
        if (symbol && given_for(graph_, shapes_, *symbol).empty())
          return fail(ErrorCode::profile_invalid,
                      "profile {} gives no sizes for input '{}', whose dimension {} ('{}') is open: set the input's "
                      "min, opt and max dimensions, or build without profiles for all sizes",
                      index_, input->name(), d, graph_.symbols()[*symbol].name);
      }
    return {};
  }

 private:
  // Where several inputs have the symbol, sizes must fit all of them, and the first tells the optimum.
  Result<plan::SymbolProfile> range_of(SymbolId id) const {
    const Symbol& symbol = graph_.symbols()[id];
    const std::vector<Given> given = given_for(graph_, shapes_, id);
    if (given.empty()) {
      const int64_t fallback = symbol.source == SymbolSource::input_dim ? 1 : 0;
      return plan::SymbolProfile{symbol.range.min, std::clamp(fallback, symbol.range.min, symbol.range.max),
                                 symbol.range.max};
    }
    plan::SymbolProfile range = given[0].range;
    const Given *lowest = &given[0], *highest = &given[0];  // of what the others leave
    for (const Given& next : given) {
      if (next.range.min > range.min) lowest = &next;
      if (next.range.max < range.max) highest = &next;
      range.min = std::max(range.min, next.range.min);
      range.max = std::min(range.max, next.range.max);
    }
    if (range.min > range.max)
      return fail(ErrorCode::profile_invalid,
                  "profile {}: dimension '{}' is dimension {} of input '{}', given as {} to {}, and dimension {} of "
                  "input '{}', given as {} to {}: equal names mean equal sizes, so give both a size in common",
                  index_, symbol.name, lowest->index, lowest->input, lowest->range.min, lowest->range.max,
                  highest->index, highest->input, highest->range.min, highest->range.max);
    range.opt = std::clamp(range.opt, range.min, range.max);
    return range;
  }

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
    const ProfileResolver resolver(graph, shapes[i], i);
    LATHE_ASSIGN(plan::Profile profile, resolver.resolve());
    if (!options.profiles.empty()) LATHE_TRY(resolver.check_complete());
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

bool is_given(const ir::Graph& graph, const BuildOptions& options, size_t index, SymbolId symbol) {
  return index < options.profiles.size() && !given_for(graph, options.profiles[index], symbol).empty();
}

}  // namespace lathe
