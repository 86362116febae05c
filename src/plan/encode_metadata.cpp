// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>

#include "plan/limits.h"
#include "plan/metadata.h"
#include "plan_generated.h"

namespace lathe::plan {
namespace {

using flatbuffers::Offset;
using Text = Offset<flatbuffers::String>;
using Indices = Offset<flatbuffers::Vector<uint32_t>>;

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

class Encoder {
 public:
  explicit Encoder(const Plan& plan) : plan_(plan) {}

  std::vector<std::byte> run() {
    number_expressions();
    const auto user = user_pairs();
    const auto steps = vector_of<fb::Step>(plan_.steps, [&](const Step& s) { return step(s); });
    const auto launches = all_launches();
    const auto codes = code_structs();
    const auto bindings = vector_of<fb::Binding>(plan_.bindings, [&](const Binding& b) { return binding(b); });
    const auto tensors = vector_of<fb::Tensor>(plan_.tensors, [&](const Tensor& t) { return tensor(t); });
    const auto profiles = vector_of<fb::Profile>(plan_.profiles, [&](const Profile& p) { return profile(p); });
    const auto constraints =
        vector_of<fb::Constraint>(plan_.constraints, [&](const Constraint& c) { return constraint(c); });
    const auto symbols = vector_of<fb::Symbol>(plan_.symbols, [&](const Symbol& s) { return symbol(s); });
    const auto buffers = buffer_structs();
    const auto constants = constant_structs();
    const auto strings = texts(strings_.values());
    const auto expressions = texts(expression_texts());
    const auto numbers = builder_.CreateVector(numbers_.values());
    const auto name = text(plan_.name);
    fb::MetadataBuilder metadata(builder_);
    metadata.add_constraints(constraints);
    metadata.add_codes(codes);
    metadata.add_launches(launches);
    metadata.add_user(user);
    metadata.add_steps(steps);
    metadata.add_bindings(bindings);
    metadata.add_dynamic_slots(plan_.dynamic_slots);
    metadata.add_constants(constants);
    metadata.add_buffers(buffers);
    metadata.add_tensors(tensors);
    metadata.add_profiles(profiles);
    metadata.add_symbols(symbols);
    metadata.add_strings(strings);
    metadata.add_expressions(expressions);
    metadata.add_numbers(numbers);
    metadata.add_threads(plan_.threads);
    metadata.add_name(name);
    fb::FinishMetadataBuffer(builder_, metadata.Finish());
    const auto* bytes = reinterpret_cast<const std::byte*>(builder_.GetBufferPointer());
    return {bytes, bytes + builder_.GetSize()};
  }

 private:
  // Numbers come before texts in the index space, so all must be known before the first index is written.
  void number_expressions() {
    const auto note = [this](const Expr& e) { e.is_constant() ? numbers_.of(*e.as_constant()) : symbolic_.of(e); };
    for (const Tensor& t : plan_.tensors) {
      for (const Expr& e : t.dims) note(e);
      for (const Expr& e : t.strides) note(e);
      note(t.offset);
    }
    for (const Buffer& b : plan_.buffers) note(b.bytes);
    for (const Constraint& c : plan_.constraints) note(c.a), note(c.b);
    for (const Step& s : plan_.steps) {
      note(s.workspace);
      for (const StepCount& c : s.counts) note(c.element);
      for (const Launch& l : s.launches) {
        for (const Expr& e : l.grid) note(e);
        for (const LaunchArg& a : l.args) note(a.value);
      }
    }
  }

  uint32_t expression(const Expr& e) {
    if (e.is_constant()) return numbers_.of(*e.as_constant());
    return static_cast<uint32_t>(numbers_.values().size()) + symbolic_.of(e);
  }

  std::vector<std::string> expression_texts() const {
    std::vector<std::string> all;
    all.reserve(symbolic_.values().size());
    for (const Expr& e : symbolic_.values()) all.push_back(e.to_string());
    return all;
  }

  // An empty string is an absent field.
  Text text(const std::string& value) { return value.empty() ? Text() : builder_.CreateSharedString(value); }

  Offset<flatbuffers::Vector<Text>> texts(const std::vector<std::string>& values) {
    std::vector<Text> offsets;
    offsets.reserve(values.size());
    for (const std::string& value : values) offsets.push_back(builder_.CreateSharedString(value));
    return builder_.CreateVector(offsets);
  }

  template <class Table, class Values, class Make>
  Offset<flatbuffers::Vector<Offset<Table>>> vector_of(const Values& values, const Make& make) {
    std::vector<Offset<Table>> offsets;
    offsets.reserve(values.size());
    for (const auto& value : values) offsets.push_back(make(value));
    return builder_.CreateVector(offsets);
  }

  // An empty list is an absent field.
  template <class T>
  Offset<flatbuffers::Vector<T>> list(const std::vector<T>& values) {
    return values.empty() ? Offset<flatbuffers::Vector<T>>() : builder_.CreateVector(values);
  }

  Indices shape(const Shape& shape) {
    std::vector<uint32_t> indices;
    indices.reserve(shape.size());
    for (const Expr& e : shape) indices.push_back(expression(e));
    return list(indices);
  }

  Indices string_indices(const std::vector<std::string>& values) {
    std::vector<uint32_t> indices;
    indices.reserve(values.size());
    for (const std::string& value : values) indices.push_back(strings_.of(value));
    return list(indices);
  }

  Offset<fb::Symbol> symbol(const Symbol& s) {
    return fb::CreateSymbol(builder_, text(s.name), static_cast<uint8_t>(s.source), s.tensor, s.index, s.range.min,
                            s.range.max);
  }

  Offset<fb::Profile> profile(const Profile& p) {
    std::vector<fb::SymbolProfile> symbols;
    symbols.reserve(p.symbols.size());
    for (const SymbolProfile& s : p.symbols) symbols.emplace_back(s.min, s.opt, s.max);
    return fb::CreateProfile(builder_, builder_.CreateVectorOfStructs(symbols));
  }

  Offset<fb::Constraint> constraint(const Constraint& c) {
    return fb::CreateConstraint(builder_, static_cast<uint8_t>(c.relation), expression(c.a), expression(c.b),
                                text(c.where));
  }

  Offset<fb::Tensor> tensor(const Tensor& t) {
    const auto dims = shape(t.dims), strides = shape(t.strides);
    return fb::CreateTensor(builder_, text(t.name), static_cast<uint8_t>(t.dtype), static_cast<uint8_t>(t.storage),
                            t.index, dims, strides, expression(t.offset));
  }

  Offset<fb::Binding> binding(const Binding& b) {
    const auto dim_names = string_indices(b.dim_names);
    return fb::CreateBinding(builder_, text(b.name), b.is_input, b.tensor, b.is_shape_tensor, dim_names);
  }

  Offset<fb::Step> step(const Step& s) {
    const Text kernel = text(s.kernel), program = text(s.program), op = text(s.op), attributes = text(s.attributes);
    const Text name = text(s.name), tactic = text(s.tactic);
    const auto inputs = list(s.inputs), outputs = list(s.outputs);
    const auto params = list(s.params);
    const auto origin = string_indices(s.origin);
    std::vector<fb::StepCount> count_structs;
    for (const StepCount& c : s.counts) count_structs.emplace_back(c.symbol, c.input, expression(c.element));
    flatbuffers::Offset<flatbuffers::Vector<const fb::StepCount*>> counts;
    if (!s.counts.empty()) counts = builder_.CreateVectorOfStructs(count_structs);
    const uint32_t workspace = s.launches.empty() ? 0 : expression(s.workspace) + 1;
    return fb::CreateStep(builder_, kernel, inputs, outputs, params, program, op, attributes, name, origin, tactic,
                          s.milliseconds, workspace, counts);
  }

  Offset<fb::Launch> launch(uint32_t step, const Launch& l) {
    const Text entry = text(l.entry), library = l.library.empty() ? Text() : text(l.library);
    const auto grid = shape({l.grid.begin(), l.grid.end()});
    std::vector<fb::LaunchArg> args;
    for (const LaunchArg& a : l.args) args.emplace_back(static_cast<uint8_t>(a.kind), a.index, expression(a.value));
    const auto arg_structs = builder_.CreateVectorOfStructs(args);
    return fb::CreateLaunch(builder_, step, l.code, entry, grid, l.block, l.shared_bytes, l.cluster, l.overlaps,
                            arg_structs, library);
  }

  Offset<flatbuffers::Vector<Offset<fb::Launch>>> all_launches() {
    std::vector<Offset<fb::Launch>> offsets;
    for (uint32_t i = 0; i < plan_.steps.size(); ++i)
      for (const Launch& l : plan_.steps[i].launches) offsets.push_back(launch(i, l));
    return builder_.CreateVector(offsets);
  }

  Offset<flatbuffers::Vector<const fb::Code*>> code_structs() {
    std::vector<fb::Code> structs;
    for (const CodePlace& place : place_codes(plan_)) structs.emplace_back(place.offset, place.bytes);
    return builder_.CreateVectorOfStructs(structs);
  }

  Offset<flatbuffers::Vector<const fb::Buffer*>> buffer_structs() {
    std::vector<fb::Buffer> structs;
    structs.reserve(plan_.buffers.size());
    for (const Buffer& b : plan_.buffers) structs.emplace_back(expression(b.bytes), b.first, b.last);
    return builder_.CreateVectorOfStructs(structs);
  }

  Offset<flatbuffers::Vector<const fb::Constant*>> constant_structs() {
    std::vector<fb::Constant> structs;
    structs.reserve(plan_.constants.size());
    for (const Constant& c : plan_.constants) structs.emplace_back(c.offset, c.bytes);
    return builder_.CreateVectorOfStructs(structs);
  }

  Offset<flatbuffers::Vector<Offset<fb::KeyValue>>> user_pairs() {
    return vector_of<fb::KeyValue>(plan_.metadata, [&](const auto& pair) {
      const Text key = text(pair.first), value = text(pair.second);
      return fb::CreateKeyValue(builder_, key, value);
    });
  }

  const Plan& plan_;
  flatbuffers::FlatBufferBuilder builder_;
  Numbering<int64_t> numbers_;
  Numbering<Expr, HashExpr> symbolic_;
  Numbering<std::string> strings_;
};

// An upper bound of the section's size: FlatBuffers cannot hold 2 GiB, and asserts where we want an error.
size_t estimate(const Plan& plan) {
  size_t bytes = 4096 + plan.name.size();
  const auto shape = [&](const Shape& s) {
    for (const Expr& e : s) bytes += 4 + size_t{32} * e.size();
  };
  for (const Symbol& s : plan.symbols) bytes += 96 + s.name.size();
  for (const Profile& p : plan.profiles) bytes += 32 + p.symbols.size() * sizeof(SymbolProfile);
  for (const Tensor& t : plan.tensors) {
    bytes += 128 + t.name.size() + size_t{32} * t.offset.size();
    shape(t.dims);
    shape(t.strides);
  }
  for (const Buffer& b : plan.buffers) bytes += 16 + size_t{32} * b.bytes.size();
  for (const Constraint& c : plan.constraints) bytes += 64 + c.where.size() + size_t{32} * (c.a.size() + c.b.size());
  bytes += plan.constants.size() * sizeof(Constant);
  const auto strings = [&](const std::vector<std::string>& all) {
    for (const std::string& s : all) bytes += 16 + s.size();
  };
  for (const Binding& b : plan.bindings) {
    bytes += 96 + b.name.size();
    strings(b.dim_names);
  }
  for (const Step& s : plan.steps) {
    bytes += 192 + 4 * (s.inputs.size() + s.outputs.size()) + 8 * s.params.size() + size_t{32} * s.workspace.size();
    for (const StepCount& c : s.counts) bytes += sizeof(fb::StepCount) + 16 + size_t{32} * c.element.size();
    bytes += s.kernel.size() + s.program.size() + s.op.size() + s.attributes.size() + s.name.size() + s.tactic.size();
    strings(s.origin);
    for (const Launch& l : s.launches) {
      bytes += 208 + l.entry.size() + l.library.size() + l.args.size() * (sizeof(fb::LaunchArg) + 16) + 16;
      for (const Expr& e : l.grid) bytes += size_t{32} * e.size();
      for (const LaunchArg& a : l.args) bytes += size_t{32} * a.value.size();
    }
  }
  bytes += plan.codes.size() * sizeof(fb::Code);
  for (const auto& [key, value] : plan.metadata) bytes += 64 + key.size() + value.size();
  return bytes;
}

}  // namespace

std::vector<CodePlace> place_codes(const Plan& plan) {
  std::vector<CodePlace> places;
  uint64_t end = 0;
  for (const CodeModule& code : plan.codes) {
    places.push_back({(end + kCodeAlignment - 1) / kCodeAlignment * kCodeAlignment, code.size()});
    end = places.back().offset + places.back().bytes;
  }
  return places;
}

Result<std::vector<std::byte>> encode_metadata(const Plan& plan) {
  if (const size_t bytes = estimate(plan); bytes > kMaxMetadata)
    return fail(ErrorCode::invalid_argument, "the plan's metadata would take up to {} bytes; the limit is {}", bytes,
                kMaxMetadata);
  return Encoder(plan).run();
}

}  // namespace lathe::plan
