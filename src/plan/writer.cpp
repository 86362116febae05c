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

// The content of the code section.
std::vector<std::byte> join_codes(const Plan& plan) {
  std::vector<std::byte> bytes;
  const std::vector<CodePlace> places = place_codes(plan);
  for (size_t i = 0; i < places.size(); ++i) {
    bytes.resize(places[i].offset);
    bytes.insert(bytes.end(), plan.codes[i].begin(), plan.codes[i].end());
  }
  return bytes;
}

// What the sections of a plan hold, in their order.
struct Contents {
  std::vector<std::byte> metadata;
  std::vector<std::byte> code;
  std::span<const std::byte> weights;
};

PlanHeader header_of(const Plan& plan, const Contents& contents) {
  PlanHeader header;
  header.version = library_version();
  header.os = host_os();
  header.architecture = host_architecture();
  header.target = plan.target;
  const auto add = [&](SectionKind kind, std::span<const std::byte> content, TrustClass trust = TrustClass::data) {
    header.sections.push_back({kind, trust, 0, content.size(), {}, 0});
    seal(header.sections.back(), content);
  };
  add(SectionKind::metadata, contents.metadata);
  if (!contents.code.empty()) add(SectionKind::code, contents.code, TrustClass::device_code);
  if (!contents.weights.empty()) add(SectionKind::weights, contents.weights);
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

Result<> write_parts(const PlanHeader& header, const Contents& contents, Sink& sink) {
  LATHE_TRY(sink.write(encode_header(header)));
  uint64_t end = kHeaderBytes;
  size_t section = 0;
  for (const std::span<const std::byte> content :
       {std::span<const std::byte>(contents.metadata), std::span<const std::byte>(contents.code), contents.weights}) {
    if (content.empty()) continue;
    const Section& place = header.sections[section++];
    LATHE_TRY(write_zeros(sink, place.offset - end));
    LATHE_TRY(sink.write(content));
    end = place.offset + place.bytes;
  }
  return {};
}

// Of a plan that can be read back. The decoder is asked, for it alone knows all its limits.
Result<Contents> contents_of(const Plan& plan) {
  LATHE_TRY(validate(plan));
  LATHE_ASSIGN(std::vector<std::byte> metadata, encode_metadata(plan));
  std::vector<std::byte> code = join_codes(plan);
  if (const Result<Plan> back = decode_metadata(metadata, code); !back)
    return fail(ErrorCode::invalid_argument, "the plan exceeds the limits of its format: {}", back.error().message);
  return Contents{std::move(metadata), std::move(code), plan.weights};
}

}  // namespace

Result<> write_plan(const Plan& plan, Sink& sink) {
  LATHE_ASSIGN(const Contents contents, contents_of(plan));
  return write_parts(header_of(plan, contents), contents, sink);
}

Result<std::vector<std::byte>> write_plan(const Plan& plan) {
  LATHE_ASSIGN(const Contents contents, contents_of(plan));
  const PlanHeader header = header_of(plan, contents);
  VectorSink sink;
  sink.bytes.reserve(header.plan_bytes);
  LATHE_TRY(write_parts(header, contents, sink));
  return std::move(sink.bytes);
}

}  // namespace lathe::plan
