// SPDX-License-Identifier: Apache-2.0
// Attention that does the short steps before it itself: new keys and values go into the caches that it reads, and
// queries are computed as it reads them, where its kernel can (Problem::inlined). It is decided once kernels are
// chosen: steps and tuner know nothing of it.
#include <algorithm>
#include <set>

#include "lowering/choices_by_size.h"
#include "lowering/dependences.h"
#include "lowering/region_lowering.h"
#include "tuning/sizes.h"

namespace lathe {

using ir::Value;
using plan::TensorId;

namespace {

// What it is a view of, as long as nothing else reads that; the views on the way, too.
std::vector<const Value*> behind_views(const Value* value) {
  std::vector<const Value*> chain = {value};
  while (value->producer() && value->producer()->has_trait(kView) && value->has_single_use())
    chain.push_back(value = value->producer()->input(0));
  return chain;
}

// The sizes at which one of these tactics runs that are next to the step's own; `forms` begins with those for few
// elements.
SizeRange range_around_own(const std::vector<StepForm>& forms, const std::set<std::string>& tactics) {
  const auto is_one = [&](const StepForm& form) { return tactics.contains(form.tactic); };
  const auto own = std::ranges::find_if(forms, [](const StepForm& form) { return form.launches.empty(); });
  const auto end = std::find_if_not(own, forms.end(), is_one);
  auto first = own;
  while (first != forms.begin() && is_one(*std::prev(first))) --first;
  SizeRange range;
  if (first != forms.begin()) range.above = std::prev(first)->most;
  if (end != forms.end()) range.most = std::prev(end)->most;
  return range;
}

}  // namespace

class RegionLowering::Inliner {
 public:
  explicit Inliner(RegionLowering& lowering) : of_(lowering), steps_(lowering.pending_), dependences_(lowering.plan_) {}

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
    for (const size_t input : {1, 2}) {
      const std::optional<size_t> step = update_of(root.input(input), at);
      if (!step || taken_.contains(*step)) return {};
      parts.push_back({*step, input});
    }
    if (parts[0].step == parts[1].step) return {};
    const Value* queries = behind_views(root.input(0)).back();
    if (const std::optional<size_t> step = step_of(queries, at)) {
      if (!queries->has_single_use()) return {};
      parts.insert(parts.begin(), {*step, 0});
    }
    return may_join(at, parts) ? parts : std::vector<Part>();
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

  struct Tensors {
    std::vector<TensorId> read, written;
    bool is_copy = false;
    Accesses accesses() const { return {read, written, is_copy}; }
  };
  // What a step reads, but for some inputs of its root, and writes; nullopt = that is not known.
  std::optional<Tensors> tensors_of(const Pending& step, const std::set<size_t>& but = {}) const {
    if (!step.bodies.empty()) return std::nullopt;
    Tensors tensors{step.step.inputs, step.step.outputs, step.step.is<plan::Copy>()};
    if (!step.region) return tensors.written.empty() ? std::nullopt : std::optional(tensors);
    tensors = {};
    const auto add = [&](std::vector<TensorId>& ids, const Value* value) {
      if (value && !value->content()) ids.push_back(of_.tensors_.tensor_of(value));
    };
    const Region& region = *step.region;
    for (size_t i = 0; region.kind != RegionKind::pointwise && i < region.root->num_inputs(); ++i) {
      if (but.contains(i)) continue;
      add(tensors.read, region.input(i));
      const Expression* producer = region.producer_of(i);
      for (size_t k = 0; producer && k < producer->operands.size(); ++k) add(tensors.read, producer->operands[k]);
    }
    for (const Value* operand : region.expression.operands) add(tensors.read, operand);
    for (const Value* output : region.outputs) add(tensors.written, output);
    add_aliases(tensors.read);
    return tensors;
  }

  // What has been copied elsewhere may be there alone (plan/aliased_bindings.h).
  void add_aliases(std::vector<TensorId>& read) const {
    for (const Pending& step : steps_)
      if (!step.region && step.step.is<plan::Copy>() && dependences_.touch(read, step.step.inputs))
        read.insert(read.end(), step.step.outputs.begin(), step.step.outputs.end());
  }

  // Whether the parts may run where the attention does, and each block of that may do any of it first. Queries are not
  // written then, and nothing else reads them.
  bool may_join(size_t attention, const std::vector<Part>& parts) const {
    std::set<size_t> inputs;
    for (const Part& part : parts) inputs.insert(part.input);
    std::vector<Tensors> together;
    for (const Part& part : parts) {
      std::optional<Tensors> own = tensors_of(steps_[part.step], {0});
      if (!own) return false;
      if (part.input == 0) own->written.clear();
      if (!may_wait(part.step, *own, attention, parts)) return false;
      together.push_back(*std::move(own));
    }
    std::optional<Tensors> rest = tensors_of(steps_[attention], inputs);
    if (!rest) return false;
    together.push_back(*std::move(rest));
    for (const Tensors& one : together)
      for (const Tensors& other : together)
        if (&one != &other &&
            (dependences_.touch(one.written, other.read) || dependences_.touch(one.written, other.written)))
          return false;
    return true;
  }

  // Whether all steps behind it up to the attention may run before it.
  bool may_wait(size_t step, const Tensors& own, size_t attention, const std::vector<Part>& parts) const {
    for (size_t i = step + 1; i < attention; ++i) {
      if (std::ranges::find(parts, i, &Part::step) != parts.end()) continue;
      const std::optional<Tensors> other = tensors_of(steps_[i]);
      if (!other || dependences_.are_ordered(own.accesses(), other->accesses())) return false;
    }
    return true;
  }

  Problem problem_of(const Pending& part) const {
    if (part.matches) return part.matches->problem();
    Problem problem = of_.problems_.of(*part.region);
    problem.in_place = true;
    return problem;
  }

  // The attention with its parts.
  Problem problem_of(const Pending& attention, const std::vector<Part>& parts) const {
    Problem problem = attention.matches->problem();
    for (const Part& part : parts) problem.inlined.push_back({part.input, problem_of(steps_[part.step])});
    return problem;
  }

  // Why the choice, which is that of the attention alone, is none for it with its parts.
  std::optional<std::string> refuse(Matches& matches, const Choice& choice) const {
    const Matched& matched = matches.of(*choice.tactic);
    if (!matched) return matched.error().reason;
    const std::vector<Config> configs = (*matched)->configs();
    if (std::ranges::find(configs, choice.config.text, &Config::text) == configs.end())
      return fmt::format("not by {}", choice.config.text);
    const Result<Emission> emission = matches.emit(*choice.tactic, choice.config);
    if (!emission) return emission.error().message;
    for (const SourceLaunch& each : emission->launches) {
      if (each.launch.args.size() > kMaxLaunchArgs)
        return fmt::format("{} parameters, {} are possible", each.launch.args.size(), kMaxLaunchArgs);
      if (const Result<> usable = of_.code_.check(each); !usable) {
        if (Log* log = of_.context_.options.log)
          log->print(Severity::warning, "attention does not do the steps before it: {}", usable.error().message);
        return usable.error().message;
      }
    }
    return of_.tuner_.excess_of(matches.problem(), *emission, of_.tuner_.largest(matches.problem()));
  }

  // The attention with its parts as a step of its own: in the configuration that was chosen for it, and in those that
  // were chosen for other sizes. Nobody has measured it.
  Pending joined(const Pending& attention, const std::vector<Part>& parts, std::unique_ptr<Matches> matches) {
    Region named = *attention.region;
    Pending step("", {}, "kernel");
    for (const Part& part : parts) {
      const Region& own = *steps_[part.step].region;
      step.inlined.push_back(own);
      named.nodes.insert(named.nodes.begin(), own.nodes.begin(), own.nodes.end());
    }
    step.step.name = name_of_region(named), step.step.origin = origin_of(named);
    step.region = attention.region;
    step.choice = unmeasured(attention.choice);
    for (const Pending::Sized& sized : attention.sized) {
      std::optional<Problem> problem = with_symbols(matches->problem(), sized.matches->problem().symbols);
      if (!problem) continue;
      auto own = std::make_unique<Matches>(*std::move(problem), of_.tactics_);
      if (!is_known(sized, attention))
        step.sized.push_back({std::move(own), step.choice});
      else if (!refuse(*own, sized.choice))
        step.sized.push_back({std::move(own), unmeasured(sized.choice)});
    }
    step.matches = std::move(matches);
    return step;
  }
  static Choice unmeasured(const Choice& choice) {
    Choice other = choice;
    other.microseconds = other.seconds = 0, other.from_cache = false;
    return other;
  }

  // For which sizes the attention has forms that the joined step has, too.
  Result<SizeRange> range_of(Pending& attention, const Pending& joined) {
    if (attention.sized.empty()) return SizeRange();
    attention.step.tactic = describe(*attention.choice.tactic, attention.choice.config);
    LATHE_ASSIGN(attention.emission, attention.matches->emit(*attention.choice.tactic, attention.choice.config));
    std::set<std::string> tactics = {attention.step.tactic};
    for (const Pending::Sized& sized : joined.sized)
      tactics.insert(describe(*sized.choice.tactic, sized.choice.config));
    return range_around_own(of_.forms_of(attention), tactics);
  }

  // Takes the place of the attention and its parts for the sizes at which it has their forms.
  Result<> join(size_t at, const std::vector<Part>& parts) {
    Pending& attention = steps_[at];
    auto matches = std::make_unique<Matches>(problem_of(attention, parts), of_.tactics_);
    if (const auto reason = refuse(*matches, attention.choice)) {
      attention.choice.refusals.push_back("one step with those before it: " + *reason);
      return {};
    }
    Pending step = joined(attention, parts, std::move(matches));
    LATHE_ASSIGN(const SizeRange range, range_of(attention, step));
    std::vector<size_t> all = {at};
    for (const Part& part : parts) all.push_back(part.step);
    taken_.insert(all.begin(), all.end());
    if (range.is_all()) {
      replaced_.insert(all.begin(), all.end());
    } else {
      const Expr elements = elements_of(attention.matches->problem());
      step.runs = range.contains(elements);
      for (const size_t i : all) steps_[i].runs = range.excludes(elements);
    }
    if (parts[0].input == 0) report_queries(attention.region->root->input(0), step.step.name, range.is_all());
    added_.emplace(at, std::move(step));
    return {};
  }

  // That no step writes them.
  void report_queries(const Value* queries, const std::string& step, bool for_all_sizes) {
    for (const Value* value : behind_views(queries))
      for (TensorReport& tensor : of_.out_.report.tensors) {
        if (tensor.name != value->name()) continue;
        if (for_all_sizes) tensor.layout.clear(), tensor.why.clear();
        tensor.why += fmt::format("computed within the step of {}{}\n", step,
                                  for_all_sizes ? ": it is never in memory" : " for sizes at which that runs");
      }
  }

  RegionLowering& of_;
  std::vector<Pending>& steps_;
  const Dependences dependences_;
  std::set<size_t> taken_, replaced_;
  std::map<size_t, Pending> added_;  // behind the step of that number
};

Result<> RegionLowering::inline_steps() {
  if (!context_.options.optimize || !context_.options.tuner.compiler) return {};
  return Inliner(*this).run();
}

}  // namespace lathe
