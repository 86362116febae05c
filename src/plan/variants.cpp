// SPDX-License-Identifier: Apache-2.0
#include "plan/variants.h"

#include <algorithm>
#include <map>

#include "base/divide.h"
#include "plan/limits.h"
#include "plan/reader.h"
#include "plan/sections.h"

namespace lathe::plan {
namespace {

// Bytes of a variant's weights: where they are in the weights that all share. The next piece of the variant begins at
// the first multiple of 64 behind this one.
struct Piece {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct Variant {
  std::span<const std::byte> plan;  // without its weights
  std::vector<Piece> pieces;
};

// The section: how many variants, an entry for each, their pieces, their plans.
struct Entry {
  uint64_t offset = 0, bytes = 0;  // of the plan, in the section
  uint64_t pieces = 0;
};
constexpr size_t kWords = 3;  // of an entry
static_assert(sizeof(Entry) == kWords * sizeof(uint64_t));

tl::unexpected<Error> malformed(const char* what) {
  return fail(ErrorCode::plan_malformed, "the plan's variants are damaged: {}", what);
}

class WordReader {
 public:
  explicit WordReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  size_t left() const { return bytes_.size() / sizeof(uint64_t); }
  uint64_t next() {
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof value; ++i) value |= std::to_integer<uint64_t>(bytes_[i]) << (8 * i);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
};

void put_word(std::vector<std::byte>& bytes, uint64_t value) {
  for (size_t i = 0; i < sizeof value; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
}

uint64_t plans_begin(size_t variants, size_t pieces) {
  return round_up((1 + kWords * variants + 2 * pieces) * sizeof(uint64_t), uint64_t{kCodeAlignment});
}

std::vector<std::byte> encode(std::span<const Variant> variants) {
  std::vector<std::byte> bytes;
  size_t pieces = 0;
  for (const Variant& variant : variants) pieces += variant.pieces.size();
  put_word(bytes, variants.size());
  uint64_t end = plans_begin(variants.size(), pieces);
  for (const Variant& variant : variants) {
    put_word(bytes, round_up(end, uint64_t{kCodeAlignment}));
    put_word(bytes, variant.plan.size());
    put_word(bytes, variant.pieces.size());
    end = round_up(end, uint64_t{kCodeAlignment}) + variant.plan.size();
  }
  for (const Variant& variant : variants)
    for (const Piece& piece : variant.pieces) put_word(bytes, piece.offset), put_word(bytes, piece.bytes);
  for (const Variant& variant : variants) {
    bytes.resize(round_up(bytes.size(), size_t{kCodeAlignment}));
    bytes.insert(bytes.end(), variant.plan.begin(), variant.plan.end());
  }
  return bytes;
}

// No variant has a byte twice, so that none is larger than the file.
bool overlap(std::vector<Piece> pieces) {
  std::ranges::sort(pieces, {}, &Piece::offset);
  return std::ranges::adjacent_find(
             pieces, [](const Piece& a, const Piece& b) { return b.offset - a.offset < a.bytes; }) != pieces.end();
}

Result<std::vector<Variant>> decode(std::span<const std::byte> section, uint64_t weights) {
  WordReader words(section);
  const uint64_t count = words.left() > 0 ? words.next() : 0;
  if (count == 0 || count > kMaxVariants || words.left() < kWords * count) return malformed("their number");
  std::vector<Entry> entries(count);
  uint64_t pieces = 0;
  for (Entry& entry : entries) {
    entry.offset = words.next(), entry.bytes = words.next(), entry.pieces = words.next();
    if (entry.pieces > kMaxEntries) return malformed("the number of pieces");
    pieces += entry.pieces;
  }
  if (words.left() / 2 < pieces) return malformed("the number of pieces");
  std::vector<Variant> variants(count);
  uint64_t end = plans_begin(count, pieces);
  for (size_t i = 0; i < count; ++i) {
    if (entries[i].offset != round_up(end, uint64_t{kCodeAlignment}) || entries[i].offset > section.size() ||
        entries[i].bytes > section.size() - entries[i].offset)
      return malformed("the place of a plan");
    end = entries[i].offset + entries[i].bytes;
    variants[i].plan = section.subspan(entries[i].offset, entries[i].bytes);
    variants[i].pieces.resize(entries[i].pieces);
    for (Piece& piece : variants[i].pieces) {
      piece.offset = words.next(), piece.bytes = words.next();
      if (piece.bytes == 0 || piece.offset > weights || piece.bytes > weights - piece.offset)
        return malformed("a piece of the weights");
    }
    if (overlap(variants[i].pieces)) return malformed("pieces of the weights overlap");
  }
  if (end != section.size()) return malformed("their size");
  return variants;
}

// What the section of weights is made of; empty where it is not of pieces that begin at multiples of 64 with zeros
// between them.
std::vector<std::span<const std::byte>> pieces_of(const Plan& plan) {
  std::vector<std::pair<uint64_t, uint64_t>> windows;
  for (const Constant& constant : plan.constants)
    if (!constant.stripped && constant.bytes > 0) windows.emplace_back(constant.offset, constant.bytes);
  std::ranges::sort(windows);
  windows.erase(std::unique(windows.begin(), windows.end()), windows.end());
  std::vector<std::span<const std::byte>> pieces;
  uint64_t end = 0;
  for (const auto& [offset, bytes] : windows) {
    const auto gap = plan.weights.subspan(std::min<uint64_t>(end, offset), offset - std::min<uint64_t>(end, offset));
    const bool is_zero = std::ranges::all_of(gap, [](std::byte b) { return b == std::byte{0}; });
    if (offset != round_up(end, uint64_t{kConstantAlignment}) || !is_zero) return {};
    pieces.push_back(plan.weights.subspan(offset, bytes));
    end = offset + bytes;
  }
  return end == plan.weights.size() ? pieces : std::vector<std::span<const std::byte>>();
}

// Weights of several plans, each piece once.
class SharedWeights {
 public:
  std::vector<Piece> add(const Plan& plan) {
    std::vector<std::span<const std::byte>> parts = pieces_of(plan);
    if (parts.empty() && !plan.weights.empty()) parts.push_back(plan.weights);
    std::vector<Piece> pieces;
    std::map<Digest, size_t> uses;  // of equal pieces a variant has each by itself
    for (const auto& part : parts) {
      const Digest digest = digest_of(part);
      pieces.push_back({place(part, {digest, uses[digest]++}), part.size()});
    }
    return pieces;
  }
  uint64_t size() const { return end_; }
  void write(std::span<std::byte> to) const {
    for (const auto& [offset, part] : parts_) std::ranges::copy(part, to.begin() + static_cast<ptrdiff_t>(offset));
  }

 private:
  using Key = std::pair<Digest, size_t>;
  uint64_t place(std::span<const std::byte> part, const Key& key) {
    const auto [known, is_new] = places_.try_emplace(key, round_up(end_, uint64_t{kConstantAlignment}));
    if (is_new) {
      parts_.emplace_back(known->second, part);
      end_ = known->second + part.size();
    }
    return known->second;
  }

  uint64_t end_ = 0;
  std::map<Key, uint64_t> places_;
  std::vector<std::pair<uint64_t, std::span<const std::byte>>> parts_;
};

// The plan with its weights elsewhere: what is before them, for they are last.
std::vector<std::byte> without_weights(std::span<const std::byte> plan, PlanHeader header) {
  std::erase_if(header.sections, [](const Section& s) { return s.name == kSignature; });
  header.prefix_bytes = 0;
  for (Section& section : header.sections)
    if (section.name == kWeights) section.detached = true, section.offset = 0;
  place_sections(header);
  std::vector<std::byte> bytes(plan.begin(), plan.begin() + static_cast<ptrdiff_t>(header.plan_bytes));
  std::ranges::copy(encode_header(header), bytes.begin());
  return bytes;
}

Result<> check_mergeable(const PlanHeader& header, const PlanHeader& first) {
  if (header.version != first.version || header.compatibility != first.compatibility ||
      header.record_format != first.record_format || header.metadata_format != first.metadata_format)
    return fail(ErrorCode::invalid_argument, "plans of different versions cannot be merged: {} for '{}', {} for '{}'",
                first.version.to_string(), first.target, header.version.to_string(), header.target);
  for (const Section& section : header.sections)
    if (section.trust == TrustClass::host_code || section.detached)
      return fail(ErrorCode::invalid_argument, "the plan for '{}' cannot be merged, for its section '{}' is {}",
                  header.target, section.name,
                  section.detached ? "in another file" : "code for the host: leave it out (kEXCLUDE_LEAN_RUNTIME)");
  return {};
}

bool is_alike(const Plan& a, const Plan& b) {
  const auto same = [&](const Binding& x, const Binding& y) {
    return x.name == y.name && x.is_input == y.is_input && a.tensors[x.tensor].dtype == b.tensors[y.tensor].dtype &&
           a.tensors[x.tensor].dims.size() == b.tensors[y.tensor].dims.size();
  };
  return a.profiles.size() == b.profiles.size() && std::ranges::equal(a.bindings, b.bindings, same);
}

struct Merging {
  std::vector<std::vector<std::byte>> plans;  // of one target each
  std::vector<LoadedPlan> loaded;
};

Result<Merging> read_all(std::span<const std::span<const std::byte>> plans) {
  Merging merging;
  for (const std::span<const std::byte> plan : plans) {
    LATHE_ASSIGN(const PlanHeader header, read_header(plan));
    for (size_t i = 0; i < targets_of(header).size(); ++i) {
      LATHE_ASSIGN(merging.plans.emplace_back(), take_variant(plan, i));
    }
  }
  for (const std::vector<std::byte>& plan : merging.plans) {
    LATHE_ASSIGN(const PlanHeader header, read_header(plan));
    LATHE_ASSIGN(const PlanHeader first, read_header(merging.plans.front()));
    LATHE_TRY(check_mergeable(header, first));
    ReadOptions options;
    options.version = header.version;
    LATHE_ASSIGN(LoadedPlan loaded, read_plan(plan, nullptr, options));
    if (!merging.loaded.empty() && !is_alike(loaded.plan, merging.loaded.front().plan))
      return fail(ErrorCode::invalid_argument, "the plans for '{}' and '{}' have other inputs, outputs or profiles",
                  first.target, header.target);
    merging.loaded.push_back(std::move(loaded));
  }
  return merging;
}

Result<std::string> join_targets(const Merging& merging) {
  std::string targets;
  std::vector<std::string> seen;
  for (const LoadedPlan& loaded : merging.loaded) {
    const std::string& target = loaded.plan.target;
    if (std::ranges::count(seen, target) > 0)
      return fail(ErrorCode::invalid_argument, "two plans are for '{}': leave one out", target);
    seen.push_back(target);
    targets += (targets.empty() ? "" : ",") + target;
  }
  if (seen.empty() || seen.size() > kMaxVariants || targets.size() > kMaxTarget)
    return fail(ErrorCode::invalid_argument,
                "{} plans, for '{}', cannot be merged: 1 to {}, whose targets have {} letters", seen.size(), targets,
                kMaxVariants, kMaxTarget);
  return targets;
}

}  // namespace

std::vector<std::string> targets_of(const PlanPrefix& header) {
  std::vector<std::string> targets;
  for (size_t begin = 0; begin <= header.target.size();) {
    const size_t end = std::min(header.target.find(',', begin), header.target.size());
    targets.push_back(header.target.substr(begin, end - begin));
    begin = end + 1;
  }
  return targets;
}

Result<std::vector<std::byte>> merge_plans(std::span<const std::span<const std::byte>> plans) {
  LATHE_ASSIGN(const Merging merging, read_all(plans));
  LATHE_ASSIGN(std::string targets, join_targets(merging));
  if (merging.plans.size() == 1) return merging.plans.front();
  SharedWeights weights;
  std::vector<std::vector<std::byte>> bare;
  std::vector<Variant> variants;
  LATHE_ASSIGN(const PlanHeader first, read_header(merging.plans.front()));
  PlanHeader header = first;
  header.target = std::move(targets);
  header.hardware_compatibility = HardwareCompatibility::none;
  header.hardware = {};
  header.sections.clear();
  for (size_t i = 0; i < merging.plans.size(); ++i) {
    LATHE_ASSIGN(const PlanHeader own, read_header(merging.plans[i]));
    header.flags |= own.flags;
    bare.push_back(without_weights(merging.plans[i], own));
    variants.push_back({bare.back(), weights.add(merging.loaded[i].plan)});
  }
  const std::vector<std::byte> section = encode(variants);
  std::vector<std::byte> content(weights.size());
  weights.write(content);
  seal(header.sections.emplace_back(named_section(kVariants)), section);
  if (!content.empty()) seal(header.sections.emplace_back(named_section(kWeights)), content);
  place_sections(header);
  std::vector<std::byte> bytes(header.plan_bytes);
  const auto put = [&](std::span<const std::byte> from, uint64_t offset) {
    std::ranges::copy(from, bytes.begin() + static_cast<ptrdiff_t>(offset));
  };
  put(encode_header(header), 0);
  put(section, header.sections.front().offset);
  if (!content.empty()) put(content, header.sections.back().offset);
  return bytes;
}

Result<std::vector<std::byte>> take_variant(std::span<const std::byte> plan, size_t index) {
  LATHE_ASSIGN(const PlanHeader header, read_header(plan));
  plan = plan.subspan(header.prefix_bytes);
  const Section* const section = header.find(kVariants);
  if (!section) return std::vector(plan.begin(), plan.end());
  LATHE_TRY(check_sections(plan, header, {}));
  const Section* const shared = header.find(kWeights);
  const auto weights = shared ? plan.subspan(shared->offset, shared->bytes) : std::span<const std::byte>();
  LATHE_ASSIGN(const std::vector<Variant> variants,
               decode(plan.subspan(section->offset, section->bytes), weights.size()));
  const std::vector<std::string> targets = targets_of(header);
  if (targets.size() != variants.size() || index >= variants.size()) return malformed("their number");
  const Variant& variant = variants[index];
  LATHE_ASSIGN(PlanHeader own, read_header(variant.plan));
  if (own.target != targets[index] || own.prefix_bytes > 0 || own.find(kVariants)) return malformed("a target");
  uint64_t own_weights = 0;
  for (Section& each : own.sections)
    if (each.name == kWeights) each.detached = false, own_weights = each.bytes;
  uint64_t end = 0;
  for (const Piece& piece : variant.pieces) end = round_up(end, uint64_t{kConstantAlignment}) + piece.bytes;
  if (end != own_weights) return malformed("the pieces of a plan's weights");
  place_sections(own);
  if (own.plan_bytes < variant.plan.size() || own.plan_bytes < own_weights) return malformed("the size of a plan");
  std::vector<std::byte> bytes(own.plan_bytes);
  std::ranges::copy(variant.plan, bytes.begin());
  std::ranges::copy(encode_header(own), bytes.begin());
  const std::span<std::byte> own_content = std::span(bytes).last(own_weights);
  end = 0;
  for (const Piece& piece : variant.pieces) {
    end = round_up(end, uint64_t{kConstantAlignment});
    std::ranges::copy(weights.subspan(piece.offset, piece.bytes), own_content.begin() + static_cast<ptrdiff_t>(end));
    end += piece.bytes;
  }
  return bytes;
}

}  // namespace lathe::plan
