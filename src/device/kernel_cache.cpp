// SPDX-License-Identifier: Apache-2.0
#include "device/kernel_cache.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>

namespace lathe {
namespace {

static_assert(std::endian::native == std::endian::little, "the bytes of a cache are little-endian");

constexpr std::array<char, 8> kMagic = {'L', 'A', 'T', 'H', 'E', 'R', 'C', '1'};
constexpr uint32_t kFormat = 1;

// The bytes: Head, the environment, for each kernel by key an EntryHead and its code, the digest of all that.
struct Head {
  std::array<char, 8> magic = kMagic;
  uint32_t format = kFormat;
  uint32_t environment_bytes = 0;
  uint64_t kernels = 0;
};
struct EntryHead {
  Digest key{};
  uint64_t used = 0;
  uint64_t bytes = 0;
  Digest digest{};  // of the code
};

uint64_t hours_now() {
  using std::chrono::hours;
  return static_cast<uint64_t>(
      std::chrono::duration_cast<hours>(std::chrono::system_clock::now().time_since_epoch()).count());
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

Error damaged(std::string_view what) {
  return fail(ErrorCode::invalid_argument, "the runtime cache is damaged: {}", what).value();
}

// Takes bytes from the front; nothing is read beyond the end.
class Front {
 public:
  explicit Front(std::span<const std::byte> bytes) : rest_(bytes) {}
  Result<std::span<const std::byte>> take(uint64_t bytes) {
    if (bytes > rest_.size()) return fail(damaged("it ends too early"));
    const std::span<const std::byte> taken = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return taken;
  }
  template <class T>
  Result<T> take() {
    LATHE_ASSIGN(const std::span<const std::byte> bytes, take(sizeof(T)));
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }
  bool is_empty() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

// The first lines that differ.
Error of_other_environment(std::string_view theirs, std::string_view ours) {
  const auto line = [](std::string_view& text) {
    const std::string_view first = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), first.size() + 1));
    return first;
  };
  std::string_view their_line, our_line;
  do {
    their_line = line(theirs);
    our_line = line(ours);
  } while (their_line == our_line && !(theirs.empty() && ours.empty()));
  return fail(ErrorCode::invalid_argument,
              "the runtime cache is of another machine or version: it has '{}', here is '{}'", their_line, our_line)
      .value();
}

}  // namespace

struct KernelCache::Read {
  struct Kernel {
    Digest key;
    uint64_t used;
    std::span<const std::byte> code;
  };
  std::vector<Kernel> kernels;
};

Result<DeviceCode> KernelCache::get(const Digest& key, const Make& make) {
  std::shared_ptr<const std::vector<std::byte>> code = find(key);
  if (code) return DeviceCode{*code, code};
  const std::shared_ptr<std::mutex> maker = making(key);
  const std::lock_guard turn(*maker);
  code = find(key);
  if (code) return DeviceCode{*code, code};
  LATHE_ASSIGN(std::vector<std::byte> made, make());
  code = std::make_shared<const std::vector<std::byte>>(std::move(made));
  const std::lock_guard lock(mutex_);
  ++compiled_;
  ++changes_;
  insert(key, code, hours_now());
  make_room();
  return DeviceCode{*code, code};
}

std::optional<DeviceCode> KernelCache::find_code(const Digest& key) {
  const std::shared_ptr<const std::vector<std::byte>> code = find(key);
  return code ? std::optional(DeviceCode{*code, code}) : std::nullopt;
}

bool KernelCache::contains(const Digest& key) const {
  const std::lock_guard lock(mutex_);
  return entries_.contains(key);
}

void KernelCache::put(const Digest& key, const DeviceCode& code) {
  const std::lock_guard lock(mutex_);
  if (entries_.contains(key)) return;
  ++changes_;
  insert(key, std::make_shared<const std::vector<std::byte>>(code.bytes.begin(), code.bytes.end()), hours_now());
  make_room();
}

std::shared_ptr<const std::vector<std::byte>> KernelCache::find(const Digest& key) {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(key);
  if (entry == entries_.end()) return nullptr;
  ++hits_;
  entry->second.used = hours_now();
  entry->second.turn = ++turns_;
  return entry->second.code;
}

std::shared_ptr<std::mutex> KernelCache::making(const Digest& key) {
  const std::lock_guard lock(mutex_);
  std::erase_if(making_, [](const auto& entry) { return entry.second.expired(); });
  std::shared_ptr<std::mutex> maker = making_[key].lock();
  if (!maker) making_[key] = maker = std::make_shared<std::mutex>();
  return maker;
}

void KernelCache::insert(const Digest& key, std::shared_ptr<const std::vector<std::byte>> code, uint64_t used) {
  bytes_ += code->size();
  entries_[key] = {std::move(code), used, ++turns_};
}

void KernelCache::make_room() {
  while (bytes_ > limit_) {
    const auto oldest = std::ranges::min_element(
        entries_, {}, [](const auto& entry) { return std::pair(entry.second.used, entry.second.turn); });
    bytes_ -= oldest->second.code->size();
    entries_.erase(oldest);
    ++evicted_;
  }
}

std::vector<std::byte> KernelCache::serialize() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::byte> bytes;
  bytes.reserve(bytes_ + environment_.size() + entries_.size() * sizeof(EntryHead) + sizeof(Head) + sizeof(Digest));
  append(bytes, bytes_of(Head{kMagic, kFormat, static_cast<uint32_t>(environment_.size()), entries_.size()}));
  append(bytes, std::as_bytes(std::span(environment_)));
  for (const auto& [key, entry] : entries_) {
    append(bytes, bytes_of(EntryHead{key, entry.used, entry.code->size(), digest_of(*entry.code)}));
    append(bytes, *entry.code);
  }
  append(bytes, digest_of(bytes));
  return bytes;
}

Result<KernelCache::Read> KernelCache::read(std::span<const std::byte> bytes) const {
  if (bytes.size() < sizeof(Digest)) return fail(damaged("it ends too early"));
  const std::span<const std::byte> content = bytes.first(bytes.size() - sizeof(Digest));
  Front front(content);
  LATHE_ASSIGN(const Head head, front.take<Head>());
  if (head.magic != kMagic) return fail(damaged("it does not begin as one"));
  if (head.format != kFormat)
    return fail(ErrorCode::invalid_argument, "the runtime cache is of format {}, and this version reads {}",
                head.format, kFormat);
  if (!std::ranges::equal(bytes.last(sizeof(Digest)), digest_of(content))) return fail(damaged("its digest is wrong"));
  LATHE_ASSIGN(const std::span<const std::byte> text, front.take(head.environment_bytes));
  const std::string_view environment(reinterpret_cast<const char*>(text.data()), text.size());
  if (environment != environment_) return fail(of_other_environment(environment, environment_));
  Read read;
  while (!front.is_empty()) {
    LATHE_ASSIGN(const EntryHead entry, front.take<EntryHead>());
    LATHE_ASSIGN(const std::span<const std::byte> code, front.take(entry.bytes));
    if (digest_of(code) != entry.digest) return fail(damaged("the digest of a kernel is wrong"));
    read.kernels.push_back({entry.key, entry.used, code});
  }
  if (read.kernels.size() != head.kernels) return fail(damaged("it has another number of kernels than it says"));
  return read;
}

Result<> KernelCache::merge(std::span<const std::byte> bytes) {
  LATHE_ASSIGN(const Read read, this->read(bytes));
  const std::lock_guard lock(mutex_);
  for (const Read::Kernel& kernel : read.kernels) {
    const auto known = entries_.find(kernel.key);
    if (known == entries_.end()) {
      insert(kernel.key, std::make_shared<const std::vector<std::byte>>(kernel.code.begin(), kernel.code.end()),
             kernel.used);
    } else {
      known->second.used = std::max(known->second.used, kernel.used);
      known->second.turn = ++turns_;
    }
  }
  make_room();
  return {};
}

void KernelCache::reset() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  bytes_ = 0;
}

void KernelCache::set_limit(size_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes;
  make_room();
}

KernelCache::Counts KernelCache::counts() const {
  const std::lock_guard lock(mutex_);
  return {entries_.size(), bytes_, limit_, hits_, compiled_, evicted_, changes_};
}

}  // namespace lathe
