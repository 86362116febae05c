// SPDX-License-Identifier: Apache-2.0
#include "plan/shared_weights.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/divide.h"
#include "ops/pack_bytes.h"
#include "plan/constant_orders.h"
#include "plan/limits.h"

namespace lathe::plan {
namespace {

constexpr size_t kMostMembers = 256;  // of a family: pairs of them are looked at
constexpr uint64_t kSmall = 4096;     // bytes, which are not worth the numbers that derive them

using Window = std::pair<uint64_t, uint64_t>;  // of weights: offset, bytes

// What the section of weights is made of; one window where it is not of pieces that begin at multiples of 64 with zeros
// between them.
std::vector<Window> windows_of(const Plan& plan) {
  if (plan.weights.empty()) return {};
  std::vector<Window> windows;
  for (const Constant& constant : plan.constants)
    if (!constant.stripped && constant.bytes > 0) windows.emplace_back(constant.offset, constant.bytes);
  std::ranges::sort(windows);
  windows.erase(std::unique(windows.begin(), windows.end()), windows.end());
  std::vector<Window> whole = {{0, plan.weights.size()}};
  uint64_t end = 0;
  for (const auto& [offset, bytes] : windows) {
    const auto gap = plan.weights.subspan(std::min<uint64_t>(end, offset), offset - std::min<uint64_t>(end, offset));
    const bool is_zero = std::ranges::all_of(gap, [](std::byte b) { return b == std::byte{0}; });
    if (offset != round_up(end, uint64_t{kConstantAlignment}) || !is_zero) return whole;
    end = offset + bytes;
  }
  return end == plan.weights.size() ? windows : whole;
}

// Weights in one order: equal bytes of any number of plans. Of equal pieces that one plan has, each is a form.
struct Form {
  std::span<const std::byte> bytes;
  std::vector<size_t> plans;
  std::optional<ConstantOrder> order;  // none = nobody packed it
  size_t element = 0;                  // bytes, of what is in an order; 0 = its elements cannot be told apart
  const Form* source = nullptr;        // of which it is derived ...
  Packing packing;                     // ... so
  bool is_source = false;
  WeightsWindow place;
};

// A form as elements of weights.
struct Member {
  Form* form;
  Packing packing;
};

size_t element_of(std::span<const std::byte> bytes, const Packing& packing) {
  const auto elements = static_cast<size_t>(checked_volume(packing.dims).value_or(0));
  const size_t size = elements > 0 && bytes.size() % elements == 0 ? bytes.size() / elements : 0;
  return is_element(size) ? size : 0;
}

class Sharer {
 public:
  Result<> add(const Plan& plan, size_t number) {
    LATHE_ASSIGN(const std::vector<ConstantOrder> orders, orders_of(plan));
    std::map<Window, const ConstantOrder*> by_window;
    for (const ConstantOrder& order : orders)
      by_window[{plan.constants[order.constant].offset, plan.constants[order.constant].bytes}] = &order;
    std::vector<Form*>& own = by_plan_.emplace_back();
    std::map<Digest, size_t> uses;
    for (const Window& window : windows_of(plan)) {
      const auto bytes = plan.weights.subspan(window.first, window.second);
      const Digest digest = digest_of(bytes);
      std::unique_ptr<Form>& form = forms_[{digest, uses[digest]++}];
      if (!form) {
        form = std::make_unique<Form>();
        form->bytes = bytes;
        in_order_.push_back(form.get());
      }
      form->plans.push_back(number);
      if (const auto order = by_window.find(window); order != by_window.end() && !form->order) {
        form->order = *order->second;
        form->element = element_of(bytes, form->order->packing);
      }
      own.push_back(form.get());
    }
    return {};
  }

  // Looks at all forms of the same weights together.
  void derive() {
    std::map<std::pair<Digest, size_t>, std::vector<Member>> families;  // by weights and size of their elements
    for (Form* form : in_order_)
      if (form->element > 0) families[{form->order->weights, form->element}].push_back({form, form->order->packing});
    for (auto& [key, members] : families) {
      const auto& [weights, element] = key;
      const auto bare = forms_.find({weights, 0});
      if (bare != forms_.end()) add(*bare->second, element, members);
      if (members.size() <= kMostMembers) derive(members);
    }
  }

  SharedWeights finish() {
    SharedWeights shared;
    std::vector<Form*> derived;
    for (Form* form : in_order_) {
      if (form->source) {
        derived.push_back(form);
        continue;
      }
      form->place = {round_up(shared.bytes, uint64_t{kConstantAlignment}), form->bytes.size()};
      shared.parts.emplace_back(form->place.offset, form->bytes);
      shared.bytes = form->place.offset + form->bytes.size();
    }
    for (const Form* form : derived)
      shared.derived.push_back({{0, form->bytes.size()}, form->source->place, form->element, form->packing});
    place_derived(shared.derived, shared.bytes);
    for (size_t i = 0; i < derived.size(); ++i) derived[i]->place = shared.derived[i].place;
    for (const std::vector<Form*>& own : by_plan_) {
      std::vector<WeightsWindow>& pieces = shared.pieces.emplace_back();
      for (const Form* form : own) pieces.push_back(form->place);
    }
    return shared;
  }

 private:
  // Weights that nobody has packed; what a packing left as they were is among the members.
  static void add(Form& form, size_t element, std::vector<Member>& members) {
    if (form.bytes.size() % element != 0 || (form.element != 0 && form.element != element) ||
        std::ranges::find(members, &form, &Member::form) != members.end())
      return;
    form.element = element;
    members.push_back({&form, no_packing(static_cast<int64_t>(form.bytes.size() / element))});
  }

  bool can_derive(const Member& member, const Member& source, Packing& packing) const {
    const Form &form = *member.form, &from = *source.form;
    if (&form == &from || form.source || form.is_source || form.bytes.size() < kSmall ||
        form.bytes.size() / kMostDerived > from.bytes.size())
      return false;
    std::optional<Packing> found = packing_between(source.packing, member.packing);
    if (!found) return false;
    packing = *std::move(found);
    return true;
  }

  // Stored is the form of which most others follow, and of several such the one that most plans have.
  void derive(const std::vector<Member>& members) {
    const Member* best = nullptr;
    std::pair<size_t, size_t> most;
    Packing packing;
    for (const Member& source : members) {
      if (source.form->source) continue;
      const auto follow =
          std::ranges::count_if(members, [&](const Member& member) { return can_derive(member, source, packing); });
      const std::pair value(static_cast<size_t>(follow), source.form->plans.size());
      if (follow > 0 && value > most) best = &source, most = value;
    }
    if (!best) return;
    for (const Member& member : members)
      if (can_derive(member, *best, packing)) derive(*member.form, *best->form, packing);
  }

  // If it gives just these bytes, and none of the plans derives of the source already: what a plan derives has a bound.
  void derive(Form& form, Form& source, const Packing& packing) {
    const size_t element = form.element;
    for (const size_t plan : form.plans)
      if (sources_.contains({plan, &source})) return;
    std::vector<std::byte> bytes(form.bytes.size());
    if (!check_packing(packing, static_cast<int64_t>(source.bytes.size() / element),
                       static_cast<int64_t>(bytes.size() / element)))
      return;
    pack_bytes(packing, element, source.bytes.data(), bytes.data());
    if (!std::ranges::equal(bytes, form.bytes)) return;
    for (const size_t plan : form.plans) sources_.insert({plan, &source});
    form.source = &source;
    form.packing = packing;
    source.is_source = true;
  }

  std::map<std::pair<Digest, size_t>, std::unique_ptr<Form>> forms_;
  std::vector<Form*> in_order_;
  std::vector<std::vector<Form*>> by_plan_;
  std::set<std::pair<size_t, const Form*>> sources_;  // of what each plan derives
};

}  // namespace

void SharedWeights::write(std::span<std::byte> to) const {
  for (const auto& [offset, part] : parts) std::ranges::copy(part, to.begin() + static_cast<ptrdiff_t>(offset));
}

Result<SharedWeights> share_weights(std::span<const Plan* const> plans, Sharing sharing) {
  Sharer sharer;
  for (size_t i = 0; i < plans.size(); ++i) LATHE_TRY(sharer.add(*plans[i], i));
  if (sharing == Sharing::derived) sharer.derive();
  return sharer.finish();
}

}  // namespace lathe::plan
