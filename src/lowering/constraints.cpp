// SPDX-License-Identifier: Apache-2.0
#include "lowering/constraints.h"

#include <algorithm>

#include "lowering/profiles.h"

namespace lathe {
namespace {

// The range of a symbol is the smallest that holds those of all profiles.
void narrow_to_profiles(ir::Graph& graph, const std::vector<plan::Profile>& profiles) {
  for (SymbolId id = 0; id < graph.symbols().size(); ++id) {
    Range range = {profiles[0].symbols[id].min, profiles[0].symbols[id].max};
    for (const plan::Profile& profile : profiles) {
      range.min = std::min(range.min, profile.symbols[id].min);
      range.max = std::max(range.max, profile.symbols[id].max);
    }
    graph.set_range(id, range);
  }
}

// An input dimension with only one possible value becomes a number, so that kernels are specialised for it.
void fix_dimensions(ir::Graph& graph) {
  std::vector<Expr> values(graph.symbols().size());
  for (SymbolId id = 0; id < values.size(); ++id) {
    const Symbol& symbol = graph.symbols()[id];
    const bool fixed = symbol.source == SymbolSource::input_dim && symbol.range.min == symbol.range.max;
    values[id] = fixed ? Expr(symbol.range.min) : Expr::symbol(id);
  }
  graph.substitute_input_dims(values);
}

class Settler {
 public:
  Settler(ir::Graph& graph, const BuildOptions& options)
      : graph_(graph), options_(options), asserted_(options.asserted), log_(options.log ? *options.log : null_log()) {}

  Result<std::vector<Constraint>> run() {
    for (bool narrowed = true; narrowed;) {
      LATHE_ASSIGN(profiles_, resolve_profiles(graph_, options_));
      narrow_to_profiles(graph_, profiles_);
      fix_dimensions(graph_);
      if (Result<> inferred = graph_.infer_all(); !inferred)
        return fail(with_context(std::move(inferred).error(), "with the sizes of the optimization profiles"));
      LATHE_TRY(check_assertions());
      LATHE_ASSIGN(narrowed, narrow_by_constraints());
    }
    std::vector<Constraint> open = open_constraints();
    for (const Constraint& constraint : open) LATHE_TRY(try_profiles(constraint));
    return open;
  }

 private:
  // Shape rules fail by themselves where what they rely on is proven not to hold.
  Result<> check_assertions() const {
    for (const Constraint& assertion : asserted_)
      if (decide(assertion, graph_.symbol_ranges()) == false)
        return fail(ErrorCode::shapes_inconsistent, "{}, which holds for no sizes that the profiles allow",
                    reason(assertion));
    return {};
  }

  // The constraints of the application and of all nodes without repeats; `where` is the first node that needs it.
  std::vector<Constraint> open_constraints() const {
    std::vector<Constraint> open;
    for (const Constraint& assertion : asserted_)
      if (!decide(assertion, graph_.symbol_ranges())) open.push_back(assertion);
    const auto add = [&](const Constraint& constraint) {
      if (std::find(open.begin(), open.end(), constraint) == open.end()) open.push_back(constraint);
    };
    for (const Constraint& expansion : graph_.expansions())
      if (!decide(expansion, graph_.symbol_ranges())) add(expansion);
    for (const auto& node : graph_.nodes())
      for (const Constraint& constraint : node->constraints()) add(constraint);
    return open;
  }

  // Dimensions of inputs that can only be equal become one, as if the network gave them one name: an exporter may name
  // each anew. Setting shapes then tells where they differ; profiles keep the sizes that all of them have.
  Result<bool> merge(const Constraint& equation) {
    const auto equal = equal_symbols(equation, graph_.symbol_ranges());
    if (!equal || !is_of_input(equal->first) || !is_of_input(equal->second)) return false;
    LATHE_TRY(try_profiles(equation));
    log_.print(Severity::verbose, "{} is {}: {}", describe(graph_.symbols()[equal->second]),
               describe(graph_.symbols()[equal->first]), reason(equation));
    const std::vector<Expr> merged = graph_.merge_symbols(equal->second, equal->first);
    for (Constraint& assertion : asserted_) assertion = substituted(std::move(assertion), merged);
    return true;
  }
  bool is_of_input(SymbolId id) const {
    const Symbol& symbol = graph_.symbols()[id];
    return symbol.source == SymbolSource::input_dim && symbol.tensor < graph_.inputs().size();
  }

  // Notes what the equation tells of broadcasts, and whether that was news.
  bool note_expansions(const Constraint& equation) {
    bool found = false;
    for (Constraint& expansion : expansions_of(equation, graph_.symbol_ranges())) {
      const std::vector<Constraint>& known = graph_.expansions();
      if (std::find(known.begin(), known.end(), expansion) != known.end()) continue;
      graph_.add_expansion(std::move(expansion));
      found = true;
    }
    return found;
  }

  // Takes what some constraint tells: symbols that are one, expansions, the only value of a symbol; false when that is
  // nothing.
  Result<bool> narrow_by_constraints() {
    const std::vector<Range>& ranges = graph_.symbol_ranges();
    for (const Constraint& constraint : open_constraints()) {
      const Constraint equation = as_equation(constraint, ranges);
      LATHE_ASSIGN(const bool merged, merge(equation));
      if (merged || note_expansions(equation)) return true;
      const std::optional<Solution> solution = solve(equation, ranges);
      if (!solution || graph_.symbols()[solution->symbol].source == SymbolSource::computed) continue;
      const Symbol& symbol = graph_.symbols()[solution->symbol];
      const Range only{solution->value, solution->value};
      if (symbol.range == only) continue;
      for (size_t p = 0; p < profiles_.size(); ++p) {
        const plan::SymbolProfile& given = profiles_[p].symbols[solution->symbol];
        const bool fits = given.min == solution->value && given.max == solution->value;
        if (!fits && is_given(graph_, options_, p, solution->symbol)) return refusal(constraint, *solution, p);
      }
      log_.print(Severity::warning, "{} can only be {}: {}", describe(symbol), solution->value, reason(constraint));
      graph_.set_range(solution->symbol, only);
      return true;  // what is known of the other constraints may have changed
    }
    return false;
  }

  tl::unexpected<Error> refusal(const Constraint& constraint, const Solution& solution, size_t profile) const {
    const plan::SymbolProfile& given = profiles_[profile].symbols[solution.symbol];
    return fail(
        ErrorCode::profile_invalid,
        "profile {} lets {} range from {} to {}, but the network holds for {} only: {}. Give {} as its min, opt "
        "and max, or export the model so that it holds for all sizes",
        profile, describe(graph_.symbols()[solution.symbol]), given.min, given.max, solution.value, reason(constraint),
        solution.value);
  }

  // The opt sizes of a profile must satisfy what could not be proven, for kernels are measured with them. Where min or
  // max sizes do not, the rest of the profile is still usable: that is worth a warning only.
  Result<> try_profiles(const Constraint& constraint) const {
    for (size_t p = 0; p < profiles_.size(); ++p) {
      LATHE_TRY(try_sizes(constraint, p, "opt", &plan::SymbolProfile::opt));
      for (const auto& [name, sizes] :
           {std::pair("min", &plan::SymbolProfile::min), {"max", &plan::SymbolProfile::max}})
        if (Result<> fits = try_sizes(constraint, p, name, sizes); !fits)
          log_.print(Severity::warning, "{}", fits.error().message);
    }
    return {};
  }

  Result<> try_sizes(const Constraint& constraint, size_t profile, std::string_view name,
                     int64_t plan::SymbolProfile::*sizes) const {
    std::vector<int64_t> values;
    for (const plan::SymbolProfile& symbol : profiles_[profile].symbols) values.push_back(symbol.*sizes);
    for (const SymbolId id : symbols_of(constraint))
      if (!is_given(graph_, options_, profile, id)) return {};
    const std::optional<int64_t> a = constraint.a.evaluate(values), b = constraint.b.evaluate(values);
    if (a && b && holds(constraint.relation, *a, *b)) return {};
    const auto text = [](std::optional<int64_t> value) { return value ? std::to_string(*value) : "no value"; };
    return fail(ErrorCode::profile_invalid,
                "the {} sizes of profile {} do not fit the network: {}, which are {} and {}", name, profile,
                reason(constraint), text(a), text(b));
  }

  std::string describe(const Symbol& symbol) const {
    if (symbol.tensor >= graph_.inputs().size())
      return fmt::format("symbol '{}'", symbol.name);  // no input is it alone
    return fmt::format("{} {} of input '{}'", symbol.source == SymbolSource::input_dim ? "dimension" : "element",
                       symbol.index, graph_.inputs()[symbol.tensor]->name());
  }

  std::string reason(const Constraint& constraint) const {
    return fmt::format("{} needs {}", constraint.where, to_string(constraint, graph_.symbol_names()));
  }

  ir::Graph& graph_;
  const BuildOptions& options_;
  std::vector<Constraint> asserted_;  // by the application, of the symbols that are left
  Log& log_;
  std::vector<plan::Profile> profiles_;
};

}  // namespace

Result<std::vector<Constraint>> settle_shapes(ir::Graph& graph, const BuildOptions& options) {
  graph.erase_dead_nodes();
  return Settler(graph, options).run();
}

}  // namespace lathe
