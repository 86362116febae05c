// SPDX-License-Identifier: Apache-2.0
#include "plan/writer.h"

#include <algorithm>
#include <array>

#include "base/for_each_in_threads.h"
#include "plan/content_sums.h"
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
  LATHE_CHECK(count < kWeightsAlignment);
  static std::array<std::byte, kWeightsAlignment> zeros;  // as a constant it would take room in the library's file
  return sink.write(std::span<const std::byte>(zeros).first(count));
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

// Notes where the bytes lie that are written.
class PartsSink final : public ByteSink {
 public:
  Result<> write(std::span<const std::byte> part) override {
    if (part.empty()) return {};
    parts_.push_back(part);
    ends_.push_back(size() + part.size());
    return {};
  }
  uint64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  // Of all bytes from `begin` to `end`.
  void add_to(ContentHash& hash, uint64_t begin, uint64_t end) const {
    for (auto i = static_cast<size_t>(std::ranges::upper_bound(ends_, begin) - ends_.begin()); begin < end; ++i) {
      const uint64_t next = std::min(ends_[i], end);
      hash.add(parts_[i].subspan(parts_[i].size() - (ends_[i] - begin), next - begin));
      begin = next;
    }
  }

 private:
  std::vector<std::span<const std::byte>> parts_;
  std::vector<uint64_t> ends_;
};

// Large weights are told by the sums of their pieces, which so many threads find.
Result<> seal_weights(const Plan& plan, size_t threads, Section& section) {
  PartsSink parts;
  LATHE_TRY(write_weights(plan, parts, Pieces::kept));
  section.bytes = parts.size();
  section.in_pieces = section.bytes > kHashedPiece;
  PieceSums pieces(section.bytes);
  std::vector<ContentHash> hashes(std::min(threads, pieces.count()));
  for_each_in_threads(pieces.count(), static_cast<int>(hashes.size()), [&](size_t i, size_t thread) {
    ContentHash& hash = hashes[thread];
    hash.restart();
    parts.add_to(hash, i * kHashedPiece, std::min((i + 1) * kHashedPiece, section.bytes));
    pieces.checksum(i) = hash.checksum();
    pieces.digest(i) = hash.digest();
  });
  const ContentSums sums = section.in_pieces ? pieces.sums() : ContentSums{pieces.checksum(0), pieces.digest(0)};
  section.checksum = sums.checksum;
  section.digest = sums.digest;
  return {};
}

Result<PlanHeader> header_of(const Plan& plan, const Contents& contents, const Amendments& amendments, size_t threads) {
  PlanHeader header = make_header(plan.target);
  if (plan.is_stripped()) header.flags |= kLacksWeights;
  const auto add = [&](std::string_view name, std::span<const std::byte> content) {
    seal(header.sections.emplace_back(named_section(name)), content);
  };
  add(kMetadata, contents.metadata);
  if (!contents.code.empty()) add(kCode, contents.code);
  if (plan.weights_bytes() > 0 || plan.detached) {
    Section& section = header.sections.emplace_back(named_section(kWeights));
    if (plan.detached) {
      section.detached = true;
      section.in_pieces = plan.detached->in_pieces;
      section.bytes = plan.detached->bytes;
      section.checksum = plan.detached->checksum;
      section.digest = plan.detached->digest;
    } else {
      LATHE_TRY(seal_weights(plan, threads, section));
    }
  }
  apply(amendments, header);
  for (const auto& [name, content] : amendments.sections) add(name, content);
  place_sections(header);
  return header;
}

template <class PlanType>
Result<> write_sections(PlanType& plan, const PlanHeader& header, const Contents& contents,
                        const Amendments& amendments, ByteSink& sink, Pieces pieces) {
  LATHE_TRY(sink.write(encode_header(header)));
  uint64_t end = kHeaderBytes;
  auto amended = amendments.sections.begin();
  for (const Section& section : header.sections) {
    if (section.detached) continue;
    LATHE_TRY(write_zeros(sink, section.offset - end));
    if (section.name == kWeights)
      LATHE_TRY(write_weights(plan, sink, pieces));
    else
      LATHE_TRY(sink.write(section.name == kMetadata ? contents.metadata
                           : section.name == kCode   ? contents.code
                                                     : (amended++)->second));
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
Result<> write(PlanType& plan, const Amendments& amendments, ByteSink& sink, size_t threads, Pieces pieces) {
  LATHE_ASSIGN(const Contents contents, contents_of(plan));
  LATHE_ASSIGN(const PlanHeader header, header_of(plan, contents, amendments, threads));
  LATHE_TRY(sink.begin(header.plan_bytes));
  return write_sections(plan, header, contents, amendments, sink, pieces);
}

// Memory that is set aside once.
class VectorSink final : public ByteSink {
 public:
  Result<> begin(uint64_t size) override {
    bytes.reserve(size);
    return {};
  }
  Result<> write(std::span<const std::byte> part) override {
    bytes.insert(bytes.end(), part.begin(), part.end());
    return {};
  }
  std::vector<std::byte> bytes;
};

}  // namespace

DetachedWeights detach(std::span<const std::byte> weights) {
  Section section;
  seal(section, weights);
  return {section.bytes, section.checksum, section.digest};
}

Result<> write_plan(const Plan& plan, ByteSink& sink) { return write(plan, {}, sink, 1, Pieces::kept); }

Result<> write_plan(Plan&& plan, const Amendments& amendments, ByteSink& sink, size_t threads) {
  return write(plan, amendments, sink, threads, Pieces::released);
}

Result<std::vector<std::byte>> write_plan(const Plan& plan) {
  VectorSink sink;
  LATHE_TRY(write_plan(plan, sink));
  return std::move(sink.bytes);
}

Result<std::vector<std::byte>> write_plan(Plan&& plan, const Amendments& amendments, size_t threads) {
  VectorSink sink;
  LATHE_TRY(write_plan(std::move(plan), amendments, sink, threads));
  return std::move(sink.bytes);
}

}  // namespace lathe::plan
