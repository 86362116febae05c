// SPDX-License-Identifier: Apache-2.0
#include "protobuf.h"

#include "failure.h"

namespace lathe::cli {

uint64_t ProtoReader::take_varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) throw Failure("the message ends in the middle of a number");
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return value;
  }
  throw Failure("the message holds a number of more than 64 bits");
}

std::string_view ProtoReader::take(uint64_t count) {
  if (count > rest_.size()) throw Failure("the message is cut short");
  const std::string_view taken = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return taken;
}

std::optional<uint64_t> ProtoReader::varint() {
  if (rest_.empty()) return std::nullopt;
  return take_varint();
}

bool ProtoReader::next(ProtoField& field) {
  if (rest_.empty()) return false;
  const std::string_view start = rest_;
  const uint64_t tag = take_varint();
  field = {static_cast<uint32_t>(tag >> 3), static_cast<uint32_t>(tag & 7), 0, {}, {}};
  switch (field.wire) {
    case 0:
      field.value = take_varint();
      break;
    case 1:
      field.bytes = take(8);
      break;
    case 2:
      field.bytes = take(take_varint());
      break;
    case 5:
      field.bytes = take(4);
      break;
    default:
      throw Failure("the message holds a field of unknown kind; is this a protocol buffer?");
  }
  field.whole = start.substr(0, start.size() - rest_.size());
  return true;
}

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 128; value >>= 7) out.push_back(static_cast<char>(value | 128));
  out.push_back(static_cast<char>(value));
}

void append_bytes(std::string& out, uint32_t number, std::string_view bytes) {
  append_varint(out, number << 3 | 2);
  append_varint(out, bytes.size());
  out += bytes;
}

void append_integer(std::string& out, uint32_t number, uint64_t value) {
  append_varint(out, number << 3);
  append_varint(out, value);
}

}  // namespace lathe::cli
