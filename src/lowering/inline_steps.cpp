// SPDX-License-Identifier: Apache-2.0
// Attention that does the short steps before it itself: new keys and values go into the caches that it reads, and
// queries are computed as it reads them, where its kernel can (Problem::inlined). It is decided once kernels are
// chosen: steps and tuner know nothing of it.
#include <algorithm>
#include <set>

#include "lowering/choices_by_size.h"
#include "lowering/region_lowering.h"

namespace lathe {

using ir::Value;
using plan::TensorId;

namespace {

// What it is a view of, as long as nothing else reads that.
const Value* viewed(const Value* value) {
  while (value->producer() && value->producer()->has_trait(kView) && value->has_single_use())
    value = value->producer()->input(0);
  return value;
}

// Elements above `above`, up to `most`; nullopt = no bound.
struct Sizes {
  std::optional<int64_t> above, most;

  bool are_all() const { return !above && !most; }
  // 1 for these sizes and 0 for others, as one atom (see FormsOfStep), and the other way round.
  Expr inside(const Expr& elements) const {
    Expr inside = 1;
    if (above) inside = min(inside, elements - Expr(*above));
    if (most) inside = min(inside, Expr(*most) + Expr(1) - elements);
    return max(inside, Expr(0));
  }
  Expr outside(const Expr& elements) const {
    Expr outside = 0;
    if (above) outside = max(outside, Expr(*above) + Expr(1) - elements);
    if (most) outside = max(outside, elements - Expr(*most));
    return min(outside, Expr(1));
  }
};

// For which sizes the step has its own form, whose tactic that is; `forms` begins with those for few elements.
Sizes sizes_of(const std::vector<StepForm>& forms, const std::string& tactic) {
  Sizes sizes;
  const auto is_own = [&](const StepForm& form) { return form.launches.empty() && form.tactic == tactic; };
  const auto first = std::ranges::find_if(forms, is_own);
  const auto end = std::find_if_not(first, forms.end(), is_own);
  if (first != forms.begin()) sizes.above = std::prev(first)->most;
  if (end != forms.end()) sizes.most = std::prev(end)->most;
  return sizes;
}

}  // namespace

class RegionLowering::Inliner {
 public:
  explicit Inliner(RegionLowering& lowering) : of_(lowering), steps_(lowering.pending_) {}

  Result<> run() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      const std::vector<Part> parts = parts_of(i);
      if (!parts.empty()) LATHE_TRY(join(i, parts));
    }
    std::vector<Pending> left;
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (!replaced_.contains(i)) left.push_back(std::move(steps_[i]));
      if (const auto added = added_.find(i); added != added_.end()) left.push_back(std::move(added->second));
    }
    steps_ = std::move(left);
    return {};
  }

 private:
  // A step that writes input `input` of an attention.
  struct Part {
    size_t step, input;
  };

  // Those of the attention: both caches, and queries if a step computes them. Empty where one cannot become part of it.
  std::vector<Part> parts_of(size_t at) const {
    const Pending& attention = steps_[at];
    if (!attention.matches || !attention.region || !attention.choice.tactic) return {};
    const ir::Node& root = *attention.region->root;
    if (!root.is(OpKind::attention)) return {};
    std::vector<Part> parts;
    for (const size_t input : {0, 1, 2}) {
      const Value* value = input == 0 ? viewed(root.input(0)) : root.input(input);
      const std::optional<size_t> step = input == 0 ? step_of(value, at) : update_of(value, at);
      if (step)
        parts.push_back({*step, input});
      else if (input > 0)
        return {};
      if (step && input == 0 && !value->has_single_use()) return {};
    }
    const auto may_move = [&](const Part& part) {
      const bool is_one = std::ranges::count(parts, part.step, &Part::step) == 1;
      return is_one && !taken_.contains(part.step) && may_wait(part, at, parts);
    };
    return std::ranges::all_of(parts, may_move) ? parts : std::vector<Part>();
  }

  // The expression whose result that is, before `end`.
  std::optional<size_t> step_of(const Value* value, size_t end) const {
    for (size_t i = end; i-- > 0;) {
      const Pending& step = steps_[i];
      const bool is_expression = step.matches && step.region && step.region->kind == RegionKind::pointwise;
      if (is_expression && step.region->result() == value) return i;
    }
    return std::nullopt;
  }
  // The update in place.
  std::optional<size_t> update_of(const Value* value, size_t end) const {
    for (size_t i = end; i-- > 0;) {
      const Pending& step = steps_[i];
      const bool is_update = step.emission && step.region && step.region->root->is(OpKind::tensor_scatter);
      if (is_update && step.region->result() == value) return i;
    }
    return std::nullopt;
  }

  // What a step reads and writes, if that is known.
  struct Tensors {
    std::vector<TensorId> read, written;
  };
  std::optional<Tensors> tensors_of(const Pending& step) const {
    if (!step.bodies.empty()) return std::nullopt;
    Tensors tensors{step.step.inputs, step.step.outputs};
    if (!step.region) return tensors.written.empty() ? std::nullopt : std::optional(tensors);
    const auto add = [&](std::vector<TensorId>& ids, const Value* value) {
      if (value && !value->content()) ids.push_back(of_.tensors_.tensor_of(value));
    };
    const Region& region = *step.region;
    for (size_t i = 0; region.kind != RegionKind::pointwise && i < region.root->num_inputs(); ++i) {
      add(tensors.read, region.input(i));
      const Expression* producer = region.producer_of(i);
      for (size_t k = 0; producer && k < producer->operands.size(); ++k) add(tensors.read, producer->operands[k]);
    }
    for (const Value* operand : region.expression.operands) add(tensors.read, operand);
    for (const Value* output : region.outputs) add(tensors.written, output);
    return tensors;
  }

  bool touch(const std::vector<TensorId>& a, const std::vector<TensorId>& b) const {
    const auto meet = [&](TensorId i, TensorId j) {
      if (i == plan::kNoTensor || j == plan::kNoTensor) return false;
      const plan::TensorDesc &x = of_.tensors_[i], &y = of_.tensors_[j];
      return x.storage == y.storage && x.index == y.index;
    };
    return std::ranges::any_of(
        a, [&](TensorId i) { return std::ranges::any_of(b, [&](TensorId j) { return meet(i, j); }); });
  }

  // Whether all steps behind it up to the attention may run before it.
  bool may_wait(const Part& part, size_t attention, const std::vector<Part>& parts) const {
    const std::optional<Tensors> own = tensors_of(steps_[part.step]);
    if (!own) return false;
    for (size_t i = part.step + 1; i < attention; ++i) {
      if (std::ranges::find(parts, i, &Part::step) != parts.end()) continue;
      const std::optional<Tensors> other = tensors_of(steps_[i]);
      if (!other || touch(own->read, other->written) || touch(own->written, other->read) ||
          touch(own->written, other->written))
        return false;
    }
    return true;
  }

  Problem problem_of(const Pending& part) const {
    if (part.matches) return part.matches->problem();
    Problem problem = of_.problems_.of(*part.region);
    problem.in_place = true;
    return problem;
  }

  // The attention with its parts as a step of its own, in the configuration that was chosen for it; nullopt where its
  // kernel does not take them so.
  std::optional<Pending> joined(const Pending& attention, const std::vector<Part>& parts) {
    const Choice& choice = attention.choice;
    Problem problem = attention.matches->problem();
    Region named = *attention.region;
    Pending step("", {}, "kernel");
    for (const Part& part : parts) {
      const Pending& own = steps_[part.step];
      problem.inlined.push_back({part.input, problem_of(own)});
      step.inlined.push_back(*own.region);
      named.nodes.insert(named.nodes.begin(), own.region->nodes.begin(), own.region->nodes.end());
    }
    step.matches = std::make_unique<Matches>(std::move(problem), of_.tactics_);
    const Matched& matched = step.matches->of(*choice.tactic);
    if (!matched) return std::nullopt;
    step.step.name = name_of_region(named), step.step.origin = origin_of(named);
    step.region = attention.region;
    step.choice = choice;
    return step;
  }

  // For which sizes the attention has its own form.
  Result<Sizes> own_sizes(Pending& attention) {
    if (attention.sized.empty()) return Sizes();
    attention.step.tactic = describe(*attention.choice.tactic, attention.choice.config);
    LATHE_ASSIGN(attention.emission, attention.matches->emit(*attention.choice.tactic, attention.choice.config));
    return sizes_of(of_.forms_of(attention), attention.step.tactic);
  }

  // Takes the place of the attention and its parts for the sizes at which its own form runs.
  Result<> join(size_t at, const std::vector<Part>& parts) {
    Pending& attention = steps_[at];
    std::optional<Pending> step = joined(attention, parts);
    if (!step) return {};
    const Result<Emission> emission = step->matches->emit(*step->choice.tactic, step->choice.config);
    if (!emission) return {};  // its other configurations might
    if (const auto modules = lathe::modules_of(*emission, of_.tuner_.modules()); !modules) {
      attention.choice.refusals.push_back("one step with those before it: " + modules.error().message);
      return {};
    }
    LATHE_ASSIGN(const Sizes sizes, own_sizes(attention));
    std::vector<size_t> all = {at};
    for (const Part& part : parts) all.push_back(part.step);
    taken_.insert(all.begin(), all.end());
    if (sizes.are_all()) {
      replaced_.insert(all.begin(), all.end());
    } else {
      const Expr elements = elements_of(attention.matches->problem());
      step->runs = sizes.inside(elements);
      for (const size_t i : all) steps_[i].runs = sizes.outside(elements);
    }
    added_.emplace(at, *std::move(step));
    return {};
  }

  RegionLowering& of_;
  std::vector<Pending>& steps_;
  std::set<size_t> taken_, replaced_;
  std::map<size_t, Pending> added_;  // behind the step of that number
};

Result<> RegionLowering::inline_steps() {
  if (!context_.options.optimize) return {};
  return Inliner(*this).run();
}

}  // namespace lathe
