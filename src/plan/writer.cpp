// SPDX-License-Identifier: Apache-2.0
#include "plan/writer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <new>

#include "base/for_each_in_threads.h"
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
  return sink.write(std::vector<std::byte>(count));
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

void seal(Section& section, ContentHash& hash) {
  section.checksum = hash.checksum();
  section.digest = hash.digest();
}

// Of what is written to it.
class HashSink final : public ByteSink {
 public:
  Result<> write(std::span<const std::byte> part) override {
    hash.add(part);
    return {};
  }
  ContentHash hash;
};

// Memory for a plan, which is filled in order while another thread may read what is there already.
class VectorSink final : public ByteSink {
 public:
  explicit VectorSink(uint64_t size) {
    bytes_.reserve(size);
    begin_ = bytes_.data();
  }

  Result<> write(std::span<const std::byte> part) override {
    constexpr size_t kAtOnce = size_t{1} << 20;
    LATHE_CHECK(part.size() <= bytes_.capacity() - bytes_.size());  // who follows reads where the bytes lie
    for (size_t begin = 0; begin < part.size(); begin += kAtOnce) {
      const auto next = part.subspan(begin, std::min(kAtOnce, part.size() - begin));
      bytes_.insert(bytes_.end(), next.begin(), next.end());
      tell(bytes_.size());
    }
    return {};
  }
  void break_off() { tell(kBroken); }
  uint64_t written() const { return bytes_.size(); }

  // Of what the section gets, while it gets it.
  void follow(const Section& section, ContentHash& hash) const {
    const uint64_t end = section.offset + section.bytes;
    for (uint64_t at = section.offset; at < end;) {
      uint64_t there = written_.load(std::memory_order_acquire);
      for (; there <= at; there = written_.load(std::memory_order_acquire)) written_.wait(there);
      if (there == kBroken) return;
      hash.add({begin_ + at, std::min(there, end) - at});
      at = std::min(there, end);
    }
  }

  std::vector<std::byte> take(std::span<const std::byte> header) {
    std::ranges::copy(header, bytes_.begin());
    return std::move(bytes_);
  }

 private:
  static constexpr uint64_t kBroken = UINT64_MAX;
  void tell(uint64_t written) {
    written_.store(written, std::memory_order_release);
    written_.notify_one();
  }

  std::vector<std::byte> bytes_;
  const std::byte* begin_;
  std::atomic<uint64_t> written_ = 0;
};

// The section of weights that the file is to hold; nullptr = none.
Section* find_weights(PlanHeader& header) {
  const auto found = std::ranges::find(header.sections, kWeights, &Section::name);
  return found == header.sections.end() || found->detached ? nullptr : &*found;
}

// But for checksum and digest of the weights.
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
      section.bytes = plan.weights_bytes();
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
Result<std::vector<std::byte>> write_to_vector(PlanType& plan, Pieces pieces, size_t threads) {
  LATHE_ASSIGN(const Contents contents, contents_of(plan));
  LATHE_ASSIGN(PlanHeader header, header_of(plan, contents));
  Section* const weights = find_weights(header);
  VectorSink sink(header.plan_bytes);
  ContentHash hash;
  Result<> written;
  for_each_in_threads(weights ? 2 : 1, static_cast<int>(std::min<size_t>(threads, 2)), [&](size_t i, size_t) {
    if (i == 1) return sink.follow(*weights, hash);
    try {
      written = write_sections(plan, header, contents, sink, pieces);
      if (written && sink.written() != header.plan_bytes)
        written = fail(ErrorCode::internal, "{} bytes of a plan of {} were written", sink.written(), header.plan_bytes);
    } catch (const std::bad_alloc&) {
      written = fail(ErrorCode::out_of_memory, "no memory to write the plan");
    }
    if (!written) sink.break_off();
  });
  LATHE_TRY(written);
  if (weights) seal(*weights, hash);
  return sink.take(encode_header(header));
}

}  // namespace

DetachedWeights detach(std::span<const std::byte> weights) {
  Section section;
  seal(section, weights);
  return {section.bytes, section.checksum, section.digest};
}

Result<> write_plan(const Plan& plan, ByteSink& sink) {
  LATHE_ASSIGN(const Contents contents, contents_of(plan));
  LATHE_ASSIGN(PlanHeader header, header_of(plan, contents));
  if (Section* const weights = find_weights(header)) {
    HashSink hash;
    LATHE_TRY(write_weights(plan, hash, Pieces::kept));
    seal(*weights, hash.hash);
  }
  return write_sections(plan, header, contents, sink, Pieces::kept);
}

Result<std::vector<std::byte>> write_plan(const Plan& plan) { return write_to_vector(plan, Pieces::kept, 1); }

Result<std::vector<std::byte>> write_plan(Plan&& plan, size_t threads) {
  return write_to_vector(plan, Pieces::released, threads);
}

}  // namespace lathe::plan
