// SPDX-License-Identifier: Apache-2.0
#include "plan/variants.h"

#include <algorithm>
#include <deque>

#include "base/divide.h"
#include "plan/limits.h"
#include "plan/reader.h"
#include "plan/sections.h"
#include "plan/words.h"

namespace lathe::plan {
namespace {

// The next piece of a variant's weights begins at the first multiple of 64 behind this one.
struct Variant {
  std::span<const std::byte> plan;  // without its weights
  std::vector<WeightsWindow> pieces;
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
    for (const WeightsWindow& piece : variant.pieces) put_word(bytes, piece.offset), put_word(bytes, piece.bytes);
  for (const Variant& variant : variants) {
    bytes.resize(round_up(bytes.size(), size_t{kCodeAlignment}));
    bytes.insert(bytes.end(), variant.plan.begin(), variant.plan.end());
  }
  return bytes;
}

// The derived piece of this place; null = there is none.
const DerivedPiece* find(std::span<const DerivedPiece> derived, const WeightsWindow& place) {
  const auto found = std::ranges::lower_bound(derived, place.offset, {}, [](const auto& d) { return d.place.offset; });
  const bool is_it = found != derived.end() && found->place.offset == place.offset && found->place.bytes == place.bytes;
  return is_it ? &*found : nullptr;
}

// No variant has a byte twice, or derives of one twice: none is larger than three times the file.
Result<> check_pieces(const Variant& variant, uint64_t weights, std::span<const DerivedPiece> derived) {
  std::vector<WeightsWindow> sources;
  for (const WeightsWindow& piece : variant.pieces) {
    const DerivedPiece* const made = find(derived, piece);
    if (made) sources.push_back(made->source);
    if (!made && (piece.bytes == 0 || piece.offset > weights || piece.bytes > weights - piece.offset))
      return malformed("a piece of the weights");
  }
  if (overlap(variant.pieces)) return malformed("pieces of the weights overlap");
  if (overlap(std::move(sources))) return malformed("two pieces of the weights are derived of the same");
  return {};
}

Result<std::vector<Variant>> decode(std::span<const std::byte> section, uint64_t weights,
                                    std::span<const DerivedPiece> derived) {
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
    for (WeightsWindow& piece : variants[i].pieces) piece.offset = words.next(), piece.bytes = words.next();
    LATHE_TRY(check_pieces(variants[i], weights, derived));
  }
  if (end != section.size()) return malformed("their size");
  return variants;
}

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
  std::deque<std::vector<std::byte>> taken;       // of plans that were merged already
  std::vector<std::span<const std::byte>> plans;  // of one target each
  std::vector<LoadedPlan> loaded;
};

Result<Merging> read_all(std::span<const std::span<const std::byte>> plans) {
  Merging merging;
  for (const std::span<const std::byte> plan : plans) {
    LATHE_ASSIGN(const PlanHeader header, read_header(plan));
    if (!header.find(kVariants)) {
      merging.plans.push_back(plan.subspan(header.prefix_bytes));
      continue;
    }
    for (size_t i = 0; i < targets_of(header).size(); ++i) {
      LATHE_ASSIGN(merging.taken.emplace_back(), take_variant(plan, i));
      merging.plans.emplace_back(merging.taken.back());
    }
  }
  for (const std::span<const std::byte> plan : merging.plans) {
    LATHE_ASSIGN(const PlanHeader header, read_header(plan));
    LATHE_ASSIGN(const PlanHeader first, read_header(merging.plans.front()));
    LATHE_TRY(check_mergeable(header, first));
    ReadOptions options;
    options.version = header.version;
    options.borrows_weights = true;
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

// Of a plan that has variants, without its foreign prefix.
struct Parts {
  std::span<const std::byte> weights;
  std::vector<DerivedPiece> derived;
  std::vector<Variant> variants;
};

Result<Parts> read_parts(std::span<const std::byte> plan, const PlanHeader& header) {
  const auto content = [&](std::string_view name) {
    const Section* const section = header.find(name);
    return section ? plan.subspan(section->offset, section->bytes) : std::span<const std::byte>();
  };
  Parts parts{content(kWeights), {}, {}};
  if (header.find(kDerivedWeights)) {
    LATHE_ASSIGN(parts.derived, decode_derived(content(kDerivedWeights), parts.weights.size()));
  }
  LATHE_ASSIGN(parts.variants, decode(content(kVariants), parts.weights.size(), parts.derived));
  return parts;
}

// Where each piece is in the weights of the variant; the last is where they end.
std::vector<uint64_t> places_in(const Variant& variant) {
  std::vector<uint64_t> places;
  uint64_t end = 0;
  for (const WeightsWindow& piece : variant.pieces) {
    places.push_back(round_up(end, uint64_t{kConstantAlignment}));
    end = places.back() + piece.bytes;
  }
  places.push_back(end);
  return places;
}

// Derives what is to be derived; `to` is zeros.
void write_weights(const Parts& parts, const Variant& variant, std::span<std::byte> to, int threads) {
  const std::vector<uint64_t> places = places_in(variant);
  std::vector<Derivative> derivatives;
  for (size_t i = 0; i < variant.pieces.size(); ++i) {
    const WeightsWindow& piece = variant.pieces[i];
    if (const DerivedPiece* const made = find(parts.derived, piece))
      derivatives.push_back({made, to.data() + places[i]});
    else
      std::ranges::copy(parts.weights.subspan(piece.offset, piece.bytes),
                        to.begin() + static_cast<ptrdiff_t>(places[i]));
  }
  derive(derivatives, parts.weights, threads);
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

Result<std::vector<std::byte>> merge_plans(std::span<const std::span<const std::byte>> plans, Sharing sharing) {
  LATHE_ASSIGN(const Merging merging, read_all(plans));
  LATHE_ASSIGN(std::string targets, join_targets(merging));
  if (merging.plans.size() == 1) return std::vector(merging.plans.front().begin(), merging.plans.front().end());
  std::vector<const Plan*> loaded;
  for (const LoadedPlan& each : merging.loaded) loaded.push_back(&each.plan);
  LATHE_ASSIGN(const SharedWeights weights, share_weights(loaded, sharing));
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
    variants.push_back({bare.back(), weights.pieces[i]});
  }
  const std::vector<std::byte> plans_of_targets = encode(variants);
  const std::vector<std::byte> derived =
      weights.derived.empty() ? std::vector<std::byte>() : encode_derived(weights.derived);
  const auto add = [&](std::string_view name, uint64_t size) {
    if (size > 0) header.sections.emplace_back(named_section(name)).bytes = size;
  };
  add(kVariants, plans_of_targets.size());
  add(kDerivedWeights, derived.size());
  add(kWeights, weights.bytes);
  place_sections(header);
  std::vector<std::byte> bytes(header.plan_bytes);
  for (Section& section : header.sections) {
    const std::span<std::byte> content = std::span(bytes).subspan(section.offset, section.bytes);
    if (section.name == kWeights)
      weights.write(content);
    else
      std::ranges::copy(section.name == kVariants ? plans_of_targets : derived, content.begin());
    section.in_pieces = section.name == kWeights && section.bytes > kHashedPiece;
    seal(section, content);
  }
  std::ranges::copy(encode_header(header), bytes.begin());
  return bytes;
}

Result<std::vector<std::byte>> take_variant(std::span<const std::byte> plan, size_t index, int threads) {
  std::vector<std::byte> bytes;
  LATHE_TRY(take_variant(plan, index, threads, [&](size_t size) -> Result<std::span<std::byte>> {
    bytes.resize(size);
    return bytes;
  }));
  return bytes;
}

Result<> take_variant(std::span<const std::byte> plan, size_t index, int threads, const GetMemory& memory) {
  LATHE_ASSIGN(const PlanHeader header, read_header(plan));
  plan = plan.subspan(header.prefix_bytes);
  if (!header.find(kVariants)) {
    LATHE_ASSIGN(const std::span<std::byte> copy, memory(plan.size()));
    std::ranges::copy(plan, copy.begin());
    return {};
  }
  LATHE_TRY(check_sections(plan, header, {}, threads));
  LATHE_ASSIGN(const Parts parts, read_parts(plan, header));
  const std::vector<std::string> targets = targets_of(header);
  if (targets.size() != parts.variants.size() || index >= targets.size()) return malformed("their number");
  const Variant& variant = parts.variants[index];
  LATHE_ASSIGN(PlanHeader own, read_header(variant.plan));
  if (own.target != targets[index] || own.prefix_bytes > 0 || own.find(kVariants)) return malformed("a target");
  uint64_t own_weights = 0;
  for (Section& each : own.sections)
    if (each.name == kWeights) each.detached = false, own_weights = each.bytes;
  if (places_in(variant).back() != own_weights) return malformed("the pieces of a plan's weights");
  place_sections(own);
  if (own.plan_bytes < variant.plan.size() || own.plan_bytes < own_weights) return malformed("the size of a plan");
  LATHE_ASSIGN(const std::span<std::byte> bytes, memory(own.plan_bytes));
  std::ranges::copy(variant.plan, bytes.begin());
  std::ranges::copy(encode_header(own), bytes.begin());
  write_weights(parts, variant, bytes.last(own_weights), threads);
  return {};
}

Result<std::vector<WeightsWindow>> derived_weights_of(std::span<const std::byte> plan, size_t index) {
  LATHE_ASSIGN(const PlanHeader header, read_header(plan));
  std::vector<WeightsWindow> derived;
  if (!header.find(kVariants)) return derived;
  LATHE_ASSIGN(const Parts parts, read_parts(plan.subspan(header.prefix_bytes), header));
  if (index >= parts.variants.size()) return malformed("their number");
  const Variant& variant = parts.variants[index];
  const std::vector<uint64_t> places = places_in(variant);
  for (size_t i = 0; i < variant.pieces.size(); ++i)
    if (find(parts.derived, variant.pieces[i])) derived.push_back({places[i], variant.pieces[i].bytes});
  return derived;
}

}  // namespace lathe::plan
