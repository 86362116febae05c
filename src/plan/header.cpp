// SPDX-License-Identifier: Apache-2.0
#include "plan/header.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "plan/foreign_prefix.h"
#include "plan/limits.h"

namespace lathe::plan {
namespace {

constexpr std::string_view kMagic = "LATHEPLN";
constexpr size_t kTargetOffset = 64, kTargetBytes = kMaxTarget + 1;
constexpr size_t kTableOffset = 128, kEntryBytes = 64;
constexpr size_t kDigestOffset = kHeaderBytes - sizeof(Digest);

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

uint64_t alignment_of(SectionKind kind) {
  if (kind == SectionKind::weights) return kWeightsAlignment;
  return kind == SectionKind::code ? kCodeAlignment : 8;
}

// Where a section starts that follows bytes [0, end).
uint64_t place_after(uint64_t end, SectionKind kind) {
  const uint64_t alignment = alignment_of(kind);
  return (end + alignment - 1) / alignment * alignment;
}

bool known(SectionKind kind) {
  return kind == SectionKind::metadata || kind == SectionKind::weights || kind == SectionKind::signature ||
         kind == SectionKind::code;
}

// Says what the bytes are when they are no plan.
tl::unexpected<Error> not_a_plan(std::span<const std::byte> bytes) {
  if (bytes.empty()) return fail(ErrorCode::plan_malformed, "the plan is empty");
  const auto begins = [&](std::string_view text) {
    return std::memcmp(bytes.data(), text.data(), std::min(bytes.size(), text.size())) == 0;
  };
  if (begins(kMagic)) return fail(ErrorCode::plan_malformed, "the plan is truncated: {} bytes", bytes.size());
  if (bytes.size() >= 4 && begins("ftrt"))
    return fail(ErrorCode::plan_malformed, "this engine was made by TensorRT; build the network again with Lathe");
  if (bytes[0] == std::byte{0x08})
    return fail(ErrorCode::plan_malformed, "this looks like an ONNX model, not a plan: build an engine from it first");
  const bool text = std::all_of(
      bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(bytes.size(), 64)), [](std::byte b) {
        const auto c = static_cast<unsigned char>(b);
        return (c >= 0x20 && c < 0x7f) || (c >= '\t' && c <= '\r');
      });
  if (text) return fail(ErrorCode::plan_malformed, "this is a text file, not a plan");
  return fail(ErrorCode::plan_malformed, "this is not a Lathe plan: it does not start with '{}'", kMagic);
}

// Sections lie where place_sections would put them, each kind once, metadata first.
Result<> check_sections(const PlanHeader& header) {
  uint64_t end = kHeaderBytes;
  uint32_t seen = 0;
  for (const Section& section : header.sections) {
    if (!known(section.kind))
      return fail(ErrorCode::plan_version, "plan has a section of unknown kind {}; a newer Lathe wrote it",
                  static_cast<uint32_t>(section.kind));
    const uint32_t bit = 1u << static_cast<uint32_t>(section.kind);
    if ((seen & bit) || (seen == 0) != (section.kind == SectionKind::metadata))
      return fail(ErrorCode::plan_malformed, "plan's sections are repeated or out of order");
    seen |= bit;
    const uint64_t start = place_after(end, section.kind);
    if (section.offset != start || section.bytes > header.plan_bytes || start > header.plan_bytes - section.bytes)
      return fail(ErrorCode::plan_malformed, "section {} of the plan lies outside its place",
                  static_cast<uint32_t>(section.kind));
    end = start + section.bytes;
  }
  if (seen == 0) return fail(ErrorCode::plan_malformed, "plan has no sections");
  if (end != header.plan_bytes) return fail(ErrorCode::plan_malformed, "plan has bytes after its last section");
  return {};
}

Section decode_section(std::span<const std::byte> entry) {
  Section section;
  section.kind = static_cast<SectionKind>(get<uint32_t>(entry, 0));
  section.trust = static_cast<TrustClass>(get<uint32_t>(entry, 4));
  section.offset = get<uint64_t>(entry, 8);
  section.bytes = get<uint64_t>(entry, 16);
  section.checksum = get<uint64_t>(entry, 24);
  std::copy_n(entry.begin() + 32, section.digest.size(), section.digest.begin());
  return section;
}

Result<PlanHeader> decode(std::span<const std::byte> bytes) {
  PlanHeader header;
  header.plan_bytes = get<uint64_t>(bytes, 16);
  header.version = {get<uint32_t>(bytes, 24), get<uint32_t>(bytes, 28), get<uint32_t>(bytes, 32),
                    get<uint32_t>(bytes, 36)};
  header.os = static_cast<OperatingSystem>(get<uint32_t>(bytes, 40));
  header.architecture = static_cast<Architecture>(get<uint32_t>(bytes, 44));
  header.compatibility = get<uint32_t>(bytes, 48);
  header.flags = get<uint64_t>(bytes, 56);
  const char* target = reinterpret_cast<const char*>(bytes.data()) + kTargetOffset;
  header.target.assign(target, strnlen(target, kTargetBytes));
  const uint32_t count = get<uint32_t>(bytes, 52);
  if (count > kMaxSections)
    return fail(ErrorCode::plan_malformed, "plan claims {} sections; at most {}", count, kMaxSections);
  for (size_t i = 0; i < count; ++i)
    header.sections.push_back(decode_section(bytes.subspan(kTableOffset + i * kEntryBytes, kEntryBytes)));
  // Whatever the fields do not say (unused bytes) must be as the writer leaves it.
  const HeaderBytes canonical = encode_header(header);
  if (!std::equal(canonical.begin(), canonical.end(), bytes.begin()))
    return fail(ErrorCode::plan_malformed, "plan's header has bytes that mean nothing");
  return header;
}

}  // namespace

const Section* PlanHeader::find(SectionKind kind) const {
  for (const Section& section : sections)
    if (section.kind == kind) return &section;
  return nullptr;
}

void seal(Section& section, std::span<const std::byte> content) {
  section.digest = digest_of(content);
  section.checksum = Hasher().add(content).value();
}

OperatingSystem host_os() {
#ifdef __linux__
  return OperatingSystem::linux_os;
#else
  return OperatingSystem::other;
#endif
}

Architecture host_architecture() {
#if defined(__x86_64__)
  return Architecture::x86_64;
#elif defined(__aarch64__)
  return Architecture::arm64;
#else
  return Architecture::other;
#endif
}

void place_sections(PlanHeader& header) {
  header.plan_bytes = kHeaderBytes;
  for (Section& section : header.sections) {
    section.offset = place_after(header.plan_bytes, section.kind);
    header.plan_bytes = section.offset + section.bytes;
  }
}

HeaderBytes encode_header(const PlanHeader& header) {
  HeaderBytes bytes{};
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  put(bytes, 8, kFormatVersion);
  put(bytes, 12, static_cast<uint32_t>(kHeaderBytes));
  put(bytes, 16, header.plan_bytes);
  put(bytes, 24, header.version.major);
  put(bytes, 28, header.version.minor);
  put(bytes, 32, header.version.patch);
  put(bytes, 36, header.version.build);
  put(bytes, 40, static_cast<uint32_t>(header.os));
  put(bytes, 44, static_cast<uint32_t>(header.architecture));
  put(bytes, 48, header.compatibility);
  put(bytes, 52, static_cast<uint32_t>(header.sections.size()));
  put(bytes, 56, header.flags);
  std::memcpy(bytes.data() + kTargetOffset, header.target.data(), std::min(header.target.size(), kMaxTarget));
  for (size_t i = 0; i < std::min(header.sections.size(), kMaxSections); ++i) {
    const Section& section = header.sections[i];
    const size_t entry = kTableOffset + i * kEntryBytes;
    put(bytes, entry, static_cast<uint32_t>(section.kind));
    put(bytes, entry + 4, static_cast<uint32_t>(section.trust));
    put(bytes, entry + 8, section.offset);
    put(bytes, entry + 16, section.bytes);
    put(bytes, entry + 24, section.checksum);
    std::memcpy(bytes.data() + entry + 32, section.digest.data(), section.digest.size());
  }
  const Digest digest = digest_of(std::span(bytes).first(kDigestOffset));
  std::memcpy(bytes.data() + kDigestOffset, digest.data(), digest.size());
  return bytes;
}

Digest signed_digest(PlanHeader header) {
  for (Section& section : header.sections)
    if (section.kind == SectionKind::signature) section.digest = {}, section.checksum = 0;
  const HeaderBytes bytes = encode_header(header);
  return digest_of(std::span(bytes).first(kDigestOffset));
}

Result<PlanHeader> read_header(std::span<const std::byte> bytes) {
  const size_t prefix = foreign_prefix_bytes(bytes);
  const std::span<const std::byte> plan = bytes.subspan(prefix);
  if (plan.size() < 16 || std::memcmp(plan.data(), kMagic.data(), kMagic.size()) != 0)
    return not_a_plan(plan.empty() ? bytes : plan);
  if (const uint32_t format = get<uint32_t>(plan, 8); format != kFormatVersion)
    return fail(ErrorCode::plan_version,
                "plan has format version {}, this library reads version {}; build the engine again", format,
                kFormatVersion);
  if (const uint32_t size = get<uint32_t>(plan, 12); size != kHeaderBytes)
    return fail(ErrorCode::plan_malformed, "plan's header claims {} bytes, format version 1 has {}", size,
                kHeaderBytes);
  if (plan.size() < kHeaderBytes)
    return fail(ErrorCode::plan_malformed, "the plan is truncated: {} bytes, the header alone has {}", plan.size(),
                kHeaderBytes);
  const Digest digest = digest_of(plan.first(kDigestOffset));
  if (std::memcmp(digest.data(), plan.data() + kDigestOffset, digest.size()) != 0)
    return fail(ErrorCode::plan_digest,
                "the plan's header is damaged: its digest does not match; copy or build the plan again");
  LATHE_ASSIGN(PlanHeader header, decode(plan.first(kHeaderBytes)));
  header.prefix_bytes = prefix;
  LATHE_TRY(check_sections(header));
  if (header.plan_bytes != plan.size())
    return fail(ErrorCode::plan_malformed,
                "the plan should have {} bytes, but {} are here; it was truncated or changed", header.plan_bytes,
                plan.size());
  return header;
}

}  // namespace lathe::plan
