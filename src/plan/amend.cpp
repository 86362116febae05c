// SPDX-License-Identifier: Apache-2.0
#include "plan/amend.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/version.h"
#include "plan/header.h"

namespace lathe::plan {
namespace {

void erase(PlanHeader& header, std::string_view name) {
  std::erase_if(header.sections, [&](const Section& section) { return section.name == name; });
}

// Gives the plan the header, whose sections are some of those it had, in their order, and at the end perhaps a new one.
void rewrite(std::vector<std::byte>& plan, const PlanHeader& old, PlanHeader header, std::span<const std::byte> added) {
  place_sections(header);
  plan.resize(std::max(plan.size(), header.prefix_bytes + header.plan_bytes));
  std::byte* const begin = plan.data() + header.prefix_bytes;
  uint64_t end = kHeaderBytes;
  for (const Section& section : header.sections) {
    if (section.detached) continue;
    const Section* const before = old.find(section.name);
    const std::byte* const from = before ? begin + before->offset : added.data();
    if (section.bytes > 0) std::memmove(begin + section.offset, from, section.bytes);
    std::fill(begin + end, begin + section.offset, std::byte{0});
    end = section.offset + section.bytes;
  }
  const auto head = encode_header(header);
  std::ranges::copy(head, begin);
  plan.resize(header.prefix_bytes + header.plan_bytes);
}

}  // namespace

Result<> make_version_compatible(std::vector<std::byte>& plan) {
  LATHE_ASSIGN(const PlanHeader old, read_header(plan));
  PlanHeader header = old;
  header.compatibility = Compatibility::later_versions;
  header.metadata_format = kMetadataFormats.newest;
  header.record_format = record_formats().newest;
  erase(header, kSignature);
  rewrite(plan, old, std::move(header), {});
  return {};
}

Result<> set_hardware(std::vector<std::byte>& plan, HardwareCompatibility compatibility,
                      const HardwareProperties& tuned_on) {
  LATHE_ASSIGN(const PlanHeader old, read_header(plan));
  PlanHeader header = old;
  header.hardware_compatibility = compatibility;
  header.hardware = tuned_on;
  erase(header, kSignature);
  rewrite(plan, old, std::move(header), {});
  return {};
}

Result<> put_section(std::vector<std::byte>& plan, std::string_view name, std::span<const std::byte> content) {
  LATHE_TRY(remove_section(plan, name));
  LATHE_ASSIGN(const PlanHeader old, read_header(plan));
  PlanHeader header = old;
  erase(header, kSignature);
  if (header.sections.size() == kMaxSections)
    return fail(ErrorCode::invalid_argument, "the plan has {} sections already", kMaxSections);
  seal(header.sections.emplace_back(named_section(name)), content);
  rewrite(plan, old, std::move(header), content);
  return {};
}

Result<> remove_section(std::vector<std::byte>& plan, std::string_view name) {
  LATHE_ASSIGN(const PlanHeader old, read_header(plan));
  if (!old.find(name)) return {};
  PlanHeader header = old;
  erase(header, name);
  erase(header, kSignature);
  rewrite(plan, old, std::move(header), {});
  return {};
}

Result<Amendments> read_amendments(std::span<const std::byte> plan) {
  LATHE_ASSIGN(const PlanHeader header, read_header(plan));
  Amendments amendments{header.compatibility, header.record_format, header.hardware_compatibility, header.hardware, {}};
  for (const Section& section : header.sections) {
    if (section.trust != TrustClass::host_code) continue;
    if (section.name == kLeanRuntime && header.version != library_version()) continue;
    const auto content = plan.subspan(header.prefix_bytes + section.offset, section.bytes);
    amendments.sections.emplace_back(section.name, std::vector(content.begin(), content.end()));
  }
  return amendments;
}

void apply(const Amendments& amendments, PlanHeader& header) {
  header.hardware_compatibility = amendments.hardware_compatibility;
  header.hardware = amendments.hardware;
  header.compatibility = amendments.compatibility;
  if (amendments.compatibility == Compatibility::same_version) return;
  header.metadata_format = kMetadataFormats.newest;
  header.record_format = amendments.record_format;
}

}  // namespace lathe::plan
