// SPDX-License-Identifier: Apache-2.0
// Protocol buffer wire format, read in place. Used instead of protozero::pbf_reader because that keeps lengths in 32
// bits (a graph of more than 4 GiB would be cut silently) and cannot say where in the file a fault lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"

namespace lathe::onnx {

// What all cursors over one buffer share: the first fault, and the bytes of memory that may still be claimed. Ordinary
// models need a few bytes per byte of file; two bytes of a hostile one can stand for an object of several hundred.
struct WireState {
  explicit WireState(std::string_view buffer, int depth)
      : base(buffer.data()), max_depth(depth), budget((64u << 20) + 16 * buffer.size()) {}
  const char* base;
  int max_depth;
  uint64_t budget;
  std::optional<Error> error;
};

// Walks the fields of one message. After a fault next() is false everywhere and values read are zero or empty, so
// parsing code needs no checks of its own; the fault is in the state.
class WireCursor {
 public:
  WireCursor(WireState& state, std::string_view bytes, const char* message)
      : state_(state), position_(bytes.data()), end_(bytes.data() + bytes.size()), message_(message) {}

  bool next();
  uint32_t field() const { return field_; }
  void skip();
  // The current field with its tag, which is thereby skipped.
  std::string_view whole();
  bool failed() const { return state_.error.has_value(); }

  int64_t integer();
  int32_t integer32() { return static_cast<int32_t>(integer()); }
  float real32();
  double real64();
  std::string_view bytes();
  // The message in the current field; nesting is limited.
  WireCursor message(const char* name);

  // Calls add(value) for each value of a repeated field, packed or not.
  template <class F>
  void integers(F&& add);
  template <class F>
  void reals32(F&& add);
  template <class F>
  void reals64(F&& add);
  // Takes memory from the budget; false (and a fault) when it is spent.
  bool charge(uint64_t bytes);

 private:
  enum Type : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  template <class F>
  void repeated(Type type, F&& read);
  uint64_t varint();
  template <class T>
  T fixed();
  bool expect(Type type);
  void fault(const char* what);

  WireState& state_;
  const char* position_;
  const char* field_begin_ = nullptr;
  const char* end_;
  const char* message_;  // name of the message being read
  uint32_t field_ = 0;
  uint32_t type_ = 0;
  int depth_ = 0;
};

template <class F>
void WireCursor::integers(F&& add) {
  repeated(kVarint, [&](WireCursor& cursor) { add(cursor.integer()); });
}

template <class F>
void WireCursor::reals32(F&& add) {
  repeated(kFixed32, [&](WireCursor& cursor) { add(cursor.real32()); });
}

template <class F>
void WireCursor::reals64(F&& add) {
  repeated(kFixed64, [&](WireCursor& cursor) { add(cursor.real64()); });
}

template <class F>
void WireCursor::repeated(Type type, F&& read) {
  if (type_ != kBytes) {
    if (charge(8)) read(*this);
    return;
  }
  WireCursor packed(state_, bytes(), message_);
  packed.field_ = field_;
  packed.type_ = type;
  while (packed.position_ != packed.end_ && !state_.error && charge(8)) read(packed);
}

}  // namespace lathe::onnx
