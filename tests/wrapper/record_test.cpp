// SPDX-License-Identifier: Apache-2.0
// Records: their layout, which programs in other languages share, and what is refused of them.
#include <algorithm>

#include "wrapper/wrapper_world.h"

namespace lathe {
namespace {

class RecordTest : public WrapperTest {
 protected:
  EngineRecord record_of(EngineWrapper& wrapper) {
    EngineRecord record;
    EXPECT_TRUE(wrapper.record(record)) << wrapperError();
    return record;
  }
  EngineRecord good() {
    if (good_.empty()) good_ = record_of(*wrap({"", "eager", "disabled"}));
    return good_;
  }
  void expect_refused_record(const EngineRecord& record, std::string_view code,
                             std::initializer_list<std::string_view> words) {
    listen(nv::ILogger::Severity::kERROR);
    expect_refused(EngineWrapper::create(shared_, record) != nullptr, code, words);
    EXPECT_EQ(logger.text.size(), 1u) << "one report";
  }
  EngineRecord good_;
};

// S208, S210, S218, S221, S223, S233: each slot has a name, the sentinel comes before the three of settings, and
// accessors tell it all.
TEST_F(RecordTest, Layout) {
  std::vector<std::string> names;
  for (int32_t slot = 0; slot < recordLength(); ++slot) {
    ASSERT_NE(recordSlotName(slot), nullptr);
    names.emplace_back(recordSlotName(slot));
    EXPECT_EQ(recordSlot(recordSlotName(slot)), slot);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
  EXPECT_EQ(recordLength(), 16);
  EXPECT_EQ(recordLength(), SERIALIZATION_LEN);
  EXPECT_STREQ(recordAbi(), "9");
  EXPECT_EQ(recordSlot("HAS_RUNTIME_CFG_IDX"), 12);
  EXPECT_EQ(recordSlot("RUNTIME_CACHE_PATH_IDX"), 13);
  EXPECT_EQ(recordSlot("DYNAMIC_SHAPES_KERNEL_SPECIALIZATION_STRATEGY_IDX"), 14);
  EXPECT_EQ(recordSlot("CUDA_GRAPH_STRATEGY_IDX"), 15);
  EXPECT_EQ(recordSlot("CUDA_GRAPH_STRATEGY"), -1);
  EXPECT_EQ(recordSlot(nullptr), -1);
  EXPECT_EQ(recordSlotName(-1), nullptr);
  EXPECT_EQ(recordSlotName(16), nullptr);
}

// S222, S239: a program whose header is of another layout is told which slot differs.
TEST_F(RecordTest, OtherLayoutsAreFound) {
  EXPECT_TRUE(checkRecordLayout()) << wrapperError();
  std::vector<const char*> names;
  for (int32_t slot = 0; slot < recordLength(); ++slot) names.push_back(recordSlotName(slot));
  const auto check = [&] { return checkRecordLayout(names.data(), static_cast<int32_t>(names.size()), "9"); };
  EXPECT_TRUE(check());
  std::swap(names[13], names[15]);
  expect_refused(check(), "LATHE-4002", {"slot 13", "CUDA_GRAPH_STRATEGY_IDX", "RUNTIME_CACHE_PATH_IDX"});
  std::swap(names[13], names[15]);
  names.push_back("ALIASED_IO_IDX");
  expect_refused(check(), "LATHE-4002", {"slot 16", "ALIASED_IO_IDX", "none"});
  names.resize(15);
  expect_refused(check(), "LATHE-4002", {"slot 15", "CUDA_GRAPH_STRATEGY_IDX"});
  names.push_back(nullptr);
  expect_refused(check(), "LATHE-4002", {"slot 15", "without a name"});
  names[15] = recordSlotName(15);
  expect_refused(checkRecordLayout(names.data(), 16, "10"), "LATHE-4002", {"'10'", "'9'"});
  expect_refused(checkRecordLayout(nullptr, 16, "9"), "LATHE-9001", {});
}

// S216, S209: what is read of a record is written again byte for byte, and runs.
TEST_F(RecordTest, RoundTrip) {
  EngineFields fields = fields_of();
  fields.hardwareCompatible = true;
  for (const RuntimeSettings& settings :
       {RuntimeSettings{}, RuntimeSettings{"/tmp/lathe wrapper%record.cache", "none", "disabled"}}) {
    const std::unique_ptr<EngineWrapper> first = wrap(plan(), fields, settings);
    const EngineRecord record = record_of(*first);
    EXPECT_EQ(record[NAME_IDX], "model_small") << "names of modules lose their dots";
    EXPECT_EQ(record[SERIALIZED_METADATA_IDX], "of the % caller\n");
    EXPECT_EQ(record[HW_COMPATIBLE_IDX], "1");
    const std::unique_ptr<EngineWrapper> second = EngineWrapper::create(shared_, record);
    ASSERT_NE(second, nullptr) << wrapperError();
    EXPECT_EQ(record_of(*second), record);
    EXPECT_EQ(second->settings().specialization, settings.specialization);
    EXPECT_EQ(second->settings().cachePath, settings.cachePath);
    EXPECT_EQ(second->fields().inputs, fields.inputs);
    expect_right(*second, Batch(4));
  }
}

// S219, S234: who knows the slots of settings writes all of them, with the sentinel.
TEST_F(RecordTest, SettingsAreWrittenByWhoKnowsThem) {
  const EngineRecord record = record_of(*wrap({"", "none", "disabled"}));
  ASSERT_EQ(record.size(), 16u);
  EXPECT_EQ(record[HAS_RUNTIME_CFG_IDX], wrapperFeatures().runtimeConfig ? "1" : "0");
  EXPECT_EQ(record[RUNTIME_CACHE_PATH_IDX], "");
  EXPECT_EQ(record[DYNAMIC_SHAPES_KERNEL_SPECIALIZATION_STRATEGY_IDX], wrapperFeatures().runtimeConfig ? "2" : "0");
  EXPECT_EQ(record[CUDA_GRAPH_STRATEGY_IDX], "0");
}

// S220: without the sentinel the slots mean nothing; with it they must be right.
TEST_F(RecordTest, SlotsWithoutTheSentinelAreDefaults) {
  EngineRecord record = good();
  record[HAS_RUNTIME_CFG_IDX] = "0";
  record[RUNTIME_CACHE_PATH_IDX] = "garbage";
  record[DYNAMIC_SHAPES_KERNEL_SPECIALIZATION_STRATEGY_IDX] = "seven";
  record[CUDA_GRAPH_STRATEGY_IDX] = "-3";
  const std::unique_ptr<EngineWrapper> wrapper = EngineWrapper::create(shared_, record);
  ASSERT_NE(wrapper, nullptr) << wrapperError();
  EXPECT_EQ(wrapper->settings().cachePath, "");
  EXPECT_EQ(wrapper->settings().specialization, "lazy");
  EXPECT_EQ(wrapper->settings().cudaGraphs, "disabled");
  const EngineRecord again = record_of(*wrapper);
  EXPECT_EQ(again[HAS_RUNTIME_CFG_IDX], "0") << "the record's writer did not know them";
  EXPECT_EQ(again[RUNTIME_CACHE_PATH_IDX], "");
  EXPECT_EQ(again[CUDA_GRAPH_STRATEGY_IDX], "0");
  for (const char* text : {"seven", "-1", "3", "01", ""}) {
    record[HAS_RUNTIME_CFG_IDX] = "1";
    record[CUDA_GRAPH_STRATEGY_IDX] = "0";
    record[DYNAMIC_SHAPES_KERNEL_SPECIALIZATION_STRATEGY_IDX] = text;
    expect_refused_record(record, "LATHE-4001", {"slot 14 (DYNAMIC_SHAPES_KERNEL_SPECIALIZATION_STRATEGY_IDX)"});
    record[DYNAMIC_SHAPES_KERNEL_SPECIALIZATION_STRATEGY_IDX] = "0";
    record[CUDA_GRAPH_STRATEGY_IDX] = text;
    expect_refused_record(record, "LATHE-4001", {"slot 15 (CUDA_GRAPH_STRATEGY_IDX)"});
  }
}

// S188, S221: other versions and lengths, with both sides named. Later records of 13 slots are read, too.
TEST_F(RecordTest, OtherVersions) {
  EngineRecord record = good();
  record[ABI_TARGET_IDX] = "8";
  expect_refused_record(record, "LATHE-4002", {"'8'", "'9'"});
  record[ABI_TARGET_IDX] = "9";
  record.emplace_back();
  expect_refused_record(record, "LATHE-4002", {"17", "16"});
  record.resize(15);
  expect_refused_record(record, "LATHE-4002", {"15", "16"});
  expect_refused_record({}, "LATHE-4002", {"0 slots", "16"});
  record.resize(13);
  record[ABI_TARGET_IDX] = "10";
  record[12] = "";
  const std::unique_ptr<EngineWrapper> later = EngineWrapper::create(shared_, record);
  ASSERT_NE(later, nullptr) << wrapperError();
  expect_right(*later, Batch(2));
  EXPECT_EQ(record_of(*later)[ABI_TARGET_IDX], "9");
}

// Each slot that is damaged is refused by its name.
TEST_F(RecordTest, DamagedSlots) {
  const struct {
    RecordSlot slot;
    const char* text;
    const char* code;
  } kDamage[] = {{DEVICE_IDX, "0%9%0%0", "LATHE-4001"},
                 {DEVICE_IDX, "0%9%0%0%a%b", "LATHE-4001"},
                 {DEVICE_IDX, "x%9%0%0%name", "LATHE-4001"},
                 {DEVICE_IDX, "-1%9%0%0%name", "LATHE-4001"},
                 {DEVICE_IDX, "0%9%0%3%name", "LATHE-4001"},
                 {DEVICE_IDX, "0%9%0%1%name", "LATHE-4003"},
                 {ENGINE_IDX, "", "LATHE-4001"},
                 {ENGINE_IDX, "AAA", "LATHE-4001"},
                 {ENGINE_IDX, "AAA*", "LATHE-4001"},
                 {INPUT_BINDING_NAMES_IDX, "x%x", "LATHE-5002"},
                 {INPUT_BINDING_NAMES_IDX, "", "LATHE-5001"},
                 {INPUT_BINDING_NAMES_IDX, "y", "LATHE-5002"},
                 {OUTPUT_BINDING_NAMES_IDX, "x", "LATHE-5002"},
                 {OUTPUT_BINDING_NAMES_IDX, "", "LATHE-5001"},
                 {HW_COMPATIBLE_IDX, "true", "LATHE-4001"},
                 {TARGET_PLATFORM_IDX, "linux_riscv", "LATHE-4001"},
                 {TARGET_PLATFORM_IDX, "windows_x86_64", "LATHE-4003"},
                 {REQUIRES_OUTPUT_ALLOCATOR_IDX, "2", "LATHE-4001"},
                 {RESOURCE_ALLOCATION_STRATEGY_IDX, "2", "LATHE-4001"},
                 {REQUIRES_NATIVE_MULTIDEVICE_IDX, "", "LATHE-4001"},
                 {HAS_RUNTIME_CFG_IDX, "yes", "LATHE-4001"}};
  for (const auto& damage : kDamage) {
    SCOPED_TRACE(std::string(recordSlotName(damage.slot)) + ": " + damage.text);
    EngineRecord record = good();
    record[damage.slot] = damage.text;
    if (std::string_view(damage.code) == "LATHE-4001") {
      expect_refused_record(record, damage.code, {recordSlotName(damage.slot)});
    } else {
      expect_refused_record(record, damage.code, {});
    }
  }
}

// A plan that the runtime refuses is reported by it, once.
TEST_F(RecordTest, APlanThatIsNone) {
  EngineRecord record = good();
  record[ENGINE_IDX] = "bm8gcGxhbg==";
  listen(nv::ILogger::Severity::kERROR);
  EXPECT_EQ(EngineWrapper::create(shared_, record), nullptr);
  EXPECT_EQ(logger.text.size(), 1u);
  EXPECT_NE(std::string(wrapperError()).find("the runtime does not load the plan of 7 bytes"), std::string::npos);
  expect_refused(EngineWrapper::create(nullptr, record) != nullptr, "LATHE-9001", {"createInferRuntime()"});
}

// What a list of a record cannot hold is refused before there is an engine.
TEST_F(RecordTest, NamesWithTheSeparator) {
  EngineFields fields = fields_of();
  fields.inputs = {"a%b"};
  expect_refused(EngineWrapper::create(shared_, "", fields) != nullptr, "LATHE-9001", {"a%b", "rename it"});
  fields = fields_of();
  fields.target.name = "Titan%";
  expect_refused(EngineWrapper::create(shared_, "", fields) != nullptr, "LATHE-9001", {"Titan%"});
}

// S217, S208: a record can be looked at where it cannot run.
TEST_F(RecordTest, ForeignRecordsCanBeLookedAt) {
  EngineRecord record = good();
  record[TARGET_PLATFORM_IDX] = "windows_arm64";
  record[DEVICE_IDX] = "3%12%0%0%GPU of others";
  std::string text;
  ASSERT_TRUE(describeRecord(record, text));
  for (int32_t slot = 0; slot < recordLength(); ++slot)
    EXPECT_NE(text.find(std::string(recordSlotName(slot)) + ": "), std::string::npos) << text;
  for (const char* words : {"'windows_arm64'", "'3%12%0%0%GPU of others'", " bytes\n"})
    EXPECT_NE(text.find(words), std::string::npos) << text;
  record.emplace_back("more");
  record[ENGINE_IDX] = "*";
  ASSERT_TRUE(describeRecord(record, text));
  EXPECT_NE(text.find("slot 16: 'more'"), std::string::npos);
  EXPECT_NE(text.find("ENGINE_IDX: 1 characters that are no plan"), std::string::npos) << text;
  EXPECT_TRUE(describeRecord({}, text));
  EXPECT_EQ(text, "");
}

// S211: strings are taken by reference and are the caller's as before; settings by value.
TEST_F(RecordTest, Signature) {
  using Make = std::unique_ptr<EngineWrapper> (*)(std::shared_ptr<nv::IRuntime>, const std::string&,
                                                  const EngineFields&, RuntimeSettings) noexcept;
  const Make make = &EngineWrapper::create;
  const std::string bytes = plan(), before = bytes;
  const EngineFields fields = fields_of();
  ASSERT_NE(make(shared_, bytes, fields, {}), nullptr);
  EXPECT_EQ(bytes, before);
  EXPECT_EQ(fields.name, "model.small");
}

}  // namespace
}  // namespace lathe
