// SPDX-License-Identifier: Apache-2.0
#include "plan/header.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/divide.h"
#include "base/version.h"
#include "plan/content_sums.h"
#include "plan/foreign_prefix.h"
#include "plan/limits.h"
#include "plan/plugin_libraries.h"
#include "plan/variants.h"

namespace lathe::plan {
namespace {

// The first word, and the zero behind it, are what tools look for that know engines by TensorRT's tag.
constexpr std::string_view kTag = "ftrt", kMagic("ftrt\0\0\0\0LATHEPLN", 16);
constexpr size_t kTargetOffset = 64, kTargetBytes = kMaxTarget + 1, kPrefixSum = kPrefixBytes - sizeof(uint64_t);
constexpr size_t kTableOffset = 320, kEntryBytes = 96;
constexpr size_t kDigestOffset = kHeaderBytes - sizeof(Digest);
static_assert(kTargetOffset + kTargetBytes == kPrefixSum);
static_assert(kTableOffset + kMaxSections * kEntryBytes <= kDigestOffset);
constexpr uint32_t kSkippable = 1, kDetached = 2, kInPieces = 4;  // flags of a section

using HeaderBytes = std::array<std::byte, kHeaderBytes>;

template <class T>
void put(HeaderBytes& bytes, size_t offset, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) bytes[offset + i] = static_cast<std::byte>(value >> (8 * i));
}

template <class T>
T get(std::span<const std::byte> bytes, size_t offset) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(bytes[offset + i]) << (8 * i);
  return value;
}

void put_text(HeaderBytes& bytes, size_t offset, std::string_view text, size_t most) {
  std::memcpy(bytes.data() + offset, text.data(), std::min(text.size(), most));
}

std::string get_text(std::span<const std::byte> bytes, size_t offset, size_t most) {
  const char* text = reinterpret_cast<const char*>(bytes.data()) + offset;
  return {text, strnlen(text, most)};
}

uint64_t place_after(uint64_t end, uint64_t alignment) { return round_up(end, alignment); }

// Says what the bytes are when they are no plan.
tl::unexpected<Error> not_a_plan(std::span<const std::byte> bytes) {
  if (bytes.empty()) return fail(ErrorCode::plan_malformed, "the plan is empty");
  const auto begins = [&](std::string_view text) {
    return std::memcmp(bytes.data(), text.data(), std::min(bytes.size(), text.size())) == 0;
  };
  if (begins(kMagic)) return fail(ErrorCode::plan_malformed, "the plan is truncated: {} bytes", bytes.size());
  if (bytes.size() >= 4 && begins(kTag))
    return fail(ErrorCode::plan_malformed, "this engine was made by TensorRT; build the network again with Lathe");
  if (bytes.size() >= 8 && begins("LATHEPLN"))
    return fail(ErrorCode::plan_version,
                "plan has format version 1, this library reads version {}; build the engine again", kFormatVersion);
  if (bytes[0] == std::byte{0x08})
    return fail(ErrorCode::plan_malformed, "this looks like an ONNX model, not a plan: build an engine from it first");
  const bool text = std::all_of(
      bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(bytes.size(), 64)), [](std::byte b) {
        const auto c = static_cast<unsigned char>(b);
        return (c >= 0x20 && c < 0x7f) || (c >= '\t' && c <= '\r');
      });
  if (text) return fail(ErrorCode::plan_malformed, "this is a text file, not a plan");
  return fail(ErrorCode::plan_malformed, "this is not a Lathe plan: it does not start as one");
}

// Known sections are as this version writes them; of others a reader can only do without those that say so.
Result<> check_section(const Section& section) {
  const Section known = named_section(section.name);
  if (known.name.empty() && !section.skippable)
    return fail(ErrorCode::plan_version,
                "plan has a section '{}', which this library does not know; a newer Lathe wrote it", section.name);
  if (!std::has_single_bit(section.alignment) || section.alignment > kMaxSectionAlignment)
    return fail(ErrorCode::plan_malformed, "section '{}' of the plan is aligned to {}", section.name,
                section.alignment);
  if (known.name.empty()) return {};
  if (section.trust != known.trust || section.alignment != known.alignment || section.skippable)
    return fail(ErrorCode::plan_malformed, "the plan's {} are of trust class {}, aligned to {}", section.name,
                static_cast<uint32_t>(section.trust), section.alignment);
  if ((section.detached || section.in_pieces) && section.name != kWeights)
    return fail(ErrorCode::plan_malformed, "the plan's {} are {}", section.name,
                section.detached ? "not in its file" : "marked as digested in pieces, which weights alone are");
  return {};
}

// Sections lie where place_sections would put them, each name once, metadata or variants first, a signature last.
Result<> check_sections(const PlanHeader& header) {
  uint64_t end = kHeaderBytes;
  for (size_t i = 0; i < header.sections.size(); ++i) {
    const Section& section = header.sections[i];
    LATHE_TRY(check_section(section));
    const bool is_last = i + 1 == header.sections.size();
    if (header.find(section.name) != &section || (i == 0) != (section.name == kMetadata || section.name == kVariants) ||
        (section.name == kSignature && !is_last) ||
        (section.name == kDerivedWeights && header.sections.front().name != kVariants))
      return fail(ErrorCode::plan_malformed, "plan's sections are repeated or out of order");
    if (section.detached) {
      if (section.offset == 0) continue;
      return fail(ErrorCode::plan_malformed, "section '{}' of the plan is in its file and is not", section.name);
    }
    const uint64_t start = place_after(end, section.alignment);
    if (section.offset != start || section.bytes > header.plan_bytes || start > header.plan_bytes - section.bytes)
      return fail(ErrorCode::plan_malformed, "section '{}' of the plan lies outside its place", section.name);
    end = start + section.bytes;
  }
  if (header.sections.empty()) return fail(ErrorCode::plan_malformed, "plan has no sections");
  if (end != header.plan_bytes) return fail(ErrorCode::plan_malformed, "plan has bytes after its last section");
  return {};
}

Result<Section> decode_section(std::span<const std::byte> entry) {
  Section section;
  section.name = get_text(entry, 0, kMaxSectionName + 1);
  section.trust = static_cast<TrustClass>(get<uint32_t>(entry, 24));
  const auto flags = get<uint32_t>(entry, 28);
  if (flags & ~(kSkippable | kDetached | kInPieces))
    return fail(ErrorCode::plan_version, "section '{}' of the plan has flags {:#x}; a newer Lathe wrote it",
                section.name, flags);
  section.skippable = flags & kSkippable;
  section.detached = flags & kDetached;
  section.in_pieces = flags & kInPieces;
  section.alignment = get<uint32_t>(entry, 32);
  section.offset = get<uint64_t>(entry, 40);
  section.bytes = get<uint64_t>(entry, 48);
  section.checksum = get<uint64_t>(entry, 56);
  std::copy_n(entry.begin() + 64, section.digest.size(), section.digest.begin());
  return section;
}

// Of the bytes from 280 on.
void decode_hardware(std::span<const std::byte> bytes, PlanHeader& header) {
  header.hardware_compatibility = static_cast<HardwareCompatibility>(get<uint32_t>(bytes, 280));
  HardwareProperties& hardware = header.hardware;
  hardware.memory_bus_bits = get<uint32_t>(bytes, 284);
  hardware.cache_bytes = get<uint64_t>(bytes, 288);
  hardware.block_shared_bytes = get<uint32_t>(bytes, 296);
  hardware.core_shared_bytes = get<uint32_t>(bytes, 300);
  hardware.texture_alignment = get<uint32_t>(bytes, 304);
  hardware.cores = get<uint32_t>(bytes, 308);
  hardware.is_integrated = get<uint32_t>(bytes, 312) != 0;
}

void encode_hardware(const PlanHeader& header, HeaderBytes& bytes) {
  const HardwareProperties& hardware = header.hardware;
  put(bytes, 280, static_cast<uint32_t>(header.hardware_compatibility));
  put(bytes, 284, hardware.memory_bus_bits);
  put(bytes, 288, hardware.cache_bytes);
  put(bytes, 296, hardware.block_shared_bytes);
  put(bytes, 300, hardware.core_shared_bytes);
  put(bytes, 304, hardware.texture_alignment);
  put(bytes, 308, hardware.cores);
  put(bytes, 312, uint32_t{hardware.is_integrated});
}

PlanPrefix decode_prefix(std::span<const std::byte> bytes) {
  PlanPrefix prefix;
  prefix.format = get<uint32_t>(bytes, 16);
  prefix.header_bytes = get<uint32_t>(bytes, 20);
  for (size_t i = 0; i < 4; ++i) prefix.interface_version[i] = get<uint8_t>(bytes, 24 + i);
  prefix.version = {get<uint32_t>(bytes, 32), get<uint32_t>(bytes, 36), get<uint32_t>(bytes, 40),
                    get<uint32_t>(bytes, 44)};
  prefix.plan_bytes = get<uint64_t>(bytes, 48);
  prefix.os = static_cast<OperatingSystem>(get<uint32_t>(bytes, 56));
  prefix.architecture = static_cast<HostArchitecture>(get<uint32_t>(bytes, 60));
  prefix.target = get_text(bytes, kTargetOffset, kTargetBytes);
  return prefix;
}

// Of bytes that start with the plan.
Result<PlanPrefix> read_plain_prefix(std::span<const std::byte> plan) {
  if (plan.size() < kPrefixBytes)
    return fail(ErrorCode::plan_malformed, "the plan is truncated: {} bytes, its prefix alone has {}", plan.size(),
                kPrefixBytes);
  if (Hasher().add(plan.first(kPrefixSum)).value() != get<uint64_t>(plan, kPrefixSum))
    return fail(ErrorCode::plan_digest,
                "the first bytes of the plan are damaged: their checksum does not match; copy or build the plan again");
  return decode_prefix(plan);
}

Result<PlanHeader> decode(std::span<const std::byte> bytes) {
  PlanHeader header;
  static_cast<PlanPrefix&>(header) = decode_prefix(bytes);
  header.compatibility = static_cast<Compatibility>(get<uint32_t>(bytes, 256));
  const uint32_t count = get<uint32_t>(bytes, 260);
  header.flags = get<uint64_t>(bytes, 264);
  header.metadata_format = get<uint32_t>(bytes, 272);
  header.record_format = get<uint32_t>(bytes, 276);
  decode_hardware(bytes, header);
  if (count > kMaxSections)
    return fail(ErrorCode::plan_malformed, "plan claims {} sections; at most {}", count, kMaxSections);
  for (size_t i = 0; i < count; ++i) {
    LATHE_ASSIGN(header.sections.emplace_back(),
                 decode_section(bytes.subspan(kTableOffset + i * kEntryBytes, kEntryBytes)));
  }
  if (header.compatibility == Compatibility::same_version && (header.metadata_format != 0 || header.record_format != 0))
    return fail(ErrorCode::plan_malformed, "plan is for one version, and names formats for others");
  // Whatever the fields do not say (unused bytes) must be as the writer leaves it.
  const HeaderBytes canonical = encode_header(header);
  const bool is_canonical = std::equal(canonical.begin(), canonical.end(), bytes.begin());
  if (!is_canonical && header.version > library_version())
    return fail(
        ErrorCode::plan_version,
        "plan was written by {}, and its header says more than this one knows. Update Lathe, or build the engine again "
        "with this version",
        header.version.newer_than(library_version()));
  if (!is_canonical) return fail(ErrorCode::plan_malformed, "plan's header has bytes that mean nothing");
  return header;
}

// The bytes from the plan's start on; `skipped` gets the size of what came before.
Result<std::span<const std::byte>> find_plan(std::span<const std::byte> bytes, uint64_t& skipped) {
  skipped = foreign_prefix_bytes(bytes);
  const std::span<const std::byte> plan = bytes.subspan(skipped);
  if (plan.size() >= kMagic.size() && std::memcmp(plan.data(), kMagic.data(), kMagic.size()) == 0) return plan;
  return not_a_plan(plan.empty() ? bytes : plan);
}

void encode_prefix(const PlanPrefix& prefix, HeaderBytes& bytes) {
  put_text(bytes, 0, kMagic, kMagic.size());
  put(bytes, 16, prefix.format);
  put(bytes, 20, prefix.header_bytes);
  for (size_t i = 0; i < 4; ++i) put(bytes, 24 + i, prefix.interface_version[i]);
  put(bytes, 32, prefix.version.major);
  put(bytes, 36, prefix.version.minor);
  put(bytes, 40, prefix.version.patch);
  put(bytes, 44, prefix.version.build);
  put(bytes, 48, prefix.plan_bytes);
  put(bytes, 56, static_cast<uint32_t>(prefix.os));
  put(bytes, 60, static_cast<uint32_t>(prefix.architecture));
  put_text(bytes, kTargetOffset, prefix.target, kMaxTarget);
  put(bytes, kPrefixSum, Hasher().add(std::span<const std::byte>(bytes).first(kPrefixSum)).value());
}

}  // namespace

Section named_section(std::string_view name) {
  struct Known {
    std::string_view name;
    TrustClass trust;
    uint32_t alignment;
  };
  static constexpr Known kKnown[] = {
      {kMetadata, TrustClass::data, 8},
      {kCode, TrustClass::device_code, kCodeAlignment},
      {kVariants, TrustClass::device_code, kCodeAlignment},
      {kDerivedWeights, TrustClass::data, 8},
      {kWeights, TrustClass::data, kWeightsAlignment},
      {kSignature, TrustClass::data, 8},
      {kLeanRuntime, TrustClass::host_code, kHostCodeAlignment},
      {kPluginLibraries, TrustClass::host_code, kHostCodeAlignment},
  };
  for (const Known& known : kKnown)
    if (known.name == name) return {.name = std::string(name), .trust = known.trust, .alignment = known.alignment};
  return {};
}

const Section* PlanHeader::find(std::string_view name) const {
  for (const Section& section : sections)
    if (section.name == name) return &section;
  return nullptr;
}

void seal(Section& section, std::span<const std::byte> content) {
  section.bytes = content.size();
  const ContentSums sums = sums_of(content, section.in_pieces, ContentCheck::digest, 1);
  section.checksum = sums.checksum;
  section.digest = sums.digest;
}

OperatingSystem host_os() {
#ifdef __linux__
  return OperatingSystem::linux_os;
#else
  return OperatingSystem::other;
#endif
}

HostArchitecture host_architecture() {
#if defined(__x86_64__)
  return HostArchitecture::x86_64;
#elif defined(__aarch64__)
  return HostArchitecture::arm64;
#else
  return HostArchitecture::other;
#endif
}

PlanHeader make_header(std::string target) {
  PlanHeader header;
  header.format = kFormatVersion;
  header.header_bytes = kHeaderBytes;
  header.version = library_version();
  header.os = host_os();
  header.architecture = host_architecture();
  header.target = std::move(target);
  return header;
}

void place_sections(PlanHeader& header) {
  header.plan_bytes = kHeaderBytes;
  for (Section& section : header.sections) {
    if (section.detached) continue;
    section.offset = place_after(header.plan_bytes, section.alignment);
    header.plan_bytes = section.offset + section.bytes;
  }
}

HeaderBytes encode_header(const PlanHeader& header) {
  HeaderBytes bytes{};
  encode_prefix(header, bytes);
  put(bytes, 256, static_cast<uint32_t>(header.compatibility));
  put(bytes, 260, static_cast<uint32_t>(header.sections.size()));
  put(bytes, 264, header.flags);
  put(bytes, 272, header.metadata_format);
  put(bytes, 276, header.record_format);
  encode_hardware(header, bytes);
  for (size_t i = 0; i < std::min(header.sections.size(), kMaxSections); ++i) {
    const Section& section = header.sections[i];
    const size_t entry = kTableOffset + i * kEntryBytes;
    put_text(bytes, entry, section.name, kMaxSectionName);
    put(bytes, entry + 24, static_cast<uint32_t>(section.trust));
    put(bytes, entry + 28,
        (section.skippable ? kSkippable : 0) | (section.detached ? kDetached : 0) |
            (section.in_pieces ? kInPieces : 0));
    put(bytes, entry + 32, section.alignment);
    put(bytes, entry + 40, section.offset);
    put(bytes, entry + 48, section.bytes);
    put(bytes, entry + 56, section.checksum);
    std::memcpy(bytes.data() + entry + 64, section.digest.data(), section.digest.size());
  }
  const Digest digest = digest_of(std::span(bytes).first(kDigestOffset));
  std::memcpy(bytes.data() + kDigestOffset, digest.data(), digest.size());
  return bytes;
}

Digest signed_digest(PlanHeader header) {
  for (Section& section : header.sections)
    if (section.name == kSignature) section.digest = {}, section.checksum = 0;
  const HeaderBytes bytes = encode_header(header);
  return digest_of(std::span(bytes).first(kDigestOffset));
}

Result<PlanPrefix> read_prefix(std::span<const std::byte> bytes) {
  uint64_t skipped = 0;
  LATHE_ASSIGN(const std::span<const std::byte> plan, find_plan(bytes, skipped));
  return read_plain_prefix(plan);
}

Result<PlanHeader> read_header(std::span<const std::byte> bytes) {
  uint64_t skipped = 0;
  LATHE_ASSIGN(const std::span<const std::byte> plan, find_plan(bytes, skipped));
  LATHE_ASSIGN(const PlanPrefix prefix, read_plain_prefix(plan));
  if (prefix.format != kFormatVersion)
    return fail(
        ErrorCode::plan_version,
        "plan has format version {} and was written by Lathe {} for '{}'; this is Lathe {}, which reads version "
        "{}: build the engine again",
        prefix.format, prefix.version.to_string(), prefix.target, library_version().to_string(), kFormatVersion);
  if (prefix.header_bytes != kHeaderBytes)
    return fail(ErrorCode::plan_malformed, "plan's header claims {} bytes, format version {} has {}",
                prefix.header_bytes, kFormatVersion, kHeaderBytes);
  if (plan.size() < kHeaderBytes)
    return fail(ErrorCode::plan_malformed, "the plan is truncated: {} bytes, the header alone has {}", plan.size(),
                kHeaderBytes);
  const Digest digest = digest_of(plan.first(kDigestOffset));
  if (std::memcmp(digest.data(), plan.data() + kDigestOffset, digest.size()) != 0)
    return fail(ErrorCode::plan_digest,
                "the plan's header is damaged: its digest does not match; copy or build the plan again");
  LATHE_ASSIGN(PlanHeader header, decode(plan.first(kHeaderBytes)));
  header.prefix_bytes = skipped;
  LATHE_TRY(check_sections(header));
  if (header.plan_bytes != plan.size())
    return fail(ErrorCode::plan_malformed,
                "the plan should have {} bytes, but {} are here; it was truncated or changed", header.plan_bytes,
                plan.size());
  return header;
}

}  // namespace lathe::plan
