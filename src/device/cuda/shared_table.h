// SPDX-License-Identifier: Apache-2.0
// Objects that are made once and shared by all who ask for the same key, while anybody holds them.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "base/result.h"

namespace lathe::cuda {

template <class Key, class Value>
class SharedTable {
 public:
  // The object of `key`; `make` gives a Result<std::shared_ptr<Value>> where there is none. Only threads that ask for
  // the same key wait for each other.
  template <class Make>
  Result<std::shared_ptr<Value>> get(const Key& key, Make&& make) {
    const std::shared_ptr<Slot> slot = slot_of(key);
    const std::lock_guard lock(slot->mutex);
    if (std::shared_ptr<Value> live = slot->value.lock()) return live;
    LATHE_ASSIGN(std::shared_ptr<Value> made, make());
    slot->value = made;
    return made;
  }

 private:
  struct Slot {
    std::mutex mutex;
    std::weak_ptr<Value> value;
  };

  std::shared_ptr<Slot> slot_of(const Key& key) {
    const std::lock_guard lock(mutex_);
    std::erase_if(slots_, [](const auto& entry) {
      const std::unique_lock slot(entry.second->mutex, std::try_to_lock);
      return slot && entry.second.use_count() == 1 && entry.second->value.expired();
    });
    std::shared_ptr<Slot>& slot = slots_[key];
    if (!slot) slot = std::make_shared<Slot>();
    return slot;
  }

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Slot>> slots_;
};

}  // namespace lathe::cuda
