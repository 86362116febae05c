// SPDX-License-Identifier: Apache-2.0
// Tables of virtual functions of objects that another library has made.
//
// Such an object is handed out as it is, so that its own library knows it again, but with copies of its tables. In a
// copy, what makes further objects and what ends one are functions of ours, and functions that its version does not
// have yet refuse. By the Itanium C++ ABI, which programs and libraries share: a table is an array of functions, with
// the type in front of it, and an object begins with the address of its table.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace lathe::api::guest {

class Guest;

// The place of a virtual member function in its table.
template <class Method>
size_t slot_of(Method method) {
  std::ptrdiff_t words[2];  // the first holds the offset in bytes; plus 1 on x86-64, as the mark of virtual functions
  static_assert(sizeof method == sizeof words);
  std::memcpy(words, &method, sizeof words);
  return static_cast<size_t>(words[0]) / sizeof(void*);
}

// How many functions the table of class V has here.
template <class V>
size_t slots_of() {
  struct Behind : V {
    virtual void behind() noexcept;
  };
  return slot_of(&Behind::behind);
}

inline constexpr size_t kDeleteSlot = 1;  // in tables of classes whose first virtual function is the destructor

// `delete`, of an object whose class has the destructor in front.
inline void delete_by_table(void* object) noexcept {
  (*static_cast<void (*const* const*)(void*)>(object))[kDeleteSlot](object);
}

// What stands in a copy instead of the other library's function, which need not exist.
struct Patch {
  size_t slot;
  void* function;
};

class Table {
 public:
  using Words = void* const*;

  // A copy of the first `slots` functions at `original`.
  Table(Guest& guest, Words original, size_t slots, std::span<const Patch> patches)
      : guest_(guest), original_(original) {
    words_ = {this, original[-2], original[-1]};
    for (size_t slot = 0; slot < slots; ++slot) {
      void* function = nullptr;
      for (const Patch& patch : patches)
        if (patch.slot == slot) function = patch.function;
      words_.push_back(function ? function : original[slot]);
    }
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // Of an object that has a copy.
  static const Table& of(const void* object) {
    const Words words = *static_cast<const Words*>(object);
    return *static_cast<const Table*>(words[-kPrefix]);
  }
  static Words words_of(const void* object) { return *static_cast<const Words*>(object); }
  void give_to(void* object) const { *static_cast<Words*>(object) = words_.data() + kPrefix; }

  Guest& guest() const { return guest_; }
  template <class Function>
  Function original(size_t slot) const {
    return reinterpret_cast<Function>(original_[slot]);
  }

 private:
  static constexpr std::ptrdiff_t kPrefix = 3;  // this table, and what belongs to the original: offset and type

  Guest& guest_;
  Words original_;
  std::vector<void*> words_;
};

}  // namespace lathe::api::guest
