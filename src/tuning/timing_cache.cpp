// SPDX-License-Identifier: Apache-2.0
#include "tuning/timing_cache.h"

#include <cstring>

#include "base/hash.h"

namespace lathe {
namespace {

// File: magic, entry count, entries {high, low, chosen, count of candidates, candidates}, digest; what is timed is
// {microseconds, tactic length + text, config length + text}. Version 1 had no candidates, and no count of them.
constexpr char kMagic[8] = {'L', 'A', 'T', 'H', 'E', 'T', 'C', '2'};
constexpr char kMagic1[8] = {'L', 'A', 'T', 'H', 'E', 'T', 'C', '1'};
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
}

std::vector<std::byte> TimingCache::serialize() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::byte> out;
  put(out, kMagic, sizeof kMagic);
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
  const Digest digest = digest_of(out);
  put(out, digest.data(), digest.size());
  return out;
}

Result<> TimingCache::deserialize(std::span<const std::byte> bytes) {
  const auto invalid = [](std::string_view why) {
    return fail(ErrorCode::timing_cache_invalid, "timing cache {}: delete it, and the next build makes a new one", why);
  };
  std::map<Key, Entry> entries;
  if (!bytes.empty()) {
    const bool is_first = bytes.size() >= sizeof kMagic1 && std::memcmp(bytes.data(), kMagic1, sizeof kMagic1) == 0;
    if (bytes.size() < sizeof kMagic + sizeof(uint64_t) + sizeof(Digest) ||
        (std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0 && !is_first))
      return invalid("is not a Lathe timing cache");
    const std::span<const std::byte> body = bytes.first(bytes.size() - sizeof(Digest));
    const Digest digest = digest_of(body);
    if (std::memcmp(digest.data(), bytes.data() + body.size(), sizeof digest) != 0) return invalid("is damaged");
    Reader reader(body.subspan(sizeof kMagic));
    uint64_t count = 0;
    reader.get(count);
    for (uint64_t i = 0; i < count; ++i) {
      Key key;
      Entry entry;
      if (!reader.get(key.high) || !reader.get(key.low) || !reader.get_timed(entry.chosen) ||
          (!is_first && !reader.get_candidates(entry.candidates)))
        return invalid("is truncated");
      entries[key] = std::move(entry);
    }
    if (!reader.done()) return invalid("has trailing bytes");
  }
  const std::lock_guard lock(mutex_);
  entries_ = std::move(entries);
  return {};
}

}  // namespace lathe
