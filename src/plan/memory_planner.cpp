// SPDX-License-Identifier: Apache-2.0
// Buffers are placed one by one into the smallest gap that fits, in several orders; then the order that packed best is
// improved by a short local search. Placing is what costs time, so its steps are counted.
#include "plan/memory_planner.h"

#include <algorithm>
#include <numeric>

namespace lathe::plan {
namespace {

using Order = std::vector<uint32_t>;

size_t add_saturating(size_t a, size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }

size_t round_up_saturating(size_t bytes, size_t alignment) {
  const size_t sum = add_saturating(bytes, alignment - 1);
  return sum == SIZE_MAX ? SIZE_MAX : sum / alignment * alignment;
}

struct Placed {
  size_t offset, end;
  uint32_t first, last;
};

struct Packing {
  std::vector<size_t> offsets;
  size_t total = SIZE_MAX;
  Order order;
};

class Packer {
 public:
  Packer(std::vector<Lifetime> buffers, size_t bound, std::vector<size_t> crowds)
      : buffers_(std::move(buffers)), bound_(bound), crowds_(std::move(crowds)) {}

  // Best of the orders.
  Packing pack() {
    try_by([](const Lifetime& b) { return b.bytes; });
    try_by([this](const Lifetime& b) { return crowds_[static_cast<size_t>(&b - buffers_.data())]; });
    try_by([](const Lifetime& b) { return SIZE_MAX - b.first; });
    try_by([](const Lifetime& b) { return size_t{b.last} - b.first; });
    try_by([](const Lifetime& b) {
      size_t area;
      return __builtin_mul_overflow(b.bytes, size_t{b.last} - b.first + 1, &area) ? SIZE_MAX : area;
    });
    improve();
    return std::move(best_);
  }

 private:
  // Descending by the key; then larger, then earlier first, so that the order does not depend on the sort.
  template <class Key>
  void try_by(const Key& key) {
    if (exhausted()) return;
    Order order(buffers_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](uint32_t x, uint32_t y) {
      const Lifetime &a = buffers_[x], &b = buffers_[y];
      if (key(a) != key(b)) return key(a) > key(b);
      if (a.bytes != b.bytes) return a.bytes > b.bytes;
      return a.first != b.first ? a.first < b.first : x < y;
    });
    try_order(std::move(order));
  }

  bool exhausted() const { return !best_.order.empty() && (best_.total <= bound_ || work_ > kMaxWork); }

  void try_order(Order order) {
    lowest_ = !lowest_;
    placed_.clear();
    std::vector<size_t> offsets(buffers_.size());
    size_t total = 0;
    for (const uint32_t i : order) {
      offsets[i] = place(buffers_[i]);
      total = std::max(total, add_saturating(offsets[i], buffers_[i].bytes));
    }
    if (best_.order.empty() || total <= best_.total) best_ = {std::move(offsets), total, std::move(order)};
  }

  // The start of a gap between the buffers that live at the same time: the smallest that fits, or in every other order
  // the lowest.
  size_t place(const Lifetime& b) {
    size_t cursor = 0, at = 0, best_gap = SIZE_MAX;
    for (const Placed& p : placed_) {
      if (p.first > b.last || b.first > p.last) continue;
      if (p.offset > cursor && p.offset - cursor >= b.bytes && p.offset - cursor < best_gap) {
        best_gap = p.offset - cursor;
        at = cursor;
        if (lowest_) break;
      }
      cursor = std::max(cursor, p.end);
    }
    if (best_gap == SIZE_MAX) at = cursor;
    work_ += placed_.size();
    const Placed mine{at, add_saturating(at, b.bytes), b.first, b.last};
    placed_.insert(std::upper_bound(placed_.begin(), placed_.end(), mine,
                                    [](const Placed& x, const Placed& y) { return x.offset < y.offset; }),
                   mine);
    return at;
  }

  // Moves a buffer to an earlier place in the order and keeps what is not worse: in turn one that sticks out and any
  // one that lives beside it (from a fixed sequence of pseudo-random numbers).
  void improve() {
    uint64_t random = 0x9e3779b97f4a7c15ull;
    const auto next = [&random](size_t bound) {
      random = random * 6364136223846793005ull + 1442695040888963407ull;
      return static_cast<std::ptrdiff_t>((random >> 33) % bound);
    };
    const size_t enough = bound_ + bound_ / 64;
    for (int round = 0; round < kMaxRounds && best_.total > enough && !exhausted(); ++round) {
      Order order = best_.order;
      const auto top = std::find_if(order.begin(), order.end(), [&](uint32_t i) {
        return add_saturating(best_.offsets[i], buffers_[i].bytes) == best_.total;
      });
      const Lifetime& high = buffers_[*top];
      auto from = top;
      for (int tries = 0; round % 2 != 0 && tries < 64; ++tries) {
        from = order.begin() + next(order.size());
        if (buffers_[*from].first <= high.last && high.first <= buffers_[*from].last) break;
      }
      const auto to = order.begin() + next(static_cast<size_t>(from - order.begin()) + 1);
      std::rotate(to, from, from + 1);
      try_order(std::move(order));
    }
  }

  static constexpr size_t kMaxWork = size_t{1} << 20;
  static constexpr int kMaxRounds = 400;
  std::vector<Lifetime> buffers_;  // sizes rounded up to the alignment
  size_t bound_;
  std::vector<size_t> crowds_;  // for each buffer, the most bytes alive at one of its steps
  size_t work_ = 0;
  bool lowest_ = true;
  std::vector<Placed> placed_;  // by offset
  Packing best_;
};

std::vector<Lifetime> rounded(std::span<const Lifetime> buffers, size_t alignment) {
  std::vector<Lifetime> result(buffers.begin(), buffers.end());
  for (Lifetime& b : result) b = {round_up_saturating(b.bytes, alignment), b.first, std::max(b.first, b.last)};
  return result;
}

// How many bytes live from each step that changes it to the next; SIZE_MAX in all when they overflow.
struct Profile {
  std::vector<uint64_t> steps;
  std::vector<size_t> live;

  size_t most() const { return live.empty() ? 0 : *std::max_element(live.begin(), live.end()); }
  size_t most_during(const Lifetime& b) const {
    const auto begin = std::upper_bound(steps.begin(), steps.end(), b.first) - steps.begin() - 1;
    const auto end = std::upper_bound(steps.begin(), steps.end(), b.last) - steps.begin();
    return *std::max_element(live.begin() + begin, live.begin() + end);
  }
};

Profile live_profile(std::span<const Lifetime> buffers) {
  struct Event {
    uint64_t step;
    bool starts;
    size_t bytes;
  };
  std::vector<Event> events;
  events.reserve(2 * buffers.size());
  size_t sum = 0;
  for (const Lifetime& b : buffers) {
    sum = add_saturating(sum, b.bytes);
    events.push_back({b.first, true, b.bytes});
    events.push_back({uint64_t{b.last} + 1, false, b.bytes});
  }
  std::sort(events.begin(), events.end(), [](const Event& x, const Event& y) {
    return x.step != y.step ? x.step < y.step : x.starts < y.starts;  // what ends makes room first
  });
  Profile profile;
  size_t live = 0;
  for (const Event& e : events) {
    live = e.starts ? live + e.bytes : live - e.bytes;
    if (profile.steps.empty() || profile.steps.back() != e.step) {
      profile.steps.push_back(e.step);
      profile.live.push_back(0);
    }
    profile.live.back() = sum == SIZE_MAX ? SIZE_MAX : live;
  }
  return profile;
}

}  // namespace

size_t max_live_bytes(std::span<const Lifetime> buffers, size_t alignment) {
  return live_profile(rounded(buffers, alignment)).most();
}

std::vector<size_t> plan_memory(std::span<const Lifetime> buffers, size_t* total, size_t alignment) {
  std::vector<Lifetime> sized = rounded(buffers, alignment);
  const Profile profile = live_profile(sized);
  std::vector<size_t> crowds;
  crowds.reserve(sized.size());
  for (const Lifetime& b : sized) crowds.push_back(profile.most_during(b));
  Packing packing = Packer(std::move(sized), profile.most(), std::move(crowds)).pack();
  *total = buffers.empty() ? 0 : packing.total;
  return std::move(packing.offsets);
}

}  // namespace lathe::plan
