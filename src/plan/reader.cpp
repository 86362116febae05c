// SPDX-License-Identifier: Apache-2.0
#include "plan/reader.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "plan/limits.h"
#include "plan/metadata.h"
#include "plan/validate.h"

namespace lathe::plan {
namespace {

std::string_view name_of(SectionKind kind) {
  switch (kind) {
    case SectionKind::metadata:
      return "metadata";
    case SectionKind::weights:
      return "weights";
    case SectionKind::signature:
      return "signature";
    case SectionKind::code:
      return "code";
  }
  return "unknown";
}

std::span<const std::byte> bytes_of(std::span<const std::byte> plan, const Section& section) {
  return plan.subspan(section.offset, section.bytes);
}

Result<> check_content(std::span<const std::byte> plan, const Section& section, WeightsCheck check) {
  if (check == WeightsCheck::none) return {};
  const std::span<const std::byte> content = bytes_of(plan, section);
  if (Hasher().add(content).value() == section.checksum &&
      (check == WeightsCheck::checksum || digest_of(content) == section.digest))
    return {};
  return fail(ErrorCode::plan_digest,
              "the plan's {} are damaged: their digest does not match; copy or build the plan again",
              name_of(section.kind));
}

struct AlignedFree {
  void operator()(void* memory) const { std::free(memory); }
};

// A copy with the given alignment; the bytes must not be empty.
Result<std::shared_ptr<const std::byte>> aligned_copy(std::span<const std::byte> bytes, size_t alignment) {
  const size_t size = (bytes.size() + alignment - 1) / alignment * alignment;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(alignment, size));
  if (!memory) return fail(ErrorCode::out_of_memory, "cannot allocate {} bytes for a plan", bytes.size());
  std::shared_ptr<const std::byte> copy(memory, AlignedFree());
  std::memcpy(memory, bytes.data(), bytes.size());
  return copy;
}

bool is_aligned(std::span<const std::byte> bytes, size_t alignment) {
  return reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0;
}

// Content of a section as the plan will use it, kept alive by `owner`.
struct Resident {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

Result<Resident> make_resident(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner,
                               size_t alignment, size_t copy_alignment) {
  if (bytes.empty()) return Resident();
  if (owner && is_aligned(bytes, alignment)) return Resident{bytes, owner};
  LATHE_ASSIGN(const auto copy, aligned_copy(bytes, copy_alignment));
  return Resident{{copy.get(), bytes.size()}, copy};
}

std::span<const std::byte> content_of(std::span<const std::byte> plan, const PlanHeader& header, SectionKind kind) {
  const Section* section = header.find(kind);
  return section ? bytes_of(plan, *section) : std::span<const std::byte>();
}

Result<Plan> decode_aligned(std::span<const std::byte> metadata, std::span<const std::byte> code) {
  if (metadata.empty() || is_aligned(metadata, 8)) return decode_metadata(metadata, code);
  LATHE_ASSIGN(const auto copy, aligned_copy(metadata, 8));
  return decode_metadata({copy.get(), metadata.size()}, code);
}

}  // namespace

Result<> check_usable(const PlanHeader& header, const ReadOptions& options) {
  if (header.version != options.version)
    return fail(ErrorCode::plan_version, "plan was written by Lathe {}, this is Lathe {}; build the engine again",
                header.version.to_string(), options.version.to_string());
  if (header.flags != 0 || header.compatibility != 0)
    return fail(ErrorCode::plan_version,
                "plan asks for features (flags {:#x}, compatibility {}) that Lathe {} does not have", header.flags,
                header.compatibility, options.version.to_string());
  if (options.check_host && (header.os != host_os() || header.architecture != host_architecture()))
    return fail(ErrorCode::plan_target, "plan is for system {} and architecture {}, this machine is {} and {}",
                static_cast<uint32_t>(header.os), static_cast<uint32_t>(header.architecture),
                static_cast<uint32_t>(host_os()), static_cast<uint32_t>(host_architecture()));
  for (const Section& section : header.sections)
    if (section.trust != (section.kind == SectionKind::code ? TrustClass::device_code : TrustClass::data))
      return fail(ErrorCode::plan_malformed, "the plan's {} are of trust class {}", name_of(section.kind),
                  static_cast<uint32_t>(section.trust));
  return {};
}

Result<> check_sections(std::span<const std::byte> plan, const PlanHeader& header, WeightsCheck weights) {
  uint64_t end = kHeaderBytes;
  for (const Section& section : header.sections) {
    const auto gap = plan.subspan(end, section.offset - end);
    if (std::any_of(gap.begin(), gap.end(), [](std::byte b) { return b != std::byte{0}; }))
      return fail(ErrorCode::plan_malformed, "the plan is damaged: the gap before its {} is not zero",
                  name_of(section.kind));
    end = section.offset + section.bytes;
    LATHE_TRY(check_content(plan, section, section.kind == SectionKind::weights ? weights : WeightsCheck::digest));
  }
  return {};
}

Result<> check_weights(std::span<const std::byte> bytes) {
  LATHE_ASSIGN(const PlanHeader header, read_header(bytes));
  const Section* weights = header.find(SectionKind::weights);
  return weights ? check_content(bytes.subspan(header.prefix_bytes), *weights, WeightsCheck::digest) : Result<>();
}

Result<LoadedPlan> read_plan(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                             const ReadOptions& options) {
  LATHE_ASSIGN(const PlanHeader header, read_header(bytes));
  LATHE_TRY(check_usable(header, options));
  bytes = bytes.subspan(header.prefix_bytes);
  if (options.require_signature) LATHE_TRY(verify_signature(bytes, header, options.trusted_keys));
  LATHE_TRY(check_sections(bytes, header,
                           options.require_signature ? WeightsCheck::digest
                           : options.verify_weights  ? WeightsCheck::checksum
                                                     : WeightsCheck::none));

  LoadedPlan loaded;
  LATHE_ASSIGN(Resident code,
               make_resident(content_of(bytes, header, SectionKind::code), owner, kCodeAlignment, kCodeAlignment));
  LATHE_ASSIGN(loaded.plan, decode_aligned(bytes_of(bytes, header.sections[0]), code.bytes));
  loaded.plan.target = header.target;
  loaded.plan.weights = content_of(bytes, header, SectionKind::weights);
  LATHE_TRY(validate(loaded.plan));
  LATHE_ASSIGN(Resident weights, make_resident(loaded.plan.weights, owner, kConstantAlignment, kWeightsAlignment));
  loaded.plan.weights = weights.bytes;
  loaded.owner = std::make_shared<std::array<Resident, 2>>(std::array{std::move(code), std::move(weights)});
  return loaded;
}

}  // namespace lathe::plan
