// SPDX-License-Identifier: Apache-2.0
#include "lowering/join_launches.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "device/open_numbers.h"
#include "lowering/dependences.h"
#include "plan/expressions.h"
#include "tuning/all_cores.h"

namespace lathe {

using plan::Step;
using plan::StorageKind;
using plan::TensorId;

namespace {

constexpr size_t kNear = 24;   // steps apart at most: what waits longer for its turn takes up memory
constexpr size_t kParts = 12;  // of a launch

class Joiner {
 public:
  Joiner(BuiltPlan& built, const BuildOptions& options, PlanCode& code)
      : plan_(built.plan), reports_(built.report.regions), options_(options), code_(code), dependences_(plan_) {
    for (const plan::SymbolProfile& symbol : plan_.profiles[0].symbols) optimum_.push_back(symbol.opt);
    for (const Symbol& symbol : plan_.symbols) ranges_.push_back(symbol.range);
  }

  Result<> run() {
    for (uint32_t i = 0; i < plan_.steps.size(); ++i) {
      LATHE_TRY(add(i));
    }
    LATHE_TRY(part_failing());
    std::vector<Step> steps;
    std::vector<RegionReport> reports;
    for (Group& group : groups_) {
      if (!group.joined) {
        for (const uint32_t each : group.steps) {
          steps.push_back(std::move(plan_.steps[each]));
          reports.push_back(std::move(reports_[each]));
        }
        continue;
      }
      LATHE_ASSIGN(Step step, step_of(group));
      steps.push_back(std::move(step));
      reports.push_back(report_of(group, steps.back()));
    }
    plan_.steps = std::move(steps);
    reports_ = std::move(reports);
    return {};
  }

 private:
  // Steps, in the order in which they were, that become one.
  struct Group {
    std::vector<uint32_t> steps;
    bool is_open = false;        // others may join
    bool has_one_block = false;  // at most, each of them
    JoinedParts how = JoinedParts::at_once;
    std::vector<TensorId> inputs{}, outputs{};  // once it is joined
    std::optional<SourceLaunch> joined = std::nullopt;
  };

  // The step becomes part of a group not far before it, which then runs where it stood, or else where the step does.
  Result<> add(uint32_t step) {
    Group added{{step}, is_short(plan_.steps[step])};
    added.has_one_block = added.is_open && has_one_block(step);
    if (!added.is_open) return groups_.push_back(std::move(added)), Result<>();
    bool moves = true;
    const size_t last = groups_.size(), first = last - std::min(last, kNear);
    for (size_t at = last; at-- > first;) {
      Group& group = groups_[at];
      const bool meet = depends(group, added);
      if (group.is_open && (moves || can_wait(at)) && take(group, added, meet)) {
        if (!moves)
          std::rotate(groups_.begin() + static_cast<ptrdiff_t>(at), groups_.begin() + static_cast<ptrdiff_t>(at) + 1,
                      groups_.end());
        return {};
      }
      moves &= !meet;
    }
    groups_.push_back(std::move(added));
    return {};
  }

  bool can_wait(size_t at) const {
    return std::none_of(groups_.begin() + static_cast<ptrdiff_t>(at) + 1, groups_.end(),
                        [&](const Group& later) { return depends(groups_[at], later); });
  }

  // As far as one launch can be both. Where one depends on the other, or did so of the group, a block runs them in
  // turn.
  bool take(Group& group, const Group& added, bool meet) {
    const uint32_t step = added.steps[0];
    const JoinedParts how = meet ? JoinedParts::in_turn : group.how;
    const bool have_one_block = group.has_one_block && added.has_one_block;
    if (group.steps.size() == kParts || (how == JoinedParts::in_turn && !have_one_block)) return false;
    if (reports_[group.steps[0]].runs != reports_[step].runs) return false;  // then none of its tensors is written
    Group both{group.steps, true, have_one_block, how};
    both.steps.push_back(step);
    std::vector<SourceLaunch> parts;
    for (const uint32_t each : both.steps) parts.push_back(part_of(both, each));
    both.joined = options_.join_launches(parts, how);
    if (!both.joined) return false;
    group = std::move(both);
    return true;
  }

  // The step's launch, whose arguments are among the group's tensors. What parts before it have written is no input of
  // the group, but one of its outputs.
  SourceLaunch part_of(Group& group, uint32_t step) const {
    SourceLaunch part = launch_of(step);
    const Step& own = plan_.steps[step];
    std::vector<std::pair<LaunchArg::Kind, uint32_t>> places;  // of its inputs
    for (const TensorId id : own.inputs) {
      const bool is_written = dependences_.touch({&id, 1}, group.outputs);
      std::vector<TensorId>& ids = is_written ? group.outputs : group.inputs;
      const auto at = is_written ? std::ranges::find(ids, id) : ids.end();
      places.emplace_back(is_written ? LaunchArg::output : LaunchArg::input, static_cast<uint32_t>(at - ids.begin()));
      if (at == ids.end()) ids.push_back(id);
    }
    for (LaunchArg& arg : part.launch.args)
      if (arg.kind == LaunchArg::input)
        std::tie(arg.kind, arg.index) = places[arg.index];
      else if (arg.kind == LaunchArg::output)
        arg.index += static_cast<uint32_t>(group.outputs.size());
    group.outputs.insert(group.outputs.end(), own.outputs.begin(), own.outputs.end());
    return part;
  }

  // Groups whose launch does not compile, or which the device does not load, are separate steps as before, which do.
  Result<> part_failing() {
    std::vector<Group*> joined;
    for (Group& group : groups_)
      if (group.joined) joined.push_back(&group);
    std::vector<std::optional<Error>> errors(joined.size());
    const auto check = [&](size_t i) {
      if (Result<> usable = code_.check(*joined[i]->joined); !usable) errors[i] = std::move(usable.error());
    };
    LATHE_TRY(on_all_cores(
        joined.size(), check, kUnlimited, [](double) { return Result<>(); }, options_.tuner.most_threads));
    std::set<std::string> told;  // sources: layers have the same
    for (size_t i = 0; i < joined.size(); ++i) {
      if (!errors[i]) continue;
      std::string names;
      for (const uint32_t each : joined[i]->steps) {
        names += fmt::format("{}'{}'", names.empty() ? "" : ", ", plan_.steps[each].name);
        reports_[each].refusals.push_back("one launch with others: " + errors[i]->message);
      }
      if (told.insert(joined[i]->joined->source).second && options_.log)
        options_.log->print(Severity::warning, "one launch is left out for {}, which are launched separately: {}",
                            names, errors[i]->message);
      joined[i]->joined.reset();
    }
    return {};
  }

  SourceLaunch launch_of(uint32_t step) const {
    const Launch& launch = std::get<plan::DeviceLaunches>(plan_.steps[step].work).launches[0];
    return {code_.source_of(launch.code), launch};
  }

  // A launch of device code that does not fill the device, of sizes that are known before the run.
  bool is_short(const Step& step) const {
    const auto* device = std::get_if<plan::DeviceLaunches>(&step.work);
    if (!device || device->launches.size() != 1 || device->workspace != Expr(0) || !step.counts.empty() ||
        !step.op.empty() || !device->launches[0].library.empty())
      return false;
    bool is_known = true;
    plan::for_each_expression_of(
        step, [&](const Expr& number, plan::ExprUse) { is_known &= !depends_on_data(number, plan_.symbols); });
    for (const auto* ids : {&step.inputs, &step.outputs})
      for (const TensorId id : *ids)
        is_known &= id == plan::kNoTensor || (plan_.tensors[id].storage != StorageKind::dynamic &&
                                              !depends_on_data(plan_.tensors[id].dims, plan_.symbols));
    const Launch& launch = device->launches[0];
    const int64_t blocks = launch.grid[0].evaluate(optimum_).value_or(INT64_MAX / launch.block);
    return is_known && blocks * launch.block <= options_.tuner.target.busy_threads();
  }

  // For all sizes of all profiles.
  bool has_one_block(uint32_t step) const {
    const Launch& launch = std::get<plan::DeviceLaunches>(plan_.steps[step].work).launches[0];
    return std::ranges::all_of(launch.grid, [&](const Expr& extent) { return extent.range(ranges_).max <= 1; });
  }

  bool depends(const Group& a, const Group& b) const {
    const auto accesses_of = [&](uint32_t i) {
      const Step& step = plan_.steps[i];
      return Accesses{step.inputs, step.outputs, step.is<plan::Copy>()};
    };
    return std::ranges::any_of(a.steps, [&](uint32_t i) {
      return std::ranges::any_of(b.steps,
                                 [&](uint32_t j) { return dependences_.are_ordered(accesses_of(i), accesses_of(j)); });
    });
  }

  template <class Time>
  static Time together(JoinedParts how, Time a, Time b) {
    return how == JoinedParts::at_once ? std::max(a, b) : a + b;
  }

  Result<Step> step_of(Group& group) {
    Step step = std::move(plan_.steps[group.steps[0]]);
    auto& device = std::get<plan::DeviceLaunches>(step.work);
    device.program.clear();
    step.inputs = group.inputs, step.outputs = group.outputs;
    for (size_t i = 1; i < group.steps.size(); ++i) {
      Step& other = plan_.steps[group.steps[i]];
      for (std::string& layer : other.origin)
        if (std::ranges::find(step.origin, layer) == step.origin.end()) step.origin.push_back(std::move(layer));
      step.name += " | " + other.name;
      step.tactic += " | " + other.tactic;
      step.milliseconds = together(group.how, step.milliseconds, other.milliseconds);
      const std::string& kernel = std::get<plan::DeviceLaunches>(other.work).kernel;
      if (device.kernel.find(kernel) == std::string::npos) device.kernel += "+" + kernel;
    }
    device.launches = {group.joined->launch};
    LATHE_ASSIGN(device.launches[0].code, code_.add(group.joined->source, has_open_numbers(device.launches[0])));
    return step;
  }

  RegionReport report_of(const Group& group, const Step& step) {
    RegionReport report = std::move(reports_[group.steps[0]]);
    report.name = step.name, report.origin = step.origin, report.tactic = step.tactic;
    for (size_t i = 1; i < group.steps.size(); ++i) {
      const RegionReport& other = reports_[group.steps[i]];
      report.microseconds = together(group.how, report.microseconds, other.microseconds);
      report.estimated_microseconds = together(group.how, report.estimated_microseconds, other.estimated_microseconds);
      report.operations += other.operations;
      report.bytes += other.bytes;
    }
    report.candidates.clear();
    report.forms.clear();
    return report;
  }

  plan::Plan& plan_;
  std::vector<RegionReport>& reports_;
  const BuildOptions& options_;
  PlanCode& code_;
  std::vector<int64_t> optimum_;
  std::vector<Range> ranges_;
  Dependences dependences_;
  std::vector<Group> groups_;
};

}  // namespace

Result<> join_launches(BuiltPlan& built, const BuildOptions& options, PlanCode& code) {
  const auto is_block = [](const Step& step) { return step.is<plan::Block>(); };
  if (!options.join_launches || !options.optimize || std::ranges::any_of(built.plan.steps, is_block)) return {};
  LATHE_TRY(Joiner(built, options, code).run());
  code.drop_unused();
  return {};
}

}  // namespace lathe
