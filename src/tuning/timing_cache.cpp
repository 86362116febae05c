// SPDX-License-Identifier: Apache-2.0
#include "tuning/timing_cache.h"

#include <cstring>
#include <type_traits>

#include "base/hash.h"

namespace lathe {
namespace {

// File: magic, whose last character is the version, entry count, entries {high, low, chosen, count of candidates,
// candidates}, device count, devices {timing key, name of target, its numbers as doubles}, digest; what is timed is
// {microseconds, tactic length + text, config length + text}, and texts are {length, characters}. Version 2 had no
// devices, version 1 no candidates either, and no counts of them.
constexpr std::string_view kMagic = "LATHETC";
constexpr char kVersion = '3';
constexpr uint32_t kMaxText = 4096;

void put(std::vector<std::byte>& out, const void* data, size_t size) {
  const auto* bytes = static_cast<const std::byte*>(data);
  out.insert(out.end(), bytes, bytes + size);
}

void put_text(std::vector<std::byte>& out, std::string_view text) {
  const auto size = static_cast<uint32_t>(text.size());
  put(out, &size, sizeof size);
  put(out, text.data(), text.size());
}

void put_timed(std::vector<std::byte>& out, const TimingCache::Timed& timed) {
  put(out, &timed.microseconds, sizeof timed.microseconds);
  put_text(out, timed.tactic);
  put_text(out, timed.config);
}

template <class T, class See>
void for_each_number(T& target, See see) {
  auto& limits = target.limits;
  auto& products = target.products;
  const auto see_all = [&](auto&... numbers) { (see(numbers), ...); };
  see_all(target.cores, target.least_cores, limits.shared_bytes, limits.block_threads, limits.core_threads,
          limits.core_registers, limits.core_shared_bytes, limits.cluster, limits.warpgroups, products.f32,
          products.f64, products.matrix, products.warpgroup_matrix, target.clock_mhz, target.memory_rate,
          target.cache_bytes, target.cache_clock_bytes, target.shared_clock_bytes, target.launch_us);
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  bool get(T& value) {
    if (bytes_.size() < sizeof(T)) return false;
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
    return true;
  }
  bool get_text(std::string& text) {
    uint32_t size = 0;
    if (!get(size) || size > kMaxText || size > bytes_.size()) return false;
    text.assign(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
    return true;
  }
  bool get_timed(TimingCache::Timed& timed) {
    return get(timed.microseconds) && get_text(timed.tactic) && get_text(timed.config);
  }
  // One by one, for the count is not to be trusted with memory.
  bool get_candidates(std::vector<TimingCache::Timed>& candidates) {
    uint32_t count = 0;
    if (!get(count)) return false;
    for (uint32_t i = 0; i < count; ++i)
      if (!get_timed(candidates.emplace_back())) return false;
    return true;
  }
  // No number of a device is negative, or as large as these.
  bool get_target(Target& target) {
    constexpr double kLargest = int64_t{1} << 50;
    bool is_right = get_text(target.name);
    for_each_number(target, [&]<class T>(T& number) {
      double value = -1;
      is_right = is_right && get(value) && value >= 0 && value <= kLargest;
      if (is_right && std::is_same_v<T, int>) is_right = value <= INT32_MAX;
      if (is_right) number = static_cast<T>(value);
    });
    return is_right && target.cores > 0 && target.least_cores > 0 && target.clock_mhz > 0 && target.memory_rate > 0;
  }
  bool done() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

TimingCache::Key TimingCache::key_of(std::string_view problem, std::string_view device) {
  return {Hasher().add(problem).add(device).value(), Hasher().add(device).add(problem).value()};
}

std::optional<TimingCache::Entry> TimingCache::find(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(key);
  return it == entries_.end() ? std::nullopt : std::optional(it->second);
}

void TimingCache::insert(const Key& key, Entry entry) {
  const std::lock_guard lock(mutex_);
  entries_[key] = std::move(entry);
}

bool TimingCache::choose(const Key& key, const Timed& chosen) {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(key);
  if (it == entries_.end()) return false;
  it->second.chosen = chosen;
  return true;
}

void TimingCache::merge(const TimingCache& other) {
  const std::scoped_lock lock(mutex_, other.mutex_);
  entries_.insert(other.entries_.begin(), other.entries_.end());
  devices_.insert(other.devices_.begin(), other.devices_.end());
}

void TimingCache::note_device(Device device) {
  const std::lock_guard lock(mutex_);
  devices_[std::move(device.timing_key)] = std::move(device.target);
}

std::vector<TimingCache::Device> TimingCache::devices_of(std::string_view target) const {
  const std::lock_guard lock(mutex_);
  std::vector<Device> found;
  for (const auto& [key, device] : devices_)
    if (device.name == target) found.push_back({key, device});
  return found;
}

size_t TimingCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::vector<TimingCache::Key> TimingCache::keys() const {
  const std::lock_guard lock(mutex_);
  std::vector<Key> keys;
  for (const auto& [key, entry] : entries_) keys.push_back(key);
  return keys;
}

void TimingCache::clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  devices_.clear();
}

std::vector<std::byte> TimingCache::serialize() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::byte> out;
  put(out, kMagic.data(), kMagic.size());
  put(out, &kVersion, sizeof kVersion);
  const uint64_t count = entries_.size();
  put(out, &count, sizeof count);
  for (const auto& [key, entry] : entries_) {
    put(out, &key.high, sizeof key.high);
    put(out, &key.low, sizeof key.low);
    put_timed(out, entry.chosen);
    const auto candidates = static_cast<uint32_t>(entry.candidates.size());
    put(out, &candidates, sizeof candidates);
    for (const Timed& candidate : entry.candidates) put_timed(out, candidate);
  }
  const uint64_t devices = devices_.size();
  put(out, &devices, sizeof devices);
  for (const auto& [key, target] : devices_) {
    put_text(out, key);
    put_text(out, target.name);
    for_each_number(target, [&](const auto& number) {
      const auto value = static_cast<double>(number);
      put(out, &value, sizeof value);
    });
  }
  const Digest digest = digest_of(out);
  put(out, digest.data(), digest.size());
  return out;
}

Result<> TimingCache::deserialize(std::span<const std::byte> bytes) {
  const auto invalid = [](std::string_view why) {
    return fail(ErrorCode::timing_cache_invalid, "timing cache {}: delete it, and the next build makes a new one", why);
  };
  TimingCache read;
  if (!bytes.empty()) {
    constexpr size_t kHead = kMagic.size() + 1;
    const char version =
        bytes.size() < kHead + sizeof(uint64_t) + sizeof(Digest) ? '0' : static_cast<char>(bytes[kHead - 1]);
    if (version < '1' || version > kVersion || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
      return invalid("is not a Lathe timing cache");
    const std::span<const std::byte> body = bytes.first(bytes.size() - sizeof(Digest));
    const Digest digest = digest_of(body);
    if (std::memcmp(digest.data(), bytes.data() + body.size(), sizeof digest) != 0) return invalid("is damaged");
    Reader reader(body.subspan(kHead));
    uint64_t count = 0;
    reader.get(count);
    for (uint64_t i = 0; i < count; ++i) {
      Key key;
      Entry entry;
      if (!reader.get(key.high) || !reader.get(key.low) || !reader.get_timed(entry.chosen) ||
          (version > '1' && !reader.get_candidates(entry.candidates)))
        return invalid("is truncated");
      read.entries_[key] = std::move(entry);
    }
    count = 0;
    if (version > '2' && !reader.get(count)) return invalid("is truncated");
    for (uint64_t i = 0; i < count; ++i) {
      Device device;
      if (!reader.get_text(device.timing_key) || !reader.get_target(device.target))
        return invalid("describes no device");
      read.devices_[device.timing_key] = device.target;
    }
    if (!reader.done()) return invalid("has trailing bytes");
  }
  const std::lock_guard lock(mutex_);
  entries_ = std::move(read.entries_);
  devices_ = std::move(read.devices_);
  return {};
}

}  // namespace lathe
