// SPDX-License-Identifier: Apache-2.0
// The wire format of protocol buffers: enough to read a TensorProto and to change a model's inputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lathe::cli {

struct ProtoField {
  uint32_t number = 0;
  uint32_t wire = 0;       // 0 varint, 1 fixed 64, 2 bytes, 5 fixed 32
  uint64_t value = 0;      // of wire 0
  std::string_view bytes;  // of the others
  std::string_view whole;  // with its tag
};

// Goes over the fields of one message. Throws Failure when they are malformed.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : rest_(message) {}
  bool next(ProtoField& field);
  std::optional<uint64_t> varint();  // nothing at the end

 private:
  uint64_t take_varint();
  std::string_view take(uint64_t count);

  std::string_view rest_;
};

void append_varint(std::string& out, uint64_t value);
void append_bytes(std::string& out, uint32_t number, std::string_view bytes);  // a string, bytes or message field
void append_integer(std::string& out, uint32_t number, uint64_t value);

}  // namespace lathe::cli
