// SPDX-License-Identifier: Apache-2.0
#include "plan/compatibility.h"

#include <algorithm>

namespace lathe::plan {
namespace {

Result<> check_order(const PlanHeader& header, const Version& own) {
  const std::string writer = header.version.to_string();
  if (header.compatibility == Compatibility::same_version)
    return fail(ErrorCode::plan_version,
                "plan was written by Lathe {} for '{}', this is Lathe {}; build the engine again, or run it with that "
                "version. Plans that are built with BuilderFlag::kVERSION_COMPATIBLE run in later versions, too",
                writer, header.target, own.to_string());
  if (header.version > own)
    return fail(
        ErrorCode::plan_version,
        "plan was written by {}: no plan runs in versions before its own. Update Lathe, or build the engine again with "
        "this version",
        header.version.newer_than(own));
  if (header.version < kOldestCompatible)
    return fail(
        ErrorCode::plan_version,
        "plan was written by Lathe {}; version-compatible plans are those of Lathe {} and later: build the engine "
        "again",
        writer, kOldestCompatible.to_string());
  return {};
}

}  // namespace

Result<> check_version(const PlanHeader& header, const Version& own, const FormatRange& records) {
  if (header.version == own) return {};
  LATHE_TRY(check_order(header, own));
  if (header.version.major == own.major && kMetadataFormats.holds(header.metadata_format) &&
      records.holds(header.record_format))
    return {};
  return fail(
      ErrorCode::plan_version,
      "plan was written by Lathe {}, in formats of metadata {} and records {}; this Lathe {} reads {} to {} and {} to "
      "{}{}. {}",
      header.version.to_string(), header.metadata_format, header.record_format, own.to_string(),
      kMetadataFormats.oldest, kMetadataFormats.newest, records.oldest, records.newest,
      header.version.major == own.major ? "" : " of its own major version",
      header.find(kLeanRuntime)
          ? "The plan holds its own runtime: setEngineHostCodeAllowed(true) has it used"
          : fmt::format("Load liblathe_lean.so of version {} with IRuntime::loadRuntime(), or build the engine again",
                        header.version.to_string()));
}

Result<> check_other_runtime(const PlanHeader& header, const Version& own) { return check_order(header, own); }

bool holds_host_code(const PlanHeader& header) {
  return std::ranges::any_of(header.sections, [](const Section& s) { return s.trust == TrustClass::host_code; });
}

Result<std::span<const std::byte>> host_code(std::span<const std::byte> plan, const PlanHeader& header,
                                             const Section& section) {
  const auto content = plan.subspan(header.prefix_bytes + section.offset, section.bytes);
  if (digest_of(content) == section.digest) return content;
  return fail(ErrorCode::plan_digest,
              "the plan's {} are damaged: their digest does not match; copy or build the plan again", section.name);
}

}  // namespace lathe::plan
