// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <unordered_map>

#include "base/divide.h"
#include "plan/expressions.h"
#include "plan/fields.h"
#include "plan/limits.h"
#include "plan/metadata.h"

namespace lathe::plan {
namespace {

using flatbuffers::Offset;
using flatbuffers::voffset_t;

// Gives each distinct value the number of its first use.
template <class Value, class Hash = std::hash<Value>>
class Numbering {
 public:
  uint32_t of(const Value& value) {
    const auto [it, is_new] = numbers_.try_emplace(value, static_cast<uint32_t>(values_.size()));
    if (is_new) values_.push_back(value);
    return it->second;
  }
  const std::vector<Value>& values() const { return values_; }

 private:
  std::unordered_map<Value, uint32_t, Hash> numbers_;
  std::vector<Value> values_;
};

struct HashExpr {
  size_t operator()(const Expr& e) const { return e.hash(); }
};

// FlatBuffers wants what a table refers to written before the table is begun: a table's fields are gathered first.
class Encoder {
 public:
  explicit Encoder(const Plan& plan) : plan_(plan) {}

  std::vector<std::byte> run() {
    // Numbers come before texts in the index space, so all must be known before the first index is written.
    for_each_expression(plan_, [this](const Expr& e, const ExprPlace&) {
      e.is_constant() ? numbers_.of(*e.as_constant()) : symbolic_.of(e);
    });
    using F = fb::Metadata;
    const auto root = table([&] {
      fields(*this, plan_);
      std::vector<std::string> expressions;
      expressions.reserve(symbolic_.values().size());
      for (const Expr& e : symbolic_.values()) expressions.push_back(e.to_string());
      refer(F::VT_STRINGS, texts(strings_.values()));
      refer(F::VT_EXPRESSIONS, texts(expressions));
      refer(F::VT_NUMBERS, builder_.CreateVector(numbers_.values()));
    });
    builder_.Finish(Offset<fb::Metadata>(root.o), fb::MetadataIdentifier());
    const auto* bytes = reinterpret_cast<const std::byte*>(builder_.GetBufferPointer());
    return {bytes, bytes + builder_.GetSize()};
  }

  // As fields.h wants it. What is empty or 0 is an absent field.

  template <class T>
  void number(voffset_t field, T value) {
    if constexpr (std::is_same_v<T, float>) {
      pending_->push_back({field, sizeof value, std::bit_cast<uint32_t>(value)});
    } else {
      pending_->push_back({field, sizeof value, static_cast<uint64_t>(value)});
    }
  }
  template <class T>
  void choice(voffset_t field, T value, T, const char*) {
    number(field, static_cast<uint8_t>(value));
  }
  void dtype(voffset_t field, DType value) { number(field, static_cast<uint8_t>(value)); }
  void text(voffset_t field, const std::string& value) {
    if (!value.empty()) refer(field, builder_.CreateSharedString(value));
  }
  void expression(voffset_t field, const Expr& value) { number(field, index(value)); }
  void digest(voffset_t field, const Digest& value) { pending_->push_back({field, kStruct, 0, &value}); }
  void shape(voffset_t field, std::span<const Expr> values) {
    std::vector<uint32_t> indices;
    indices.reserve(values.size());
    for (const Expr& e : values) indices.push_back(index(e));
    numbers(field, indices);
  }
  void grid(voffset_t field, std::span<const Expr, 3> values) { shape(field, values); }
  template <class T>
  void numbers(voffset_t field, const std::vector<T>& values) {
    if (!values.empty()) refer(field, builder_.CreateVector(values));
  }
  void strings(voffset_t field, const std::vector<std::string>& values) {
    std::vector<uint32_t> indices;
    indices.reserve(values.size());
    for (const std::string& value : values) indices.push_back(strings_.of(value));
    numbers(field, indices);
  }
  template <class Packed, class T>
  void structs(voffset_t field, const std::vector<T>& values, size_t) {
    if (values.empty()) return;
    std::vector<Packed> packed;
    packed.reserve(values.size());
    for (const T& value : values) packed.push_back(pack(*this, value));
    refer(field, builder_.CreateVectorOfStructs(packed));
  }
  template <class T>
  void tables(voffset_t field, const std::vector<T>& values) {
    std::vector<Offset<void>> offsets;
    offsets.reserve(values.size());
    for (const T& value : values) offsets.push_back(table([&] { fields(*this, value); }));
    if (!offsets.empty()) refer(field, builder_.CreateVector(offsets));
  }
  template <class Parent, class List>
  void children(voffset_t field, const std::vector<Parent>& parents, size_t, const char*, const List& list_of) {
    std::vector<Offset<void>> offsets;
    for (uint32_t i = 0; i < parents.size(); ++i) {
      const auto* list = list_of(parents[i]);
      if (!list) continue;
      for (const auto& child : *list)
        offsets.push_back(table([&] {
          number(kParentField, i);
          fields(*this, child);
        }));
    }
    if (!offsets.empty()) refer(field, builder_.CreateVector(offsets));
  }
  template <class T>
  void count(voffset_t field, const std::vector<T>& values) {
    number(field, static_cast<uint32_t>(values.size()));
  }
  void work(voffset_t kind, voffset_t field, const Work& work) {
    number(kind, static_cast<uint8_t>(work.index() + 1));
    refer(field, table([&] { std::visit([&](const auto& alternative) { fields(*this, alternative); }, work); }));
  }
  void place(voffset_t offset, voffset_t size, std::span<const std::byte> bytes) {
    const CodePlace at = code_.add(bytes.size());
    number(offset, at.offset);
    number(size, at.bytes);
  }
  uint32_t index(const Expr& e) {
    if (e.is_constant()) return numbers_.of(*e.as_constant());
    return static_cast<uint32_t>(numbers_.values().size()) + symbolic_.of(e);
  }

 private:
  static constexpr size_t kReference = 0, kStruct = SIZE_MAX;
  // A field of the table that is being gathered.
  struct Pending {
    voffset_t field;
    size_t size;  // of a number; kReference, kStruct
    uint64_t value;
    const Digest* digest = nullptr;
  };

  template <class T>
  void refer(voffset_t field, Offset<T> offset) {
    pending_->push_back({field, kReference, offset.o});
  }

  Offset<flatbuffers::Vector<Offset<flatbuffers::String>>> texts(const std::vector<std::string>& values) {
    std::vector<Offset<flatbuffers::String>> offsets;
    offsets.reserve(values.size());
    for (const std::string& value : values) offsets.push_back(builder_.CreateSharedString(value));
    return builder_.CreateVector(offsets);
  }

  template <class Gather>
  Offset<void> table(const Gather& gather) {
    std::vector<Pending> own;
    std::vector<Pending>* const outer = std::exchange(pending_, &own);
    gather();
    pending_ = outer;
    const auto start = builder_.StartTable();
    for (const Pending& each : own) add(each);
    return Offset<void>(builder_.EndTable(start));
  }

  void add(const Pending& each) {
    switch (each.size) {
      case kReference:
        return builder_.AddOffset(each.field, Offset<void>(static_cast<flatbuffers::uoffset_t>(each.value)));
      case kStruct: {
        const fb::Digest packed(flatbuffers::span<const uint8_t, sizeof(Digest)>(
            reinterpret_cast<const uint8_t*>(each.digest->data()), sizeof(Digest)));
        return builder_.AddStruct(each.field, &packed);
      }
      case 1:
        return builder_.AddElement<uint8_t>(each.field, static_cast<uint8_t>(each.value), 0);
      case 4:
        return builder_.AddElement<uint32_t>(each.field, static_cast<uint32_t>(each.value), 0);
      default:
        return builder_.AddElement<uint64_t>(each.field, each.value, 0);
    }
  }

  const Plan& plan_;
  flatbuffers::FlatBufferBuilder builder_;
  std::vector<Pending>* pending_ = nullptr;
  Numbering<int64_t> numbers_;
  Numbering<Expr, HashExpr> symbolic_;
  Numbering<std::string> strings_;
  CodePlaces code_;
};

// An upper bound of the section's size: FlatBuffers cannot hold 2 GiB, and asserts where we want an error.
class Estimate {
 public:
  explicit Estimate(const Plan& plan) { fields(*this, plan); }
  size_t bytes() const { return bytes_; }

  template <class T>
  void number(voffset_t, T) {
    bytes_ += kField;
  }
  template <class T>
  void choice(voffset_t, T, T, const char*) {
    bytes_ += kField;
  }
  void dtype(voffset_t, DType) { bytes_ += kField; }
  void text(voffset_t, const std::string& value) { bytes_ += kField + kList + value.size(); }
  void expression(voffset_t, const Expr& value) {
    bytes_ += kField;
    index(value);
  }
  void digest(voffset_t, const Digest& value) { bytes_ += kField + value.size(); }
  void shape(voffset_t, std::span<const Expr> values) {
    bytes_ += kField + kList;
    for (const Expr& e : values) bytes_ += 4, index(e);
  }
  void grid(voffset_t field, std::span<const Expr, 3> values) { shape(field, values); }
  template <class T>
  void numbers(voffset_t, const std::vector<T>& values) {
    bytes_ += kField + kList + values.size() * sizeof(T);
  }
  void strings(voffset_t, const std::vector<std::string>& values) {
    bytes_ += kField + kList;
    for (const std::string& value : values) bytes_ += kField + kList + value.size();
  }
  template <class Packed, class T>
  void structs(voffset_t, const std::vector<T>& values, size_t) {
    bytes_ += kField + kList;
    for (const T& value : values) bytes_ += sizeof(pack(*this, value));
  }
  template <class T>
  void tables(voffset_t, const std::vector<T>& values) {
    bytes_ += kField + kList;
    for (const T& value : values) bytes_ += kTable, fields(*this, value);
  }
  template <class Parent, class List>
  void children(voffset_t, const std::vector<Parent>& parents, size_t, const char*, const List& list_of) {
    bytes_ += kField + kList;
    for (const Parent& parent : parents)
      if (const auto* list = list_of(parent))
        for (const auto& child : *list) bytes_ += kTable + kField, fields(*this, child);
  }
  template <class T>
  void count(voffset_t, const std::vector<T>&) {
    bytes_ += kField;
  }
  void work(voffset_t, voffset_t, const Work& work) {
    bytes_ += 2 * kField + kTable;
    std::visit([&](const auto& alternative) { fields(*this, alternative); }, work);
  }
  void place(voffset_t, voffset_t, std::span<const std::byte>) { bytes_ += 2 * kField; }
  // The expression's text and its place in the pools.
  uint32_t index(const Expr& e) {
    bytes_ += size_t{32} * e.size();
    return 0;
  }

 private:
  // With padding: a field and its entry in the table's list of places; a list's length; a table's head and the
  // reference to it.
  static constexpr size_t kField = 16, kList = 16, kTable = 32;
  size_t bytes_ = 4096;
};

}  // namespace

CodePlace CodePlaces::add(uint64_t bytes) {
  const CodePlace place{round_up(end_, kCodeAlignment), bytes};
  end_ = place.offset + place.bytes;
  return place;
}

Result<std::vector<std::byte>> encode_metadata(const Plan& plan) {
  if (const size_t bytes = Estimate(plan).bytes(); bytes > kMaxMetadata)
    return fail(ErrorCode::invalid_argument, "the plan's metadata would take up to {} bytes; the limit is {}", bytes,
                kMaxMetadata);
  return Encoder(plan).run();
}

}  // namespace lathe::plan
