// SPDX-License-Identifier: Apache-2.0
#include "plan/reader.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "base/divide.h"
#include "base/hex.h"
#include "plan/compatibility.h"
#include "plan/limits.h"
#include "plan/metadata.h"
#include "plan/validate.h"
#include "plan/variants.h"

namespace lathe::plan {
namespace {

std::span<const std::byte> bytes_of(std::span<const std::byte> plan, const Section& section) {
  return plan.subspan(section.offset, section.bytes);
}

struct AlignedFree {
  void operator()(void* memory) const { std::free(memory); }
};

// A copy with the given alignment; the bytes must not be empty.
Result<std::shared_ptr<const std::byte>> aligned_copy(std::span<const std::byte> bytes, size_t alignment) {
  const size_t size = round_up(bytes.size(), alignment);
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

std::span<const std::byte> content_of(std::span<const std::byte> plan, const PlanHeader& header,
                                      std::string_view name) {
  const Section* section = header.find(name);
  return section && !section->detached ? bytes_of(plan, *section) : std::span<const std::byte>();
}

// Says which weights are wanted, and of which file the writer spoke.
std::string describe(const Section& weights, const std::string& file) {
  return fmt::format("{} bytes with digest {}...{}", weights.bytes, to_hex(std::span(weights.digest).first(8)),
                     file.empty() ? "" : fmt::format(", which its writer put into '{}'", file));
}

// Weights that the file does not hold are the caller's to supply. They are checked by their digest: the plan may be
// signed, and they may be anything.
Result<Resident> supplied_weights(const Section& section, const ReadOptions& options, const std::string& file) {
  const ContentCheck check = options.verify_weights ? ContentCheck::digest : ContentCheck::none;
  const Weights* given = options.weights ? &*options.weights : nullptr;
  if (!given)
    return fail(ErrorCode::invalid_argument, "the plan's weights are not in its file: supply {}",
                describe(section, file));
  if (given->bytes.size() != section.bytes || !check_content(given->bytes, section, check, options.threads))
    return fail(ErrorCode::plan_digest,
                "the weights that were supplied, {} bytes, are not those of the plan: it needs {}", given->bytes.size(),
                describe(section, file));
  if (options.borrows_weights) return Resident{given->bytes, given->owner};
  return make_resident(given->bytes, given->owner, kConstantAlignment, kWeightsAlignment);
}

Result<Plan> decode_aligned(std::span<const std::byte> metadata, std::span<const std::byte> code) {
  if (metadata.empty() || is_aligned(metadata, 8)) return decode_metadata(metadata, code);
  LATHE_ASSIGN(const auto copy, aligned_copy(metadata, 8));
  return decode_metadata({copy.get(), metadata.size()}, code);
}

}  // namespace

Result<> check_usable(const PlanHeader& header, const ReadOptions& options) {
  if ((header.flags & ~kKnownFlags) != 0 || header.compatibility > Compatibility::later_versions ||
      header.hardware_compatibility > HardwareCompatibility::same_compute_capability)
    return fail(ErrorCode::plan_version,
                "plan, which Lathe {} wrote, asks for features (flags {:#x}, compatibility {} and {}) that Lathe {} "
                "does not have",
                header.version.to_string(), header.flags, static_cast<uint32_t>(header.compatibility),
                static_cast<uint32_t>(header.hardware_compatibility), options.version.to_string());
  LATHE_TRY(check_version(header, options.version));
  if (options.check_host && (header.os != host_os() || header.architecture != host_architecture()))
    return fail(ErrorCode::plan_target, "plan is for system {} and architecture {}, this machine is {} and {}",
                static_cast<uint32_t>(header.os), static_cast<uint32_t>(header.architecture),
                static_cast<uint32_t>(host_os()), static_cast<uint32_t>(host_architecture()));
  return {};
}

Result<> check_weights(std::span<const std::byte> bytes) {
  LATHE_ASSIGN(const PlanHeader header, read_header(bytes));
  const Section* weights = header.find(kWeights);
  if (!weights || weights->detached) return {};
  return check_content(bytes_of(bytes.subspan(header.prefix_bytes), *weights), *weights, ContentCheck::digest);
}

Result<LoadedPlan> read_plan(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                             const ReadOptions& options) {
  LATHE_ASSIGN(const PlanHeader header, read_header(bytes));
  LATHE_TRY(check_usable(header, options));
  if (header.find(kVariants))
    return fail(ErrorCode::invalid_argument, "the plan is one for each of '{}': take_variant() gives them",
                header.target);
  bytes = bytes.subspan(header.prefix_bytes);
  const ContentCheck check = options.verify_weights ? ContentCheck::checksum : ContentCheck::none;
  LATHE_TRY(check_sections(bytes, header, {.weights = check}, options.threads));

  LoadedPlan loaded;
  Plan& plan = loaded.plan;
  LATHE_ASSIGN(Resident code, make_resident(content_of(bytes, header, kCode), owner, kCodeAlignment, kCodeAlignment));
  LATHE_ASSIGN(plan, decode_aligned(content_of(bytes, header, kMetadata), code.bytes));
  plan.target = header.target;
  const Section* section = header.find(kWeights);
  plan.weights = content_of(bytes, header, kWeights);
  if (section && section->detached)
    plan.detached = DetachedWeights{section->bytes, section->checksum, section->digest, section->in_pieces};
  LATHE_TRY(validate(plan));
  if (plan.is_stripped() != ((header.flags & kLacksWeights) != 0))
    return fail(ErrorCode::plan_malformed, "the plan's header does not say whether it has all weights as it does");
  Resident weights;
  if (!plan.detached && options.borrows_weights) {
    weights = {plan.weights, owner};
  } else if (!plan.detached) {
    LATHE_ASSIGN(weights, make_resident(plan.weights, owner, kConstantAlignment, kWeightsAlignment));
  } else if (!options.without_weights) {
    LATHE_ASSIGN(weights, supplied_weights(*section, options, plan.weights_file));
  }
  plan.weights = weights.bytes;
  loaded.owner = std::make_shared<std::array<Resident, 2>>(std::array{std::move(code), std::move(weights)});
  return loaded;
}

}  // namespace lathe::plan
