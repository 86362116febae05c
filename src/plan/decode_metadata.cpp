// SPDX-License-Identifier: Apache-2.0
#include "plan/fields.h"
#include "plan/limits.h"
#include "plan/metadata.h"

namespace lathe::plan {
namespace {

using flatbuffers::Offset;
using flatbuffers::Table;
using flatbuffers::voffset_t;

static_assert(fb::Launch::VT_STEP == kParentField && fb::Body::VT_STEP == kParentField &&
              fb::CodeImage::VT_CODE_MODULE == kParentField);

template <class... Args>
Error malformed(fmt::format_string<Args...> what, Args&&... args) {
  return {ErrorCode::plan_malformed,
          fmt::format("plan's metadata: {}; the file was damaged or made by hand",
                      fmt::format(what, std::forward<Args>(args)...)),
          {}};
}

// FlatBuffers lets many fields point at one string, so that a small file could ask for any amount of memory. The budget
// does not depend on the file's size: the same plan may be written in more or fewer bytes.
class Budget {
 public:
  bool charge(size_t count, size_t bytes_each) {
    if (count > left_ / bytes_each) return false;
    left_ -= count * bytes_each;
    return true;
  }

 private:
  size_t left_ = kMaxDecoded;
};

// The generated verifier has been through all tables, so that references and lists lie inside the buffer.
class Decoder {
 public:
  Decoder(const fb::Metadata& metadata, std::span<const std::byte> code)
      : metadata_(metadata), table_(reinterpret_cast<const Table*>(&metadata)), code_(code) {}

  Result<Plan> run() {
    Plan plan;
    parse_expressions();
    if (ok_) fields(*this, plan);
    if (ok_ && places_.end() != code_.size()) refuse("the code section holds more than the modules");
    if (!ok_) return fail(std::move(error_));
    return plan;
  }

  // As fields.h wants it.

  template <class T>
  void number(voffset_t field, T& to) {
    using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    to = static_cast<T>(table_->GetField<Stored>(field, 0));
  }
  template <class T>
  void choice(voffset_t field, T& to, T last, const char* what) {
    to = known(table_->GetField<uint8_t>(field, 0), last, what);
  }
  void dtype(voffset_t field, DType& to) {
    const auto dtype = dtype_from_number(table_->GetField<uint8_t>(field, 0));
    dtype ? void(to = *dtype) : refuse("unknown element type");
  }
  void text(voffset_t field, std::string& to) { copy(table_->GetPointer<const flatbuffers::String*>(field), to); }
  void expression(voffset_t field, Expr& to) { to = value(table_->GetField<uint32_t>(field, 0)); }
  void digest(voffset_t field, Digest& to) {
    const auto* from = table_->GetStruct<const fb::Digest*>(field);
    if (!from) return refuse("a digest is missing");
    std::memcpy(to.data(), from->bytes()->data(), to.size());
  }
  void shape(voffset_t field, Shape& to) {
    const auto* from = list_at<flatbuffers::Vector<uint32_t>>(field);
    if (!from || !resize(to, from->size(), kMaxRank)) return;
    for (flatbuffers::uoffset_t i = 0; ok_ && i < from->size(); ++i) to[i] = value(from->Get(i));
  }
  void grid(voffset_t field, std::array<Expr, 3>& to) {
    const auto* from = list_at<flatbuffers::Vector<uint32_t>>(field);
    if (!from || from->size() != to.size()) return refuse("a launch has no grid");
    for (flatbuffers::uoffset_t i = 0; i < to.size(); ++i) to[i] = value(from->Get(i));
  }
  template <class T>
  void numbers(voffset_t field, std::vector<T>& to) {
    const auto* from = list_at<flatbuffers::Vector<T>>(field);
    if (!from || !resize(to, from->size(), kMaxOperands)) return;
    for (flatbuffers::uoffset_t i = 0; i < from->size(); ++i) to[i] = from->Get(i);
  }
  void strings(voffset_t field, std::vector<std::string>& to) {
    const auto* from = list_at<flatbuffers::Vector<uint32_t>>(field);
    if (!from || !resize(to, from->size(), kMaxEntries)) return;
    for (flatbuffers::uoffset_t i = 0; ok_ && i < from->size(); ++i) {
      const uint32_t index = from->Get(i);
      if (!metadata_.strings() || index >= metadata_.strings()->size())
        return refuse("a string's index is out of range");
      copy(metadata_.strings()->Get(index), to[i]);
    }
  }
  template <class Packed, class T>
  void structs(voffset_t field, std::vector<T>& to, size_t limit) {
    const auto* from = list_at<flatbuffers::Vector<const Packed*>>(field);
    if (!from || !resize(to, from->size(), limit)) return;
    for (flatbuffers::uoffset_t i = 0; ok_ && i < from->size(); ++i) unpack(*this, *from->Get(i), to[i]);
  }
  template <class T>
  void tables(voffset_t field, std::vector<T>& to) {
    const auto* from = list_at<Tables>(field);
    if (!from || !resize(to, from->size(), kMaxEntries)) return;
    for (flatbuffers::uoffset_t i = 0; ok_ && i < from->size(); ++i) inside(from->Get(i), to[i]);
  }
  // The list is in the order of the parents, so that it has one form.
  template <class Parent, class List>
  void children(voffset_t field, std::vector<Parent>& parents, size_t limit, const char* orphan, const List& list_of) {
    const auto* from = list_at<Tables>(field);
    uint32_t last = 0;
    for (flatbuffers::uoffset_t i = 0; ok_ && from && i < from->size(); ++i) {
      const auto parent = from->Get(i)->template GetField<uint32_t>(kParentField, 0);
      if (parent < last || parent >= parents.size()) return refuse("{}", orphan);
      last = parent;
      auto* to = list_of(parents[parent]);
      if (!to) return refuse("{}", orphan);
      if (resize(*to, to->size() + 1, limit)) inside(from->Get(i), to->back());
    }
  }
  template <class T>
  void count(voffset_t field, std::vector<T>& to) {
    resize(to, table_->GetField<uint32_t>(field, 0), kMaxEntries);
  }
  void work(voffset_t kind, voffset_t field, Work& to) {
    const auto number = table_->GetField<uint8_t>(kind, 0);
    const auto* from = table_->GetPointer<const Table*>(field);
    if (number == 0 || number > std::variant_size_v<Work> || !from) return refuse("unknown kind of step");
    emplace(to, number - 1u, std::make_index_sequence<std::variant_size_v<Work>>());
    std::visit([&](auto& alternative) { inside(from, alternative); }, to);
  }
  void place(voffset_t offset, voffset_t size, std::span<const std::byte>& to) {
    const uint64_t at = table_->GetField<uint64_t>(offset, 0), bytes = table_->GetField<uint64_t>(size, 0);
    if (at > code_.size() || bytes > code_.size() - at) return refuse("a code module lies outside the code section");
    if (places_.add(bytes).offset != at) return refuse("a code module is not where it belongs");
    to = code_.subspan(at, bytes);
  }

  // Each use is charged by the expression's size, which bounds the work of whoever walks the plan.
  Expr value(uint32_t index) {
    if (index < number_count_) return metadata_.numbers()->Get(index);
    if (index - number_count_ >= expressions_.size()) return refuse("an expression's index is out of range"), Expr();
    const Expr& e = expressions_[index - number_count_];
    if (!budget_.charge(e.size(), 16)) refuse("it takes more memory than a plan may");
    return e;
  }
  template <class E>
  E known(uint8_t number, E last, const char* what) {
    if (number > static_cast<uint8_t>(last)) refuse("unknown {}", what);
    return static_cast<E>(number);
  }

 private:
  using Tables = flatbuffers::Vector<Offset<Table>>;

  // Only the first is kept.
  template <class... Args>
  void refuse(fmt::format_string<Args...> what, Args&&... args) {
    if (ok_) error_ = malformed(what, std::forward<Args>(args)...);
    ok_ = false;
  }

  template <class T>
  void inside(const Table* table, T& record) {
    const Table* const outer = std::exchange(table_, table);
    fields(*this, record);
    table_ = outer;
  }

  // The verifier checks the alignment of a vector's length, not that of its 8-byte elements. Empty vectors may lie
  // anywhere.
  template <class Vector>
  const Vector* list_at(voffset_t field) {
    const auto* list = table_->GetPointer<const Vector*>(field);
    if (list && list->size() > 0 && reinterpret_cast<uintptr_t>(list->Data()) % alignof(element_of<Vector>) != 0)
      return refuse("a list is not aligned"), nullptr;
    return list;
  }
  template <class Vector>
  using element_of = std::remove_pointer_t<typename Vector::value_type>;

  template <class T>
  bool resize(std::vector<T>& list, size_t count, size_t limit) {
    if (count > limit) return refuse("a list is too long"), false;
    if (!budget_.charge(count - std::min(count, list.size()), sizeof(T)))
      return refuse("it takes more memory than a plan may"), false;
    list.resize(count);
    return true;
  }

  void copy(const flatbuffers::String* from, std::string& to) {
    if (!from) return;
    if (from->size() > kMaxString) return refuse("a string is too long");
    if (!budget_.charge(from->size(), 1)) return refuse("it takes more memory than a plan may");
    to.assign(from->data(), from->size());
  }

  template <size_t... kIndices>
  static void emplace(Work& work, size_t index, std::index_sequence<kIndices...>) {
    ((index == kIndices ? void(work.emplace<kIndices>()) : void()), ...);
  }

  void parse_expressions() {
    if (const auto* numbers = list_at<flatbuffers::Vector<int64_t>>(fb::Metadata::VT_NUMBERS))
      number_count_ = numbers->size();
    const auto* texts = metadata_.expressions();
    if (!texts || !resize(expressions_, texts->size(), kMaxEntries)) return;
    for (flatbuffers::uoffset_t i = 0; i < texts->size(); ++i) {
      const std::string_view text(texts->Get(i)->data(), texts->Get(i)->size());
      if (!budget_.charge(text.size(), 1)) return refuse("it takes more memory than a plan may");
      auto parsed = parse_expr(text);
      if (!parsed) return refuse("{}", parsed.error().message);
      if (parsed->is_constant() || parsed->to_string() != text) return refuse("an expression is not in normal form");
      expressions_[i] = std::move(*parsed);
    }
  }

  const fb::Metadata& metadata_;
  const Table* table_;  // whose fields are being read
  Budget budget_;
  std::span<const std::byte> code_;
  CodePlaces places_;
  size_t number_count_ = 0;
  std::vector<Expr> expressions_;
  bool ok_ = true;
  Error error_;
};

}  // namespace

Result<Plan> decode_metadata(std::span<const std::byte> bytes, std::span<const std::byte> code) {
  if (bytes.size() > kMaxMetadata) return fail(malformed("it is too large"));
  if (bytes.size() < 16) return fail(malformed("it is too small"));
  LATHE_CHECK(reinterpret_cast<uintptr_t>(bytes.data()) % 8 == 0);
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), /*max_depth=*/8,
                                 /*max_tables=*/4 * kMaxEntries);
  if (!fb::VerifyMetadataBuffer(verifier)) return fail(malformed("it is not a valid FlatBuffer"));
  return Decoder(*fb::GetMetadata(bytes.data()), code).run();
}

}  // namespace lathe::plan
