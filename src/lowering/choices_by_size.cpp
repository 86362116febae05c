// SPDX-License-Identifier: Apache-2.0
#include "lowering/choices_by_size.h"

#include <algorithm>
#include <cmath>

#include "device/open_numbers.h"
#include "tuning/sizes.h"

namespace lathe {
namespace {

constexpr int kBelow = 2, kAbove = 3;  // sizes on each side of the optimum

// Sizes from one corner of a profile to another, at equal ratios of all sizes together: doubled each time, or more
// where that does not reach the other corner.
class Line {
 public:
  Line(const plan::Plan& plan, bool is_up) : plan_(plan) {
    for (size_t i = 0; i < plan.symbols.size(); ++i) {
      const plan::SymbolProfile& first = plan.profiles[0].symbols[i];
      int64_t end = first.opt;
      for (const plan::Profile& profile : plan.profiles) {
        const plan::SymbolProfile& range = profile.symbols[i];
        const int64_t most =
            range.max == Range::kUnbounded ? std::min(first.opt, INT64_MAX >> kAbove) << kAbove : range.max;
        end = is_up ? std::max(end, most) : std::min(end, range.min);
      }
      const bool is_known = plan.symbols[i].source == SymbolSource::computed || first.opt < 1;
      ends_.push_back(is_known ? first.opt : std::max<int64_t>(end, 1));
      doublings_ += is_known ? 0 : std::abs(std::log2(static_cast<double>(ends_[i]) / static_cast<double>(first.opt)));
    }
  }

  double doublings() const { return doublings_; }

  std::vector<int64_t> at(double doublings) const {
    const double share = std::min(doublings / doublings_, 1.0);
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < ends_.size(); ++i) {
      const int64_t from = plan_.profiles[0].symbols[i].opt;
      const double ratio = from == ends_[i] ? 1 : static_cast<double>(ends_[i]) / static_cast<double>(from);
      sizes.push_back(ratio == 1 ? from : std::llround(static_cast<double>(from) * std::pow(ratio, share)));
    }
    return sizes;
  }

 private:
  const plan::Plan& plan_;
  std::vector<int64_t> ends_;
  double doublings_ = 0;
};

bool are_possible(const plan::Plan& plan, std::span<const int64_t> sizes) {
  return std::ranges::all_of(plan.constraints, [&](const Constraint& constraint) {
    const std::optional<int64_t> a = constraint.a.evaluate(sizes), b = constraint.b.evaluate(sizes);
    return !a || !b || holds(constraint.relation, *a, *b);
  });
}

bool depend_on_data(const std::vector<Operand>& operands, std::span<const Symbol> declared) {
  return std::ranges::any_of(operands, [&](const Operand& operand) {
    return depends_on_data(operand.dims, declared) || depends_on_data(operand.strides, declared) ||
           depend_on_data(operand.operands, declared);
  });
}

// Whether they are equal, also once the weights that they follow from have been replaced.
bool are_equal(const Packed& a, const Packed& b) {
  const bool orders_agree = a.order && b.order && a.order->weights.derivation == b.order->weights.derivation &&
                            to_numbers(a.order->packing) == to_numbers(b.order->packing);
  // The same elements in the same order need not be put into it to tell.
  if (orders_agree && a.order->weights.content.data() == b.order->weights.content.data()) return true;
  return identical(a.content(), b.content()) && (orders_agree || (!known_of(a).derivation && !known_of(b).derivation));
}

// The place in `first` of what `emission` reads.
std::optional<uint32_t> place_of(const StepInput& input, const Emission& emission, const Emission& first) {
  for (uint32_t i = 0; i < first.inputs.size(); ++i) {
    const StepInput& other = first.inputs[i];
    if (input.kind != other.kind || input.transposed != other.transposed || input.of_program != other.of_program ||
        input.inlined != other.inlined)
      continue;
    if (input.kind == StepInput::packed ? are_equal(emission.packed[input.index], first.packed[other.index])
                                        : input.index == other.index)
      return i;
  }
  return std::nullopt;
}

// The forms of one step by size, which become its launches.
class FormsOfStep {
 public:
  FormsOfStep(plan::Step& step, RegionReport& report, PlanCode& code)
      : step_(step), report_(report), code_(code), device_(std::get<plan::DeviceLaunches>(step.work)) {}

  Result<> write() {
    leave_out();
    if (report_.forms.size() < 2) return {};
    std::vector<SourceLaunch> launches;
    Expr workspace = device_.workspace;
    std::string tactic;
    for (size_t i = 0; i < report_.forms.size(); ++i) {
      const StepForm& form = report_.forms[i];
      const Expr runs = condition(i);
      std::vector<SourceLaunch> own = launches_of(form);
      for (SourceLaunch& each : own) {
        each.launch.grid[0] *= runs;
        launches.push_back(std::move(each));
      }
      if (!form.launches.empty()) workspace = max(workspace, form.workspace);
      tactic += (i ? ", " : "") + form.tactic +
                (i + 1 == report_.forms.size() ? " above" : fmt::format(" up to {} elements", form.most));
    }
    const auto is_valid = [](const SourceLaunch& each) { return each.launch.grid[0].is_valid(); };
    if (!workspace.is_valid() || !std::ranges::all_of(launches, is_valid)) return {};
    device_.launches.clear();
    for (SourceLaunch& each : launches) {
      if (!each.source.empty()) {
        LATHE_ASSIGN(each.launch.code, code_.add(each.source, has_open_numbers(each.launch)));
      }
      device_.launches.push_back(std::move(each.launch));
    }
    device_.workspace = std::move(workspace);
    step_.tactic = report_.tactic = std::move(tactic);
    return {};
  }

 private:
  // What a neighbour does as well, and what there is no room for: those farthest from the step's own.
  void leave_out() {
    std::vector<StepForm>& forms = report_.forms;
    for (unite_equal(); num_launches() > kMaxLaunches; unite_equal()) {
      if (!forms.front().launches.empty())
        forms.erase(forms.begin());
      else if (!forms.back().launches.empty())
        forms.pop_back();
      else
        forms.erase(forms.begin() + 1);
    }
  }

  void unite_equal() {
    std::vector<StepForm> left;
    for (StepForm& form : report_.forms) {
      if (!left.empty() && left.back().tactic == form.tactic)
        left.back().most = form.most;
      else
        left.push_back(std::move(form));
    }
    report_.forms = std::move(left);
  }

  size_t num_launches() const {
    size_t launches = 0;
    for (const StepForm& form : report_.forms)
      launches += form.launches.empty() ? device_.launches.size() : form.launches.size();
    return launches;
  }

  // 1 for the sizes of the form.
  Expr condition(size_t i) const {
    const std::vector<StepForm>& forms = report_.forms;
    SizeRange range;
    if (i > 0) range.above = forms[i - 1].most;
    if (i + 1 < forms.size()) range.most = forms[i].most;
    return range.contains(report_.elements);
  }

  // The step's own have their code already, and no source.
  std::vector<SourceLaunch> launches_of(const StepForm& form) const {
    std::vector<SourceLaunch> launches = form.launches;
    if (launches.empty())
      for (const Launch& launch : device_.launches) launches.push_back({"", launch});
    return launches;
  }

  plan::Step& step_;
  RegionReport& report_;
  PlanCode& code_;
  plan::DeviceLaunches& device_;
};

}  // namespace

Expr SizeRange::contains(const Expr& elements) const {
  Expr inside = elements - Expr(above.value_or(-1));
  if (most) inside = min(inside, Expr(*most) + Expr(1) - elements);
  return max(min(inside, Expr(1)), Expr(0));
}

Expr SizeRange::excludes(const Expr& elements) const {
  Expr outside = Expr(above.value_or(-1)) + Expr(1) - elements;
  if (most) outside = max(outside, elements - Expr(*most));
  return max(min(outside, Expr(1)), Expr(0));
}

std::vector<std::vector<int64_t>> sizes_besides_optimum(const plan::Plan& plan) {
  std::vector<std::vector<int64_t>> all;
  const auto add = [&](std::vector<int64_t> sizes) {
    if (are_possible(plan, sizes)) all.push_back(std::move(sizes));
  };
  const Line down(plan, false), up(plan, true);
  for (int i = 1; i <= kBelow && i < down.doublings() + 1; ++i) add(down.at(i));
  const int above = std::min(kAbove, static_cast<int>(std::ceil(up.doublings())));
  for (int i = 1; i <= above; ++i) add(up.at(i * std::max(1.0, up.doublings() / above)));
  return all;
}

Expr elements_of(const Problem& problem) {
  Expr elements;
  for (const auto* list : {&problem.inputs, &problem.operands, &problem.outputs})
    for (const Operand& operand : *list)
      if (!operand.omitted) elements += volume(operand.dims);
  return elements;
}

std::optional<Problem> at_sizes(const Problem& problem, std::span<const int64_t> symbols,
                                std::span<const Symbol> declared) {
  const Expr elements = elements_of(problem);
  if (!elements.is_valid() || elements.is_constant() ||
      elements.evaluate(symbols) == elements.evaluate(problem.symbols))
    return std::nullopt;
  for (const auto* list : {&problem.inputs, &problem.operands, &problem.outputs})
    if (depend_on_data(*list, declared)) return std::nullopt;
  return with_symbols(problem, symbols);
}

std::optional<StepForm> form_like(const Emission& first, Emission emission) {
  const auto calls = [](const SourceLaunch& each) { return !each.launch.library.empty(); };
  if (first.launches.empty() || emission.launches.empty() || std::ranges::any_of(first.launches, calls) ||
      std::ranges::any_of(emission.launches, calls))
    return std::nullopt;
  StepForm form;
  form.workspace = std::move(emission.workspace);
  std::vector<uint32_t> places;
  for (const StepInput& input : emission.inputs) {
    const std::optional<uint32_t> place = place_of(input, emission, first);
    if (!place) return std::nullopt;
    places.push_back(*place);
  }
  for (SourceLaunch& each : emission.launches) {
    for (LaunchArg& arg : each.launch.args)
      if (arg.kind == LaunchArg::input) arg.index = places[arg.index];
    for (TensorMap& map : each.launch.maps) map.input = places[map.input];
    form.launches.push_back(std::move(each));
  }
  return form;
}

Result<> add_forms(BuiltPlan& built, PlanCode& code) {
  for (size_t i = 0; i < built.plan.steps.size(); ++i)
    if (built.plan.steps[i].is<plan::DeviceLaunches>() && !built.report.regions[i].forms.empty())
      LATHE_TRY(FormsOfStep(built.plan.steps[i], built.report.regions[i], code).write());
  return {};
}

}  // namespace lathe
