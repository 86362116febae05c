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
  const auto add = [&](std::span<const std::byte> part) {
    bytes.resize(places.add(part.size()).offset);
    bytes.insert(bytes.end(), part.begin(), part.end());
  };
  for (const CodeModule& module : plan.codes)
    for (const CodeImage& image : module.images) add(image.bytes);
  for (const SourceFile& header : plan.headers) add(header.bytes);
  return bytes;
}

// What the sections of a plan hold, in their order, but for the weights.
struct Contents {
  std::vector<std::byte> metadata;
  std::vector<std::byte> code;
};

Result<> write_zeros(ByteSink& sink, uint64_t count) {
  static constexpr std::array<std::byte, kWeightsAlignment> kZeros{};
  LATHE_CHECK(count < kZeros.size());
  return sink.write(std::span(kZeros).first(count));
}

enum class Pieces { kept, released };

// The content of the weights section; each piece may go once it is written.
template <class PlanType>
Result<> write_weights(PlanType& plan, ByteSink& sink, [[maybe_unused]] Pieces pieces) {
  if (plan.pieces.empty()) return sink.write(plan.weights);
  uint64_t end = 0;
  for (size_t i = 0; i < plan.pieces.size(); ++i) {
    const Constant& constant = plan.constants[i];
    if (constant.stripped) continue;
    LATHE_TRY(write_zeros(sink, constant.offset - end));
    LATHE_TRY(sink.write(plan.pieces[i].bytes));
    end = constant.offset + constant.bytes;
    if constexpr (!std::is_const_v<PlanType>)
      if (pieces == Pieces::released) plan.pieces[i] = {};
  }
  return {};
}

// Of what is written to it.
class HashSink final : public ByteSink {
 public:
  Result<> write(std::span<const std::byte> part) override {
    hash_.add(part);
    return {};
  }
  void seal(Section& section, uint64_t bytes) {
    section.bytes = bytes;
    section.checksum = hash_.checksum();
    section.digest = hash_.digest();
  }

 private:
  ContentHash hash_;
};

class VectorSink final : public ByteSink {
 public:
  Result<> write(std::span<const std::byte> part) override {
    bytes.insert(bytes.end(), part.begin(), part.end());
    return {};
  }
  std::vector<std::byte> bytes;
};

Result<PlanHeader> header_of(const Plan& plan, const Contents& contents) {
  PlanHeader header = make_header(plan.target);
  if (plan.is_stripped()) header.flags |= kLacksWeights;
  const auto add = [&](std::string_view name, std::span<const std::byte> content) {
    header.sections.push_back(named_section(name));
    seal(header.sections.back(), content);
  };
  add(kMetadata, contents.metadata);
  if (!contents.code.empty()) add(kCode, contents.code);
  if (plan.weights_bytes() > 0 || plan.detached) {
    Section& section = header.sections.emplace_back(named_section(kWeights));
    if (plan.detached) {
      section.detached = true;
      section.bytes = plan.detached->bytes;
      section.checksum = plan.detached->checksum;
      section.digest = plan.detached->digest;
    } else {
      HashSink hash;
      LATHE_TRY(write_weights(plan, hash, Pieces::kept));
      hash.seal(section, plan.weights_bytes());
    }
  }
  place_sections(header);
  return header;
}

template <class PlanType>
Result<> write_sections(PlanType& plan, const PlanHeader& header, const Contents& contents, ByteSink& sink,
                        Pieces pieces) {
  LATHE_TRY(sink.write(encode_header(header)));
  uint64_t end = kHeaderBytes;
  for (const Section& section : header.sections) {
    if (section.detached) continue;
    LATHE_TRY(write_zeros(sink, section.offset - end));
    LATHE_TRY(section.name == kWeights ? write_weights(plan, sink, pieces)
                                       : sink.write(section.name == kCode ? contents.code : contents.metadata));
    end = section.offset + section.bytes;
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
  return Contents{std::move(metadata), std::move(code)};
}

template <class PlanType>
Result<std::vector<std::byte>> write_to_vector(PlanType& plan, Pieces pieces) {
  LATHE_ASSIGN(const Contents contents, contents_of(plan));
  LATHE_ASSIGN(const PlanHeader header, header_of(plan, contents));
  VectorSink sink;
  sink.bytes.reserve(header.plan_bytes);
  LATHE_TRY(write_sections(plan, header, contents, sink, pieces));
  return std::move(sink.bytes);
}

}  // namespace

DetachedWeights detach(std::span<const std::byte> weights) {
  Section section;
  seal(section, weights);
  return {section.bytes, section.checksum, section.digest};
}

Result<> write_plan(const Plan& plan, ByteSink& sink) {
  LATHE_ASSIGN(const Contents contents, contents_of(plan));
  LATHE_ASSIGN(const PlanHeader header, header_of(plan, contents));
  return write_sections(plan, header, contents, sink, Pieces::kept);
}

Result<std::vector<std::byte>> write_plan(const Plan& plan) { return write_to_vector(plan, Pieces::kept); }

Result<std::vector<std::byte>> write_plan(Plan&& plan) { return write_to_vector(plan, Pieces::released); }

}  // namespace lathe::plan
