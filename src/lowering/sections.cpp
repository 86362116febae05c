// SPDX-License-Identifier: Apache-2.0
// The cheapest way to cut the steps into single ones and sections, by dynamic programming over where a section begins
// and ends. The branches of a section are the connected components of its steps under "depends on".
#include "lowering/sections.h"

#include <algorithm>
#include <limits>
#include <map>

#include "device/whole_grid.h"
#include "plan/blocks.h"
#include "plan/disjoint.h"
#include "plan/expressions.h"
#include "plan/limits.h"

namespace lathe {

using plan::Step;
using plan::StorageKind;
using plan::TensorId;

namespace {

constexpr uint32_t kLongest = 128;              // steps of a section
constexpr double kLaunchesOfForkAndJoin = 4;    // two events are recorded and waited for, each as long as a launch
constexpr double kElementsOfTile = 128.0 * 64;  // of a result, that a library's block computes

struct Cost {
  double microseconds = 0;  // alone
  double busy = 0;          // the same, of the whole device: what it takes if others use what it leaves
};

// The branches of steps that are added one by one: sets of them that depend on each other, known by a member.
class Branches {
 public:
  explicit Branches(uint32_t first) : first_(first) {}

  void add(const Cost& cost, const std::vector<uint32_t>& depends_on) {
    const size_t added = costs_.size();
    leaders_.push_back(added);
    costs_.push_back(cost);
    for (const uint32_t other : depends_on)
      if (other >= first_) join(added, find(other - first_));
  }
  size_t of(uint32_t step) const { return find(step - first_); }
  // The longest first.
  std::vector<size_t> order() const {
    std::vector<size_t> order;
    for (size_t i = 0; i < leaders_.size(); ++i)
      if (leaders_[i] == i) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [this](size_t a, size_t b) { return costs_[a].microseconds > costs_[b].microseconds; });
    return order;
  }
  std::vector<Cost> costs() const {
    std::vector<Cost> costs;
    for (const size_t branch : order()) costs.push_back(costs_[branch]);
    return costs;
  }

 private:
  size_t find(size_t i) const {
    while (leaders_[i] != i) i = leaders_[i] = leaders_[leaders_[i]];
    return i;
  }
  void join(size_t into, size_t other) {
    if (other == into) return;
    leaders_[other] = into;
    costs_[into].microseconds += costs_[other].microseconds;
    costs_[into].busy += costs_[other].busy;
  }

  const uint32_t first_;
  mutable std::vector<size_t> leaders_;
  std::vector<Cost> costs_;  // of a branch, with its leader
};

class SectionFinder {
 public:
  SectionFinder(plan::Plan& plan, const BuildReport& report, const Target& target, uint32_t most_streams)
      : plan_(plan), report_(report), target_(target), most_streams_(most_streams), depends_on_(plan.steps.size()) {
    for (const plan::SymbolProfile& symbol : plan.profiles[0].symbols) optimum_.push_back(symbol.opt);
  }

  Result<> run() {
    LATHE_ASSIGN(const std::vector<plan::StepPlace> places, plan::find_places(plan_.steps));
    const auto count = static_cast<uint32_t>(plan_.steps.size());
    for (uint32_t i = 0; i < count; ++i) costs_.push_back(cost_of(i));
    find_dependences();
    for (uint32_t first = 0, end = 0; first < count; first = std::max(end, places[first].end)) {
      for (end = first; end < count && may_run_beside(plan_.steps[end]); ++end) {
      }
      cut(first, end);
    }
    return {};
  }

 private:
  bool may_run_beside(const Step& step) const {
    const auto* device = std::get_if<plan::DeviceLaunches>(&step.work);
    if (!device || !step.counts.empty() || !step.op.empty()) return false;
    for (const Launch& launch : device->launches)
      if (launch.cluster == kWholeGrid) return false;  // its blocks wait for each other: it wants the device for itself
    bool depends = false;
    plan::for_each_expression_of(
        step, [&](const Expr& number, plan::ExprUse) { depends |= depends_on_data(number, plan_.symbols); });
    for (const auto* ids : {&step.inputs, &step.outputs})
      for (const TensorId id : *ids)
        if (id != plan::kNoTensor)
          depends |= plan_.tensors[id].storage == StorageKind::dynamic ||
                     depends_on_data(plan_.tensors[id].dims, plan_.symbols);
    return !depends;
  }

  Cost cost_of(uint32_t i) const {
    const RegionReport& region = report_.regions[i];
    const double time = region.microseconds > 0 ? region.microseconds : region.estimated_microseconds;
    const auto* device = std::get_if<plan::DeviceLaunches>(&plan_.steps[i].work);
    double blocks = 0;
    for (size_t l = 0; device && l < device->launches.size(); ++l)
      blocks = std::max(blocks, blocks_of(plan_.steps[i], device->launches[l]));
    return {time, time * std::min(1.0, blocks / target_.cores)};
  }

  double value_of(const Expr& number) const {
    return static_cast<double>(std::max<int64_t>(number.evaluate(optimum_).value_or(1), 0));
  }

  double blocks_of(const Step& step, const Launch& launch) const {
    double product = 1;
    if (launch.library.empty()) {
      for (const Expr& extent : launch.grid) product *= value_of(extent);
      return product;
    }
    for (const Expr& dim : plan_.tensors[step.outputs[0]].dims) product *= value_of(dim);
    return product / kElementsOfTile;
  }

  // A step depends on those before it that write what it reads or writes, and that read what it writes. Parts of one
  // storage that are disjoint, as those of a concatenation, have nothing to do with each other.
  void find_dependences() {
    struct Use {
      uint32_t step;
      TensorId tensor;
    };
    std::map<std::pair<StorageKind, uint32_t>, std::vector<Use>> readers, writers;
    std::vector<Range> ranges;
    for (const Symbol& symbol : plan_.symbols) ranges.push_back(symbol.range);
    const auto depend = [&](const Use& use, const std::vector<Use>& others) {
      for (const Use& other : others)
        if (other.step != use.step &&
            !plan::are_disjoint(plan_.tensors[other.tensor], plan_.tensors[use.tensor], ranges))
          depends_on_[use.step].push_back(other.step);
    };
    const auto visit = [&](const std::vector<TensorId>& ids, uint32_t step, bool writes) {
      for (const TensorId id : ids) {
        if (id == plan::kNoTensor || plan_.tensors[id].storage == StorageKind::constant) continue;
        const std::pair storage(plan_.tensors[id].storage, plan_.tensors[id].index);
        const Use use{step, id};
        depend(use, writers[storage]);
        if (writes) depend(use, readers[storage]);
        (writes ? writers : readers)[storage].push_back(use);
      }
    };
    constexpr bool kWrites = true;
    for (uint32_t i = 0; i < plan_.steps.size(); ++i) {
      visit(plan_.steps[i].inputs, i, !kWrites);
      visit(plan_.steps[i].outputs, i, kWrites);
    }
  }

  // Gives the time of a section of these branches, the longest first, each on the stream that has least to do, and if
  // wanted which one that is.
  double spread(const std::vector<Cost>& branches, std::vector<uint32_t>* stream_of) const {
    std::vector<double> load(std::min<size_t>(most_streams_ + 1, branches.size()));
    double busy = 0;
    for (const Cost& branch : branches) {
      const auto least = std::min_element(load.begin(), load.end());
      *least += branch.microseconds;
      busy += branch.busy;
      if (stream_of) stream_of->push_back(static_cast<uint32_t>(least - load.begin()));
    }
    return std::max(busy, *std::max_element(load.begin(), load.end())) +
           kLaunchesOfForkAndJoin * target_.launch_us * static_cast<double>(load.size() - 1);
  }

  void cut(uint32_t first, uint32_t end) {
    std::vector<double> best(end - first + 1, std::numeric_limits<double>::infinity());  // of what is before each step
    std::vector<uint32_t> begins(end - first + 1);  // where the last piece of that begins
    best[0] = 0;
    for (uint32_t from = first; from < end; ++from) {
      const auto offer = [&](uint32_t to, double time) {
        if (best[from - first] + time >= best[to - first]) return;
        best[to - first] = best[from - first] + time;
        begins[to - first] = from;
      };
      offer(from + 1, costs_[from].microseconds);
      Branches branches(from);
      for (uint32_t to = from + 1; to <= std::min(end, from + kLongest); ++to) {
        branches.add(costs_[to - 1], depends_on_[to - 1]);
        const std::vector<Cost> costs = branches.costs();
        if (costs.size() > 1) offer(to, spread(costs, nullptr));
      }
    }
    std::vector<plan::ParallelSection> sections;
    for (uint32_t to = end; to > first; to = begins[to - first])
      if (to - begins[to - first] > 1) sections.push_back({begins[to - first], to});
    std::for_each(sections.rbegin(), sections.rend(), [&](const plan::ParallelSection& section) { take(section); });
  }

  void take(const plan::ParallelSection& section) {
    Branches branches(section.first);
    for (uint32_t i = section.first; i < section.end; ++i) branches.add(costs_[i], depends_on_[i]);
    std::vector<uint32_t> stream_of;
    spread(branches.costs(), &stream_of);
    const std::vector<size_t> order = branches.order();
    for (uint32_t i = section.first; i < section.end; ++i) {
      const auto branch = std::find(order.begin(), order.end(), branches.of(i)) - order.begin();
      plan_.steps[i].stream = stream_of[static_cast<size_t>(branch)];
    }
    plan_.sections.push_back(section);
  }

  plan::Plan& plan_;
  const BuildReport& report_;
  const Target& target_;
  const uint32_t most_streams_;
  std::vector<int64_t> optimum_;
  std::vector<Cost> costs_;
  std::vector<std::vector<uint32_t>> depends_on_;  // earlier steps
};

}  // namespace

Result<> find_sections(plan::Plan& plan, const BuildReport& report, const Target& target, uint32_t most_streams) {
  const uint32_t streams = std::min<uint32_t>(most_streams, plan::kMaxStreams);
  return streams == 0 ? Result<>() : SectionFinder(plan, report, target, streams).run();
}

}  // namespace lathe
