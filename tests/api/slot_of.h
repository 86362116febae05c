// SPDX-License-Identifier: Apache-2.0
// Where virtual functions are in their classes' tables, beside where tables of slots (slots_*.def) want them.
#pragma once

#include <cstddef>
#include <cstring>

namespace nvinfer1 {

// Itanium C++ ABI: a pointer to a virtual member function holds its byte offset in the table, plus 1 on x86-64 (on
// arm64 the mark is in the second word).
template <class Pointer>
int slot_of(Pointer pointer) {
  std::ptrdiff_t words[2];
  static_assert(sizeof(pointer) == sizeof(words));
  std::memcpy(words, &pointer, sizeof(words));
  const bool is_virtual = ((words[0] | words[1]) & 1) != 0;
  return is_virtual ? static_cast<int>(words[0] / static_cast<std::ptrdiff_t>(sizeof(void*))) : -1;
}

struct Slot {
  const char* name;
  int expected;
  int actual;
};

#define SLOT(type, number, member) {#type "::" #member, number, slot_of(&type::member)},
#define SLOT_OF(type, number, member, result, parameters) \
  {#type "::" #member, number, slot_of(static_cast<result(type::*) parameters>(&type::member))},

}  // namespace nvinfer1
