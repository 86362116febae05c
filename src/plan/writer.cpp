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
  CodePlaces places;
  for (const CodeModule& module : plan.codes)
    for (const CodeImage& image : module.images) {
      bytes.resize(places.add(image.bytes.size()).offset);
      bytes.insert(bytes.end(), image.bytes.begin(), image.bytes.end());
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
  PlanHeader header = make_header(plan.target);
  const auto add = [&](std::string_view name, std::span<const std::byte> content) {
    header.sections.push_back(named_section(name));
    seal(header.sections.back(), content);
  };
  add(kMetadata, contents.metadata);
  if (!contents.code.empty()) add(kCode, contents.code);
  if (plan.detached) {
    Section& section = header.sections.emplace_back(named_section(kWeights));
    section.detached = true;
    section.bytes = plan.detached->bytes;
    section.checksum = plan.detached->checksum;
    section.digest = plan.detached->digest;
  } else if (!contents.weights.empty()) {
    add(kWeights, contents.weights);
  }
  place_sections(header);
  return header;
}

Result<> write_zeros(ByteSink& sink, uint64_t count) {
  static constexpr std::array<std::byte, kWeightsAlignment> kZeros{};
  LATHE_CHECK(count < kZeros.size());
  return sink.write(std::span(kZeros).first(count));
}

class VectorSink final : public ByteSink {
 public:
  Result<> write(std::span<const std::byte> part) override {
    bytes.insert(bytes.end(), part.begin(), part.end());
    return {};
  }
  std::vector<std::byte> bytes;
};

Result<> write_sections(const PlanHeader& header, const Contents& contents, ByteSink& sink) {
  LATHE_TRY(sink.write(encode_header(header)));
  const std::pair<std::string_view, std::span<const std::byte>> sections[] = {
      {kMetadata, contents.metadata}, {kCode, contents.code}, {kWeights, contents.weights}};
  uint64_t end = kHeaderBytes;
  for (const auto& [name, content] : sections) {
    const Section* place = header.find(name);
    if (!place || place->detached) continue;
    LATHE_TRY(write_zeros(sink, place->offset - end));
    LATHE_TRY(sink.write(content));
    end = place->offset + place->bytes;
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

DetachedWeights detach(std::span<const std::byte> weights) {
  Section section;
  seal(section, weights);
  return {section.bytes, section.checksum, section.digest};
}

Result<> write_plan(const Plan& plan, ByteSink& sink) {
  LATHE_ASSIGN(const Contents contents, contents_of(plan));
  return write_sections(header_of(plan, contents), contents, sink);
}

Result<std::vector<std::byte>> write_plan(const Plan& plan) {
  LATHE_ASSIGN(const Contents contents, contents_of(plan));
  const PlanHeader header = header_of(plan, contents);
  VectorSink sink;
  sink.bytes.reserve(header.plan_bytes);
  LATHE_TRY(write_sections(header, contents, sink));
  return std::move(sink.bytes);
}

}  // namespace lathe::plan
