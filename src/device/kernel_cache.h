// SPDX-License-Identifier: Apache-2.0
// Device code that was compiled at run time, by what it was made of, for devices of one environment. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "device/device_code.h"

namespace lathe {

class KernelCache {
 public:
  static constexpr size_t kDefaultLimit = size_t{256} << 20;

  // `environment`: what the code depends on besides its key, lines of "name=value". Code of another is not taken up.
  explicit KernelCache(std::string environment, size_t limit = kDefaultLimit)
      : environment_(std::move(environment)), limit_(limit) {}

  // The code of `key`, or else what `make` gives, which is kept. Of threads that want the same code, one makes it and
  // the others wait; nobody else does.
  using Make = std::function<Result<std::vector<std::byte>>()>;
  Result<DeviceCode> get(const Digest& key, const Make& make);
  // None where it is not there; others may be making it.
  std::optional<DeviceCode> find_code(const Digest& key);
  bool contains(const Digest& key) const;  // which is no use of it
  // Keeps code that was made without the cache.
  void put(const Digest& key, const DeviceCode& code);

  // All code, by key. Equal content gives equal bytes.
  std::vector<std::byte> serialize() const;
  // Adds the code of serialize(); what is there stays. Fails with invalid_argument, and changes nothing, where the
  // bytes are damaged or of another environment.
  Result<> merge(std::span<const std::byte> bytes);
  void reset();

  // Code beyond so many bytes goes, that not used for longest first. Who runs it keeps it.
  void set_limit(size_t bytes);

  struct Counts {
    size_t kernels = 0, bytes = 0, limit = 0;    // now
    size_t hits = 0, compiled = 0, evicted = 0;  // so far
    uint64_t changes = 0;                        // grows with each kernel that get() or put() adds
  };
  Counts counts() const;
  const std::string& environment() const { return environment_; }

 private:
  struct Entry {
    std::shared_ptr<const std::vector<std::byte>> code;
    uint64_t used = 0;  // hours since 1970, so that files of equal content are equal
    uint64_t turn = 0;  // of the last use, in this process
  };
  struct Read;
  Result<Read> read(std::span<const std::byte> bytes) const;
  std::shared_ptr<const std::vector<std::byte>> find(const Digest& key);
  void insert(const Digest& key, std::shared_ptr<const std::vector<std::byte>> code, uint64_t used);
  void make_room();
  std::shared_ptr<std::mutex> making(const Digest& key);

  const std::string environment_;
  mutable std::mutex mutex_;
  std::map<Digest, Entry> entries_;
  std::map<Digest, std::weak_ptr<std::mutex>> making_;  // held by who makes the code
  size_t bytes_ = 0, limit_;
  uint64_t turns_ = 0;
  size_t hits_ = 0, compiled_ = 0, evicted_ = 0;
  uint64_t changes_ = 0;
};

}  // namespace lathe
