// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "plan/limits.h"
#include "plan/random_plan.h"
#include "plan/reader.h"
#include "plan/validate.h"
#include "plan/writer.h"

namespace lathe::plan {
namespace {

template <class T>
std::string text_of(const Result<T>& result) {
  return result ? "ok" : result.error().to_string();
}

void expect_same_shape(const Shape& a, const Shape& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i], b[i]);
}

void expect_same_launches(const Step& a, const Step& b) {
  EXPECT_EQ(a.workspace, b.workspace);
  ASSERT_EQ(a.counts.size(), b.counts.size());
  for (size_t i = 0; i < a.counts.size(); ++i) {
    EXPECT_EQ(a.counts[i].symbol, b.counts[i].symbol);
    EXPECT_EQ(a.counts[i].input, b.counts[i].input);
    EXPECT_EQ(a.counts[i].element, b.counts[i].element);
  }
  ASSERT_EQ(a.launches.size(), b.launches.size());
  for (size_t i = 0; i < a.launches.size(); ++i) {
    const Launch &x = a.launches[i], &y = b.launches[i];
    EXPECT_EQ(x.library, y.library);
    EXPECT_EQ(x.code, y.code);
    EXPECT_EQ(x.entry, y.entry);
    EXPECT_EQ(x.grid, y.grid);
    EXPECT_EQ(x.block, y.block);
    EXPECT_EQ(x.shared_bytes, y.shared_bytes);
    EXPECT_EQ(x.cluster, y.cluster);
    EXPECT_EQ(x.overlaps, y.overlaps);
    ASSERT_EQ(x.args.size(), y.args.size());
    for (size_t j = 0; j < x.args.size(); ++j) {
      EXPECT_EQ(x.args[j].kind, y.args[j].kind);
      EXPECT_EQ(x.args[j].index, y.args[j].index);
      EXPECT_EQ(x.args[j].value, y.args[j].value);
    }
  }
}

void expect_same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_TRUE(a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

void expect_same(const Plan& a, const Plan& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.target, b.target);
  EXPECT_EQ(a.threads, b.threads);
  EXPECT_EQ(a.dynamic_slots, b.dynamic_slots);
  EXPECT_EQ(a.metadata, b.metadata);
  ASSERT_EQ(a.symbols.size(), b.symbols.size());
  for (size_t i = 0; i < a.symbols.size(); ++i) {
    EXPECT_EQ(a.symbols[i].name, b.symbols[i].name);
    EXPECT_EQ(a.symbols[i].source, b.symbols[i].source);
    EXPECT_EQ(a.symbols[i].tensor, b.symbols[i].tensor);
    EXPECT_EQ(a.symbols[i].index, b.symbols[i].index);
    EXPECT_EQ(a.symbols[i].range, b.symbols[i].range);
  }
  ASSERT_EQ(a.profiles.size(), b.profiles.size());
  for (size_t i = 0; i < a.profiles.size(); ++i) EXPECT_EQ(a.profiles[i].symbols, b.profiles[i].symbols);
  ASSERT_EQ(a.constraints.size(), b.constraints.size());
  for (size_t i = 0; i < a.constraints.size(); ++i) {
    EXPECT_EQ(a.constraints[i], b.constraints[i]);
    EXPECT_EQ(a.constraints[i].where, b.constraints[i].where);
  }
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_EQ(a.tensors[i].name, b.tensors[i].name);
    EXPECT_EQ(a.tensors[i].dtype, b.tensors[i].dtype);
    EXPECT_EQ(a.tensors[i].storage, b.tensors[i].storage);
    EXPECT_EQ(a.tensors[i].index, b.tensors[i].index);
    EXPECT_EQ(a.tensors[i].offset, b.tensors[i].offset);
    expect_same_shape(a.tensors[i].dims, b.tensors[i].dims);
    expect_same_shape(a.tensors[i].strides, b.tensors[i].strides);
  }
  ASSERT_EQ(a.buffers.size(), b.buffers.size());
  for (size_t i = 0; i < a.buffers.size(); ++i) {
    EXPECT_EQ(a.buffers[i].bytes, b.buffers[i].bytes);
    EXPECT_EQ(a.buffers[i].first, b.buffers[i].first);
    EXPECT_EQ(a.buffers[i].last, b.buffers[i].last);
  }
  ASSERT_EQ(a.constants.size(), b.constants.size());
  for (size_t i = 0; i < a.constants.size(); ++i) {
    EXPECT_EQ(a.constants[i].offset, b.constants[i].offset);
    EXPECT_EQ(a.constants[i].bytes, b.constants[i].bytes);
  }
  ASSERT_EQ(a.bindings.size(), b.bindings.size());
  for (size_t i = 0; i < a.bindings.size(); ++i) {
    EXPECT_EQ(a.bindings[i].name, b.bindings[i].name);
    EXPECT_EQ(a.bindings[i].is_input, b.bindings[i].is_input);
    EXPECT_EQ(a.bindings[i].tensor, b.bindings[i].tensor);
    EXPECT_EQ(a.bindings[i].is_shape_tensor, b.bindings[i].is_shape_tensor);
    EXPECT_EQ(a.bindings[i].dim_names, b.bindings[i].dim_names);
  }
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (size_t i = 0; i < a.steps.size(); ++i) {
    const Step &x = a.steps[i], &y = b.steps[i];
    EXPECT_EQ(x.kernel, y.kernel);
    EXPECT_EQ(x.inputs, y.inputs);
    EXPECT_EQ(x.outputs, y.outputs);
    EXPECT_EQ(x.params, y.params);
    EXPECT_EQ(x.program, y.program);
    EXPECT_EQ(x.op, y.op);
    EXPECT_EQ(x.attributes, y.attributes);
    EXPECT_EQ(x.name, y.name);
    EXPECT_EQ(x.origin, y.origin);
    EXPECT_EQ(x.tactic, y.tactic);
    EXPECT_EQ(x.milliseconds, y.milliseconds);
    expect_same_launches(x, y);
  }
  ASSERT_EQ(a.codes.size(), b.codes.size());
  for (size_t i = 0; i < a.codes.size(); ++i) expect_same_bytes(a.codes[i], b.codes[i]);
  expect_same_bytes(a.weights, b.weights);
}

// Page-aligned memory, as a mapped file has it.
std::shared_ptr<const std::byte> page_aligned(const std::vector<std::byte>& bytes, size_t shift = 0) {
  void* memory = mmap(nullptr, bytes.size() + shift, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* start = static_cast<std::byte*>(memory);
  std::memcpy(start + shift, bytes.data(), bytes.size());
  const size_t size = bytes.size() + shift;
  return {start + shift, [start, size](const std::byte*) { munmap(start, size); }};
}

TEST(PlanRoundTrip, RandomPlans) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const OwnedPlan owned = PlanGenerator(seed).make(1 + seed % 30, seed % 5 == 0 ? 0 : seed * 3, seed % 4);
    const auto bytes = write_plan(owned.plan);
    ASSERT_TRUE(bytes) << seed << text_of(bytes);
    const auto loaded = read_plan(*bytes, nullptr);
    ASSERT_TRUE(loaded) << seed << text_of(loaded);
    expect_same(owned.plan, loaded->plan);
    const auto again = write_plan(loaded->plan);
    ASSERT_TRUE(again);
    ASSERT_EQ(*bytes, *again) << seed;
  }
}

// Equal strings and expressions are stored once, so that the file is much smaller than the plan.
TEST(PlanRoundTrip, ManyUsesOfLargeTextsAndExpressions) {
  OwnedPlan owned = PlanGenerator(5).make(100, 0);
  Expr sum;
  for (int i = 0; i < 50; ++i) sum += floordiv(Expr::symbol(0) + i, 7 + i);
  for (Step& step : owned.plan.steps) step.origin.assign(4, std::string(10000, 'x'));
  for (Buffer& buffer : owned.plan.buffers) buffer.bytes += 64 * sum;
  const auto bytes = write_plan(owned.plan);
  ASSERT_TRUE(bytes) << text_of(bytes);
  EXPECT_LT(bytes->size(), 100u * 4 * 10000 / 32);
  const auto loaded = read_plan(*bytes, nullptr);
  ASSERT_TRUE(loaded) << text_of(loaded);
  expect_same(owned.plan, loaded->plan);
}

TEST(PlanRoundTrip, WriterRefusesWhatTheReaderWould) {
  OwnedPlan owned = PlanGenerator(5).make(3, 0);
  Expr sum;
  for (int i = 0; i < 100; ++i) sum += floordiv(Expr::symbol(0) + i, 7 + i);
  Tensor tensor{"t", DType::f32, Shape(kMaxRank, sum), Shape(kMaxRank, sum), StorageKind::arena, 0, sum};
  const size_t each = 16 * sum.size() * (2 * kMaxRank + 1);
  owned.plan.tensors.insert(owned.plan.tensors.end(), kMaxDecoded / each + 1, tensor);
  const auto bytes = write_plan(owned.plan);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::invalid_argument) << text_of(bytes);
  EXPECT_NE(bytes.error().message.find("limits of its format"), std::string::npos) << text_of(bytes);
}

TEST(PlanRoundTrip, StreamingGivesTheSameBytes) {
  class Collect final : public Sink {
   public:
    Result<> write(std::span<const std::byte> part) override {
      bytes.insert(bytes.end(), part.begin(), part.end());
      return {};
    }
    std::vector<std::byte> bytes;
  } sink;
  class Full final : public Sink {
   public:
    Result<> write(std::span<const std::byte>) override { return fail(ErrorCode::file_read, "disk full"); }
  } full;
  const OwnedPlan owned = PlanGenerator(7).make(5, 1000);
  ASSERT_TRUE(write_plan(owned.plan, sink));
  EXPECT_EQ(sink.bytes, *write_plan(owned.plan));
  EXPECT_EQ(write_plan(owned.plan, full).error().code, ErrorCode::file_read);
}

TEST(PlanRoundTrip, CodeIsUsedInPlaceWhenAlignedAndCopiedWhenNot) {
  const OwnedPlan owned = PlanGenerator(3).make(4, 0, 3);
  std::vector<std::byte> bytes = *write_plan(owned.plan);
  const auto mapped = page_aligned(bytes);
  const auto in_place = read_plan({mapped.get(), bytes.size()}, mapped);
  ASSERT_TRUE(in_place) << text_of(in_place);
  EXPECT_GE(in_place->plan.codes[0].data(), mapped.get());
  EXPECT_LT(in_place->plan.codes[0].data(), mapped.get() + bytes.size());
  for (size_t shift = 1; shift < 64; shift += 7) {
    const auto shifted = page_aligned(bytes, shift);
    const auto copied = read_plan({shifted.get(), bytes.size()}, shifted);
    ASSERT_TRUE(copied) << text_of(copied);
    for (const CodeModule& code : copied->plan.codes) EXPECT_EQ(reinterpret_cast<uintptr_t>(code.data()) % 64, 0u);
    expect_same(owned.plan, copied->plan);
  }
  const auto borrowed = read_plan(bytes, nullptr);
  ASSERT_TRUE(borrowed) << text_of(borrowed);
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  expect_same(owned.plan, borrowed->plan);
}

TEST(PlanRoundTrip, WeightsAreMappedWhenAlignedAndCopiedWhenNot) {
  const OwnedPlan owned = PlanGenerator(3).make(4, 5000);
  const std::vector<std::byte> bytes = *write_plan(owned.plan);
  const auto mapped = page_aligned(bytes);
  const auto in_place = read_plan({mapped.get(), bytes.size()}, mapped);
  ASSERT_TRUE(in_place) << text_of(in_place);
  EXPECT_GE(in_place->plan.weights.data(), mapped.get());
  EXPECT_LT(in_place->plan.weights.data(), mapped.get() + bytes.size());
  const auto borrowed = read_plan({mapped.get(), bytes.size()}, nullptr);
  EXPECT_TRUE(borrowed->plan.weights.data() < mapped.get() ||
              borrowed->plan.weights.data() >= mapped.get() + bytes.size());
  for (size_t shift = 1; shift < 64; shift += 7) {
    const auto shifted = page_aligned(bytes, shift);
    const auto copied = read_plan({shifted.get(), bytes.size()}, shifted);
    ASSERT_TRUE(copied) << text_of(copied);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(copied->plan.weights.data()) % 64, 0u);
    expect_same(owned.plan, copied->plan);
  }
}

TEST(PlanRoundTrip, ForeignPrefixIsSkipped) {
  const OwnedPlan owned = PlanGenerator(4).make(4, 100);
  const std::vector<std::byte> bytes = *write_plan(owned.plan);
  const std::string json = R"({"names": {"0": "per\"son}"}, "stride": 32})";
  std::string length(4, '\0');
  length[0] = static_cast<char>(json.size());
  for (const std::string& prefix : {json, length + json}) {
    std::vector<std::byte> file(prefix.size());
    std::memcpy(file.data(), prefix.data(), prefix.size());
    file.insert(file.end(), bytes.begin(), bytes.end());
    const auto loaded = read_plan(file, nullptr);
    ASSERT_TRUE(loaded) << text_of(loaded);
    expect_same(owned.plan, loaded->plan);
    EXPECT_EQ(read_header(file)->prefix_bytes, prefix.size());
    file[prefix.size() - 1] = std::byte{'x'};
    EXPECT_EQ(read_plan(file, nullptr).error().code, ErrorCode::plan_malformed);
  }
}

TEST(PlanHeader, TellsWhatTheFileIs) {
  const OwnedPlan owned = PlanGenerator(5).make(3, 10);
  const std::vector<std::byte> bytes = *write_plan(owned.plan);
  const auto header = read_header(bytes);
  ASSERT_TRUE(header) << text_of(header);
  EXPECT_EQ(header->version, library_version());
  EXPECT_EQ(header->target, "cpu-x86_64-avx512");
  EXPECT_EQ(header->sections.size(), 2u);
  EXPECT_EQ(header->sections[1].offset % 4096, 0u);
  const auto message = [](std::string_view text) {
    return read_header(std::as_bytes(std::span(text))).error().message;
  };
  EXPECT_NE(message("").find("empty"), std::string::npos);
  EXPECT_NE(message("hello, this is text").find("text"), std::string::npos);
  EXPECT_NE(message("\x08\x07\x12\x04onnx").find("ONNX"), std::string::npos);
  EXPECT_NE(message("LATHEPLN").find("truncated"), std::string::npos);
  EXPECT_NE(message("{\"a\": 1}").find("text"), std::string::npos);
}

TEST(PlanVersion, AnyDifferenceIsRefusedAndNamed) {
  const std::vector<std::byte> bytes = *write_plan(PlanGenerator(6).make(3, 10).plan);
  for (int i = 0; i < 4; ++i) {
    ReadOptions options;
    uint32_t* numbers[] = {&options.version.major, &options.version.minor, &options.version.patch,
                           &options.version.build};
    ++*numbers[i];
    const auto loaded = read_plan(bytes, nullptr, options);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, ErrorCode::plan_version);
    EXPECT_NE(loaded.error().message.find(library_version().to_string()), std::string::npos);
    EXPECT_NE(loaded.error().message.find(options.version.to_string()), std::string::npos);
  }
}

TEST(PlanSignature, PolicyDecides) {
  const OwnedPlan owned = PlanGenerator(8).make(6, 300);
  const std::vector<std::byte> plain = *write_plan(owned.plan);
  const KeyPair ours = *make_key_pair(), theirs = *make_key_pair();
  ReadOptions policy;
  policy.require_signature = true;
  policy.trusted_keys = {ours.public_key};
  EXPECT_EQ(read_plan(plain, nullptr, policy).error().code, ErrorCode::plan_signature);

  const auto by_ours = sign_plan(plain, ours.secret_key), by_theirs = sign_plan(plain, theirs.secret_key);
  ASSERT_TRUE(by_ours) << text_of(by_ours);
  const auto loaded = read_plan(*by_ours, nullptr, policy);
  ASSERT_TRUE(loaded) << text_of(loaded);
  expect_same(owned.plan, loaded->plan);
  EXPECT_TRUE(read_plan(*by_ours, nullptr));
  EXPECT_EQ(read_plan(*by_theirs, nullptr, policy).error().code, ErrorCode::plan_signature);
  EXPECT_EQ(*sign_plan(*by_theirs, ours.secret_key), *by_ours);  // replaces, deterministically

  std::vector<std::byte> damaged = plain;
  damaged.back() ^= std::byte{1};
  EXPECT_EQ(sign_plan(damaged, ours.secret_key).error().code, ErrorCode::plan_digest);
  for (size_t i = 0; i < by_ours->size(); i += 1 + i / 50) {
    std::vector<std::byte> flipped = *by_ours;
    flipped[i] ^= std::byte{0x40};
    ASSERT_FALSE(read_plan(flipped, nullptr, policy)) << i;
    ASSERT_FALSE(read_plan(flipped, nullptr)) << i;
  }
}

}  // namespace
}  // namespace lathe::plan
