// SPDX-License-Identifier: Apache-2.0
#include "wrapper/record.h"

#include <sodium.h>

#include <algorithm>
#include <charconv>

namespace lathe::wrapper {
namespace {

constexpr char kSeparator = '%';
// Records of another program's later layout have the slots up to this one, and behind them what the engine itself says.
constexpr std::string_view kLaterAbi = "10";
constexpr size_t kLaterLength = 13;
constexpr size_t kBytesShown = 200;

constexpr const char* kNames[] = {
#define LATHE_RECORD_SLOT(name) #name,
    LATHE_RECORD_SLOTS(LATHE_RECORD_SLOT)
#undef LATHE_RECORD_SLOT
};
static_assert(std::size(kNames) == SERIALIZATION_LEN);

std::string shown(std::string_view text) {
  return text.size() <= kBytesShown ? std::string(text) : fmt::format("{}...", text.substr(0, kBytesShown));
}

tl::unexpected<Error> malformed(RecordSlot slot, std::string_view text, std::string_view wanted) {
  return fail(ErrorCode::plan_malformed,
              "slot {} ({}) of the record is '{}', and should be {}: the record is damaged, or was not written by an "
              "engine wrapper; write it again",
              int{slot}, kNames[slot], shown(text), wanted);
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(kSeparator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<std::string> join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (part.find(kSeparator) != std::string::npos || part.empty())
      return fail(ErrorCode::invalid_argument,
                  "'{}' cannot be in a list of a record, whose separator is '{}': rename it in the network", part,
                  kSeparator);
    if (!text.empty()) text += kSeparator;
    text += part;
  }
  return text;
}

bool parse_number(std::string_view text, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

Result<int64_t> number_at(const EngineRecord& record, RecordSlot slot) {
  int64_t number = 0;
  // As it is written: "01" would come back as "1".
  if (!parse_number(record[slot], number) || std::to_string(number) != record[slot])
    return malformed(slot, record[slot], "a number");
  return number;
}

Result<bool> truth_at(const EngineRecord& record, RecordSlot slot) {
  if (record[slot] != "0" && record[slot] != "1") return malformed(slot, record[slot], "0 or 1");
  return record[slot] == "1";
}

Result<EngineTarget> target_at(const EngineRecord& record) {
  constexpr std::string_view kWanted = "id%major%minor%kind%name, five fields of which the first four are numbers";
  const std::string& text = record[DEVICE_IDX];
  const std::vector<std::string> parts = split(text);
  int64_t numbers[4] = {};
  if (parts.size() != 5) return malformed(DEVICE_IDX, text, kWanted);
  for (size_t i = 0; i < 4; ++i)
    if (!parse_number(parts[i], numbers[i]) || std::to_string(numbers[i]) != parts[i] || numbers[i] < 0 ||
        numbers[i] > INT32_MAX)
      return malformed(DEVICE_IDX, text, kWanted);
  if (numbers[3] > static_cast<int64_t>(EngineTarget::Kind::kCPU))
    return malformed(DEVICE_IDX, text, "of kind 0 (GPU), 1 (DLA) or 2 (CPU)");
  return EngineTarget{static_cast<int32_t>(numbers[0]), static_cast<int32_t>(numbers[1]),
                      static_cast<int32_t>(numbers[2]), static_cast<EngineTarget::Kind>(numbers[3]), parts[4]};
}

Result<std::string> plan_at(const EngineRecord& record) {
  const std::string& text = record[ENGINE_IDX];
  std::string plan(text.size() / 4 * 3 + 3, '\0');
  size_t bytes = 0;
  const char* end = nullptr;
  if (text.empty() ||
      sodium_base642bin(reinterpret_cast<unsigned char*>(plan.data()), plan.size(), text.data(), text.size(), nullptr,
                        &bytes, &end, sodium_base64_VARIANT_ORIGINAL) != 0 ||
      end != text.data() + text.size())
    return malformed(ENGINE_IDX, text, "a plan in base64");
  plan.resize(bytes);
  return plan;
}

std::string base64(std::string_view bytes) {
  // With a zero behind it, which the string has anyway.
  std::string text(sodium_base64_encoded_len(bytes.size(), sodium_base64_VARIANT_ORIGINAL) - 1, '\0');
  sodium_bin2base64(text.data(), text.size() + 1, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                    sodium_base64_VARIANT_ORIGINAL);
  return text;
}

Result<> check_platform(const std::string& text) {
  constexpr std::string_view kKnown[] = {"linux_x86_64", "linux_aarch64", "windows_x86_64", "windows_arm64"};
  if (std::find(std::begin(kKnown), std::end(kKnown), text) == std::end(kKnown))
    return malformed(TARGET_PLATFORM_IDX, text, "linux_x86_64, linux_aarch64, windows_x86_64 or windows_arm64");
  if (text == platform()) return {};
  return fail(ErrorCode::plan_target, "the engine is for {}, and this is {}: build it here", text, platform());
}

// Slots of settings mean nothing where the writer did not know them.
Result<> read_settings(const EngineRecord& record, RecordContent& content) {
  LATHE_ASSIGN(content.has_settings, truth_at(record, HAS_RUNTIME_CFG_IDX));
  if (!content.has_settings) return {};
  content.settings.cache_path = record[RUNTIME_CACHE_PATH_IDX];
  const auto in_slot = [](RecordSlot slot, Error error) {
    error.code = ErrorCode::plan_malformed;
    return with_context(std::move(error), fmt::format("slot {} ({}) of the record", int{slot}, kNames[slot]));
  };
  LATHE_ASSIGN(const int64_t specialization, number_at(record, DYNAMIC_SHAPES_KERNEL_SPECIALIZATION_STRATEGY_IDX));
  const Result<Specialization> known = specialization_of(specialization);
  if (!known) return fail(in_slot(DYNAMIC_SHAPES_KERNEL_SPECIALIZATION_STRATEGY_IDX, known.error()));
  content.settings.specialization = *known;
  LATHE_ASSIGN(const int64_t graphs, number_at(record, CUDA_GRAPH_STRATEGY_IDX));
  const Result<GraphStrategy> strategy = graph_strategy_of(graphs);
  if (!strategy) return fail(in_slot(CUDA_GRAPH_STRATEGY_IDX, strategy.error()));
  content.settings.graphs = *strategy;
  return {};
}

Result<> check_layout_of(const EngineRecord& record) {
  const std::string_view abi = record.empty() ? "" : std::string_view(record[ABI_TARGET_IDX]);
  if (abi == kLaterAbi && record.size() == kLaterLength) return {};
  // Of another version the length says nothing.
  if (!record.empty() && abi != kRecordAbi)
    return fail(ErrorCode::plan_version,
                "the record has ABI '{}', and this library reads '{}': write the record with this version", shown(abi),
                kRecordAbi);
  if (record.size() != SERIALIZATION_LEN)
    return fail(ErrorCode::plan_version,
                "the record has {} slots, and this library reads {}: write the record with this version", record.size(),
                int{SERIALIZATION_LEN});
  return {};
}

}  // namespace

std::span<const char* const> slot_names() { return kNames; }

std::string_view platform() {
#if defined(__linux__) && defined(__x86_64__)
  return "linux_x86_64";
#elif defined(__linux__) && defined(__aarch64__)
  return "linux_aarch64";
#else
  return "unknown";
#endif
}

std::string record_name(std::string name) {
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

Result<RecordContent> read_record(const EngineRecord& record) {
  LATHE_TRY(check_layout_of(record));
  LATHE_TRY(check_platform(record[TARGET_PLATFORM_IDX]));
  RecordContent content;
  EngineFields& fields = content.fields;
  if (record.size() == SERIALIZATION_LEN) LATHE_TRY(read_settings(record, content));
  fields.name = record[NAME_IDX];
  LATHE_ASSIGN(fields.target, target_at(record));
  fields.inputs = split(record[INPUT_BINDING_NAMES_IDX]);
  fields.outputs = split(record[OUTPUT_BINDING_NAMES_IDX]);
  LATHE_ASSIGN(fields.hardwareCompatible, truth_at(record, HW_COMPATIBLE_IDX));
  fields.metadata = record[SERIALIZED_METADATA_IDX];
  LATHE_ASSIGN(fields.needsOutputAllocator, truth_at(record, REQUIRES_OUTPUT_ALLOCATOR_IDX));
  LATHE_ASSIGN(const int64_t allocation, number_at(record, RESOURCE_ALLOCATION_STRATEGY_IDX));
  if (allocation != 0 && allocation != 1)
    return malformed(RESOURCE_ALLOCATION_STRATEGY_IDX, record[RESOURCE_ALLOCATION_STRATEGY_IDX],
                     "0 (static) or 1 (dynamic)");
  fields.allocation = static_cast<ResourceAllocation>(allocation);
  LATHE_ASSIGN(fields.needsMultiDevice, truth_at(record, REQUIRES_NATIVE_MULTIDEVICE_IDX));
  LATHE_ASSIGN(content.plan, plan_at(record));
  return content;
}

Result<EngineRecord> write_record(const RecordContent& content) {
  const EngineFields& fields = content.fields;
  const auto truth = [](bool is_true) { return std::string(is_true ? "1" : "0"); };
  const EngineSettings settings = content.has_settings ? content.settings : EngineSettings();
  if (fields.target.name.find(kSeparator) != std::string::npos)
    return fail(ErrorCode::invalid_argument, "the product '{}' cannot be in a record, whose separator is '{}'",
                fields.target.name, kSeparator);
  EngineRecord record(SERIALIZATION_LEN);
  record[ABI_TARGET_IDX] = kRecordAbi;
  record[NAME_IDX] = fields.name;
  record[DEVICE_IDX] = fmt::format("{}%{}%{}%{}%{}", fields.target.id, fields.target.major, fields.target.minor,
                                   static_cast<int>(fields.target.kind), fields.target.name);
  record[ENGINE_IDX] = base64(content.plan);
  LATHE_ASSIGN(record[INPUT_BINDING_NAMES_IDX], join(fields.inputs));
  LATHE_ASSIGN(record[OUTPUT_BINDING_NAMES_IDX], join(fields.outputs));
  record[HW_COMPATIBLE_IDX] = truth(fields.hardwareCompatible);
  record[SERIALIZED_METADATA_IDX] = fields.metadata;
  record[TARGET_PLATFORM_IDX] = platform();
  record[REQUIRES_OUTPUT_ALLOCATOR_IDX] = truth(fields.needsOutputAllocator);
  record[RESOURCE_ALLOCATION_STRATEGY_IDX] = std::to_string(static_cast<int>(fields.allocation));
  record[REQUIRES_NATIVE_MULTIDEVICE_IDX] = truth(fields.needsMultiDevice);
  record[HAS_RUNTIME_CFG_IDX] = truth(content.has_settings);
  record[RUNTIME_CACHE_PATH_IDX] = settings.cache_path;
  record[DYNAMIC_SHAPES_KERNEL_SPECIALIZATION_STRATEGY_IDX] = std::to_string(static_cast<int>(settings.specialization));
  record[CUDA_GRAPH_STRATEGY_IDX] = std::to_string(static_cast<int>(settings.graphs));
  return record;
}

Result<> compare_layout(const char* const* names, int32_t count, const char* abi) {
  if (!names || !abi || count < 0) return fail(ErrorCode::invalid_argument, "a layout has names and an ABI, not null");
  const auto differs = [](int32_t slot, std::string_view theirs, std::string_view ours) {
    return fail(ErrorCode::plan_version,
                "slot {} of records is {} for the program and {} for liblathe_wrapper: use header and library of one "
                "version",
                slot, theirs, ours);
  };
  for (int32_t i = 0; i < std::max<int32_t>(count, SERIALIZATION_LEN); ++i) {
    const std::string_view theirs = i >= count ? "none" : names[i] ? names[i] : "without a name";
    const std::string_view ours = i < SERIALIZATION_LEN ? kNames[i] : "none";
    if (theirs != ours) return differs(i, theirs, ours);
  }
  if (std::string_view(abi) == kRecordAbi) return {};
  return fail(ErrorCode::plan_version,
              "records have ABI '{}' for the program and '{}' for liblathe_wrapper: use header and library of one "
              "version",
              abi, kRecordAbi);
}

std::string record_text(const EngineRecord& record) {
  std::string text;
  for (size_t i = 0; i < record.size(); ++i) {
    const std::string name = i < SERIALIZATION_LEN ? kNames[i] : fmt::format("slot {}", i);
    std::string value = fmt::format("'{}'", shown(record[i]));
    if (i == ENGINE_IDX) {
      const Result<std::string> plan = plan_at(record);
      value = plan ? fmt::format("{} bytes", plan->size())
                   : fmt::format("{} characters that are no plan in base64", record[i].size());
    }
    text += fmt::format("{}: {}\n", name, value);
  }
  return text;
}

}  // namespace lathe::wrapper
