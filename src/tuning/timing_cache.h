// SPDX-License-Identifier: Apache-2.0
// Timings of past builds. The key covers the problem, the device and the kernels, so that nothing stale can match; a
// mismatch is a miss, never an error. Equal contents serialise to equal bytes.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/target.h"

namespace lathe {

class TimingCache {
 public:
  struct Timed {
    std::string tactic;
    std::string config;
    float microseconds = 0;
  };
  struct Entry {
    Timed chosen;
    std::vector<Timed> candidates;  // what was measured, with the chosen one; empty = was not kept
  };
  struct Key {
    uint64_t high = 0;
    uint64_t low = 0;
    auto operator<=>(const Key&) const = default;
  };

  // That entries were measured on: its own numbers, from which candidates follow.
  struct Device {
    std::string timing_key;  // Device::timing_key(), and what of the build is in keys besides
    Target target;
  };

  static Key key_of(std::string_view problem, std::string_view device);

  // Thread-safe.
  std::optional<Entry> find(const Key& key) const;
  void insert(const Key& key, Entry entry);
  // What builds take for the problem from now on: false when there is no such entry.
  bool choose(const Key& key, const Timed& chosen);
  void merge(const TimingCache& other);  // entries and devices of this one win
  void note_device(Device device);
  std::vector<Device> devices_of(std::string_view target) const;  // by their keys; `target`: Target::name
  size_t size() const;
  std::vector<Key> keys() const;
  void clear();

  std::vector<std::byte> serialize() const;
  // An empty span gives an empty cache. Damaged bytes are refused with timing_cache_invalid.
  Result<> deserialize(std::span<const std::byte> bytes);

 private:
  mutable std::mutex mutex_;
  std::map<Key, Entry> entries_;
  std::map<std::string, Target> devices_;  // by timing key
};

}  // namespace lathe
