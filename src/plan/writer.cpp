// SPDX-License-Identifier: Apache-2.0
#include "plan/writer.h"

#include <algorithm>
#include <array>

#include "plan/header.h"
#include "plan/limits.h"
#include "plan/metadata.h"
#include "plan/validate.h"

namespace lathe::plan {
namespace {

PlanHeader header_of(const Plan& plan, std::span<const std::byte> metadata) {
  PlanHeader header;
  header.version = library_version();
  header.os = host_os();
  header.architecture = host_architecture();
  header.target = plan.target;
  const auto add = [&](SectionKind kind, std::span<const std::byte> content) {
    header.sections.push_back({kind, TrustClass::data, 0, content.size(), {}, 0});
    seal(header.sections.back(), content);
  };
  add(SectionKind::metadata, metadata);
  if (!plan.weights.empty()) add(SectionKind::weights, plan.weights);
  place_sections(header);
  return header;
}

Result<> write_zeros(Sink& sink, uint64_t count) {
  static constexpr std::array<std::byte, kWeightsAlignment> kZeros{};
  LATHE_CHECK(count < kZeros.size());
  return sink.write(std::span(kZeros).first(count));
}

class VectorSink final : public Sink {
 public:
  Result<> write(std::span<const std::byte> part) override {
    bytes.insert(bytes.end(), part.begin(), part.end());
    return {};
  }
  std::vector<std::byte> bytes;
};

Result<> write_parts(const PlanHeader& header, std::span<const std::byte> metadata, std::span<const std::byte> weights,
                     Sink& sink) {
  LATHE_TRY(sink.write(encode_header(header)));
  LATHE_TRY(sink.write(metadata));
  if (weights.empty()) return {};
  LATHE_TRY(write_zeros(sink, header.sections[1].offset - (kHeaderBytes + metadata.size())));
  return sink.write(weights);
}

// The metadata of a plan that can be read back. The decoder is asked, for it alone knows all its limits.
Result<std::vector<std::byte>> readable_metadata(const Plan& plan) {
  LATHE_TRY(validate(plan));
  LATHE_ASSIGN(std::vector<std::byte> metadata, encode_metadata(plan));
  if (const Result<Plan> back = decode_metadata(metadata); !back)
    return fail(ErrorCode::invalid_argument, "the plan exceeds the limits of its format: {}", back.error().message);
  return metadata;
}

}  // namespace

Result<> write_plan(const Plan& plan, Sink& sink) {
  LATHE_ASSIGN(const std::vector<std::byte> metadata, readable_metadata(plan));
  return write_parts(header_of(plan, metadata), metadata, plan.weights, sink);
}

Result<std::vector<std::byte>> write_plan(const Plan& plan) {
  LATHE_ASSIGN(const std::vector<std::byte> metadata, readable_metadata(plan));
  const PlanHeader header = header_of(plan, metadata);
  VectorSink sink;
  sink.bytes.reserve(header.plan_bytes);
  LATHE_TRY(write_parts(header, metadata, plan.weights, sink));
  return std::move(sink.bytes);
}

}  // namespace lathe::plan
