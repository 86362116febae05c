// SPDX-License-Identifier: Apache-2.0
#include "plan/limits.h"
#include "plan/metadata.h"
#include "plan_generated.h"

namespace lathe::plan {
namespace {

tl::unexpected<Error> malformed(std::string_view what) {
  return fail(ErrorCode::plan_malformed, "plan's metadata: {}; the file was damaged or made by hand", what);
}

// The verifier checks the alignment of a vector's length, not that of its 8-byte elements. Empty vectors may lie
// anywhere.
template <class T, class Vector>
bool is_aligned(const Vector* vector) {
  return vector->size() == 0 || reinterpret_cast<uintptr_t>(vector->Data()) % alignof(T) == 0;
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

class Decoder {
 public:
  Decoder(const fb::Metadata& metadata, std::span<const std::byte> code) : metadata_(metadata), code_(code) {}

  Result<Plan> run() {
    plan_.threads = metadata_.threads();
    plan_.dynamic_slots = metadata_.dynamic_slots();
    LATHE_TRY(text(metadata_.name(), plan_.name));
    LATHE_TRY(parse_expressions());
    LATHE_TRY(each(metadata_.symbols(), plan_.symbols, [&](const fb::Symbol& f, Symbol& s) { return symbol(f, s); }));
    LATHE_TRY(
        each(metadata_.profiles(), plan_.profiles, [&](const fb::Profile& f, Profile& p) { return profile(f, p); }));
    LATHE_TRY(each(metadata_.constraints(), plan_.constraints,
                   [&](const fb::Constraint& f, Constraint& c) { return constraint(f, c); }));
    LATHE_TRY(each(metadata_.tensors(), plan_.tensors, [&](const fb::Tensor& f, Tensor& t) { return tensor(f, t); }));
    LATHE_TRY(each(metadata_.buffers(), plan_.buffers, [&](const fb::Buffer& f, Buffer& b) -> Result<> {
      b.first = f.first();
      b.last = f.last();
      return expression(f.bytes(), b.bytes);
    }));
    LATHE_TRY(each(metadata_.constants(), plan_.constants, [](const fb::Constant& f, Constant& c) -> Result<> {
      c = {f.offset(), f.bytes()};
      return {};
    }));
    LATHE_TRY(
        each(metadata_.bindings(), plan_.bindings, [&](const fb::Binding& f, Binding& b) { return binding(f, b); }));
    LATHE_TRY(each(metadata_.steps(), plan_.steps, [&](const fb::Step& f, Step& s) { return step(f, s); }));
    LATHE_TRY(launches());
    LATHE_TRY(codes());
    LATHE_TRY(each(metadata_.user(), plan_.metadata, [&](const fb::KeyValue& f, auto& pair) -> Result<> {
      LATHE_TRY(text(f.key(), pair.first));
      return text(f.value(), pair.second);
    }));
    return std::move(plan_);
  }

 private:
  template <class T>
  static constexpr bool holds_wide_structs(const flatbuffers::Vector<const T*>*) {
    return alignof(T) == 8;
  }
  template <class T>
  static constexpr bool holds_wide_structs(const flatbuffers::Vector<flatbuffers::Offset<T>>*) {
    return false;
  }

  template <class Vector, class T, class Read>
  Result<> each(const Vector* from, std::vector<T>& to, const Read& read) {
    if (!from) return {};
    if (!is_aligned<uint64_t>(from) && holds_wide_structs(from)) return malformed("a list is not aligned");
    LATHE_TRY(resize(to, from->size(), kMaxEntries));
    for (flatbuffers::uoffset_t i = 0; i < from->size(); ++i) LATHE_TRY(read(*from->Get(i), to[i]));
    return {};
  }

  template <class T>
  Result<> resize(std::vector<T>& list, size_t count, size_t limit) {
    if (count > limit) return malformed("a list is too long");
    if (!budget_.charge(count, sizeof(T))) return malformed("it takes more memory than a plan may");
    list.resize(count);
    return {};
  }

  Result<> text(const flatbuffers::String* from, std::string& to) {
    if (!from) return {};
    if (from->size() > kMaxString) return malformed("a string is too long");
    if (!budget_.charge(from->size(), 1)) return malformed("it takes more memory than a plan may");
    to.assign(from->data(), from->size());
    return {};
  }

  template <class T>
  Result<> numbers(const flatbuffers::Vector<T>* from, std::vector<T>& to) {
    if (!from) return {};
    if (!is_aligned<T>(from)) return malformed("a list is not aligned");
    LATHE_TRY(resize(to, from->size(), kMaxOperands));
    for (flatbuffers::uoffset_t i = 0; i < from->size(); ++i) to[i] = from->Get(i);
    return {};
  }

  Result<> strings(const flatbuffers::Vector<uint32_t>* from, std::vector<std::string>& to) {
    if (!from) return {};
    LATHE_TRY(resize(to, from->size(), kMaxEntries));
    for (flatbuffers::uoffset_t i = 0; i < from->size(); ++i) {
      const uint32_t index = from->Get(i);
      if (!metadata_.strings() || index >= metadata_.strings()->size())
        return malformed("a string's index is out of range");
      LATHE_TRY(text(metadata_.strings()->Get(index), to[i]));
    }
    return {};
  }

  Result<> parse_expressions() {
    const auto* texts = metadata_.expressions();
    if (metadata_.numbers() && !is_aligned<int64_t>(metadata_.numbers())) return malformed("a list is not aligned");
    if (metadata_.numbers()) number_count_ = metadata_.numbers()->size();
    if (!texts) return {};
    LATHE_TRY(resize(expressions_, texts->size(), kMaxEntries));
    for (flatbuffers::uoffset_t i = 0; i < texts->size(); ++i) {
      const std::string_view text(texts->Get(i)->data(), texts->Get(i)->size());
      if (!budget_.charge(text.size(), 1)) return malformed("it takes more memory than a plan may");
      auto parsed = parse_expr(text);
      if (!parsed) return malformed(parsed.error().message);
      if (parsed->is_constant() || parsed->to_string() != text) return malformed("an expression is not in normal form");
      expressions_[i] = std::move(*parsed);
    }
    return {};
  }

  // Each use is charged by the expression's size, which bounds the work of whoever walks the plan.
  Result<> expression(uint32_t index, Expr& to) {
    if (index < number_count_) {
      to = metadata_.numbers()->Get(index);
      return {};
    }
    if (index - number_count_ >= expressions_.size()) return malformed("an expression's index is out of range");
    const Expr& e = expressions_[index - number_count_];
    if (!budget_.charge(e.size(), 16)) return malformed("it takes more memory than a plan may");
    to = e;
    return {};
  }

  Result<> shape(const flatbuffers::Vector<uint32_t>* from, Shape& to) {
    if (!from) return {};
    LATHE_TRY(resize(to, from->size(), kMaxRank));
    for (flatbuffers::uoffset_t i = 0; i < from->size(); ++i) LATHE_TRY(expression(from->Get(i), to[i]));
    return {};
  }

  Result<> symbol(const fb::Symbol& from, Symbol& to) {
    if (from.source() > static_cast<uint8_t>(SymbolSource::computed)) return malformed("unknown symbol source");
    to.source = static_cast<SymbolSource>(from.source());
    to.tensor = from.tensor();
    to.index = from.index();
    to.range = {from.min(), from.max()};
    return text(from.name(), to.name);
  }

  Result<> constraint(const fb::Constraint& from, Constraint& to) {
    if (from.relation() > static_cast<uint8_t>(Relation::at_most)) return malformed("unknown relation of a constraint");
    to.relation = static_cast<Relation>(from.relation());
    LATHE_TRY(expression(from.a(), to.a));
    LATHE_TRY(expression(from.b(), to.b));
    return text(from.where(), to.where);
  }

  Result<> profile(const fb::Profile& from, Profile& to) {
    return each(from.symbols(), to.symbols, [](const fb::SymbolProfile& f, SymbolProfile& s) -> Result<> {
      s = {f.min(), f.opt(), f.max()};
      return {};
    });
  }

  Result<> tensor(const fb::Tensor& from, Tensor& to) {
    const auto dtype = dtype_from_number(from.dtype());
    if (!dtype) return malformed("unknown element type");
    if (from.storage() > static_cast<uint8_t>(StorageKind::dynamic)) return malformed("unknown storage kind");
    to.dtype = *dtype;
    to.storage = static_cast<StorageKind>(from.storage());
    to.index = from.index();
    LATHE_TRY(text(from.name(), to.name));
    LATHE_TRY(shape(from.dims(), to.dims));
    LATHE_TRY(shape(from.strides(), to.strides));
    return expression(from.offset(), to.offset);
  }

  Result<> binding(const fb::Binding& from, Binding& to) {
    to.is_input = from.is_input();
    to.tensor = from.tensor();
    to.is_shape_tensor = from.is_shape_tensor();
    LATHE_TRY(text(from.name(), to.name));
    return strings(from.dim_names(), to.dim_names);
  }

  Result<> step(const fb::Step& from, Step& to) {
    LATHE_TRY(text(from.kernel(), to.kernel));
    LATHE_TRY(numbers(from.inputs(), to.inputs));
    LATHE_TRY(numbers(from.outputs(), to.outputs));
    LATHE_TRY(numbers(from.params(), to.params));
    LATHE_TRY(text(from.program(), to.program));
    LATHE_TRY(text(from.op(), to.op));
    LATHE_TRY(text(from.attributes(), to.attributes));
    LATHE_TRY(text(from.name(), to.name));
    LATHE_TRY(strings(from.origin(), to.origin));
    LATHE_TRY(text(from.tactic(), to.tactic));
    to.milliseconds = from.milliseconds();
    LATHE_TRY(each(from.counts(), to.counts, [&](const fb::StepCount& f, StepCount& c) -> Result<> {
      c.symbol = f.symbol();
      c.input = f.input();
      return expression(f.element(), c.element);
    }));
    return from.workspace() == 0 ? Result<>() : expression(from.workspace() - 1, to.workspace);
  }

  // The list is in the order of the steps, so that it has one form.
  Result<> launches() {
    if (!metadata_.launches()) return {};
    uint32_t last = 0;
    for (const fb::Launch* from : *metadata_.launches()) {
      if (from->step() < last || from->step() >= plan_.steps.size()) return malformed("a launch belongs to no step");
      last = from->step();
      std::vector<Launch>& to = plan_.steps[last].launches;
      LATHE_TRY(resize(to, to.size() + 1, kMaxLaunches));
      LATHE_TRY(launch(*from, to.back()));
    }
    return {};
  }

  Result<> launch(const fb::Launch& from, Launch& to) {
    to.code = from.code();
    LATHE_TRY(text(from.entry(), to.entry));
    if (from.library()) LATHE_TRY(text(from.library(), to.library));
    if (!from.grid() || from.grid()->size() != to.grid.size()) return malformed("a launch has no grid");
    for (flatbuffers::uoffset_t i = 0; i < to.grid.size(); ++i) LATHE_TRY(expression(from.grid()->Get(i), to.grid[i]));
    to.block = from.block();
    to.shared_bytes = from.shared_bytes();
    to.cluster = from.cluster();
    to.overlaps = from.overlaps();
    return each(from.args(), to.args, [&](const fb::LaunchArg& f, LaunchArg& a) -> Result<> {
      if (f.kind() > LaunchArg::number) return malformed("unknown kind of a launch's argument");
      a.kind = static_cast<LaunchArg::Kind>(f.kind());
      a.index = f.index();
      return expression(f.value(), a.value);
    });
  }

  Result<> codes() {
    std::vector<CodePlace> places;
    LATHE_TRY(each(metadata_.codes(), places, [](const fb::Code& f, CodePlace& place) -> Result<> {
      place = {f.offset(), f.bytes()};
      return {};
    }));
    for (const CodePlace& place : places) {
      if (place.offset > code_.size() || place.bytes > code_.size() - place.offset)
        return malformed("a code module lies outside the code section");
      plan_.codes.push_back(code_.subspan(place.offset, place.bytes));
    }
    const std::vector<CodePlace> wanted = place_codes(plan_);
    for (size_t i = 0; i < places.size(); ++i)
      if (wanted[i].offset != places[i].offset) return malformed("a code module is not where it belongs");
    const uint64_t end = wanted.empty() ? 0 : wanted.back().offset + wanted.back().bytes;
    return end == code_.size() ? Result<>() : malformed("the code section holds more than the modules");
  }

  const fb::Metadata& metadata_;
  Budget budget_;
  std::span<const std::byte> code_;
  size_t number_count_ = 0;
  std::vector<Expr> expressions_;
  Plan plan_;
};

}  // namespace

Result<Plan> decode_metadata(std::span<const std::byte> bytes, std::span<const std::byte> code) {
  if (bytes.size() > kMaxMetadata) return malformed("it is too large");
  if (bytes.size() < 16) return malformed("it is too small");
  LATHE_CHECK(reinterpret_cast<uintptr_t>(bytes.data()) % 8 == 0);
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), /*max_depth=*/8,
                                 /*max_tables=*/4 * kMaxEntries);
  if (!fb::VerifyMetadataBuffer(verifier)) return malformed("it is not a valid FlatBuffer");
  return Decoder(*fb::GetMetadata(bytes.data()), code).run();
}

}  // namespace lathe::plan
