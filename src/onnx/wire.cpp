// SPDX-License-Identifier: Apache-2.0
#include "onnx/wire.h"

#include <cstring>

namespace lathe::onnx {

void WireCursor::fault(const char* what) {
  if (!state_.error)
    state_.error =
        Error{ErrorCode::model_malformed,
              fmt::format("byte {}: {} in field {} of {}; the file is damaged, incomplete or not an ONNX model",
                          position_ - state_.base, what, field_, message_),
              {}};
  position_ = end_;
}

bool WireCursor::charge(uint64_t bytes) {
  if (state_.error) return false;
  if (bytes > state_.budget) {
    state_.error =
        Error{ErrorCode::model_limit,
              fmt::format("byte {}: the model's structure would take far more memory than its file, noticed in "
                          "field {} of {}; the file is damaged or hostile",
                          position_ - state_.base, field_, message_),
              {}};
    position_ = end_;
    return false;
  }
  state_.budget -= bytes;
  return true;
}

uint64_t WireCursor::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (position_ == end_) return fault("end of message inside a number"), 0;
    const auto byte = static_cast<uint8_t>(*position_++);
    if (shift == 63 && byte > 1) return fault("number of more than 64 bits"), 0;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return fault("number of more than 64 bits"), 0;
}

template <class T>
T WireCursor::fixed() {
  T value{};
  if (static_cast<size_t>(end_ - position_) < sizeof(T)) return fault("end of message inside a number"), value;
  std::memcpy(&value, position_, sizeof(T));
  position_ += sizeof(T);
  return value;
}

bool WireCursor::next() {
  if (state_.error || position_ == end_) return false;
  field_begin_ = position_;
  const uint64_t tag = varint();
  if (state_.error) return false;
  if (tag >> 3 == 0 || tag >> 32) return fault("invalid field number"), false;
  field_ = static_cast<uint32_t>(tag >> 3);
  type_ = static_cast<uint32_t>(tag & 7);
  if (type_ != kVarint && type_ != kFixed64 && type_ != kBytes && type_ != kFixed32)
    return fault("unknown wire type"), false;
  return true;
}

bool WireCursor::expect(Type type) {
  if (state_.error) return false;
  if (type_ != type) return fault("wrong wire type"), false;
  return true;
}

int64_t WireCursor::integer() { return expect(kVarint) ? static_cast<int64_t>(varint()) : 0; }
float WireCursor::real32() { return expect(kFixed32) ? fixed<float>() : 0; }
double WireCursor::real64() { return expect(kFixed64) ? fixed<double>() : 0; }

std::string_view WireCursor::bytes() {
  if (!expect(kBytes)) return {};
  const uint64_t length = varint();
  if (state_.error) return {};
  if (length > static_cast<uint64_t>(end_ - position_))
    return fault("length beyond the end of the message"), std::string_view();
  const std::string_view view(position_, static_cast<size_t>(length));
  position_ += length;
  return view;
}

WireCursor WireCursor::message(const char* name) {
  WireCursor inner(state_, bytes(), name);
  inner.depth_ = depth_ + 1;
  if (inner.depth_ > state_.max_depth && !state_.error)
    state_.error =
        Error{ErrorCode::model_limit,
              fmt::format("byte {}: messages are nested more than {} deep", position_ - state_.base, state_.max_depth),
              {}};
  return inner;
}

void WireCursor::skip() {
  switch (type_) {
    case kVarint:
      varint();
      break;
    case kFixed64:
      fixed<uint64_t>();
      break;
    case kFixed32:
      fixed<uint32_t>();
      break;
    default:
      bytes();
      break;
  }
}

std::string_view WireCursor::whole() {
  skip();
  return {field_begin_, static_cast<size_t>(position_ - field_begin_)};
}

}  // namespace lathe::onnx
