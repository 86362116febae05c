// SPDX-License-Identifier: Apache-2.0
// Every setting of the public headers has a row in settings.def, and what the row says is what happens: nothing is
// accepted in silence. What honoured settings do is tested where they are at home; here the object takes them.
#include "api/settings.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "api/settings_calls.h"
#include "source_dir.h"

namespace nvinfer1 {
namespace {

using lathe::api::Effect;
using lathe::api::Setting;
using lathe::api::SettingId;
using Names = std::set<std::string>;

// ---- Which settings there are: the tables of slots and enumerators, and the text of the headers --------------------

struct Member {
  std::string owner, name;
};

// What applications implement is theirs to call; of the rest, the registry and the parsers are ours.
const std::vector<Member>& members() {
  static const std::vector<Member> all = {
#define SLOT(type, number, member) {#type, #member},
#define SLOT_OF(type, number, member, result, parameters)
#include "api/slots_layers.def"
#include "api/slots_objects.def"
#undef SLOT
#define SLOT(type, number, member) \
  {std::string(#type).starts_with("nvonnxparser") || #type == std::string("IPluginRegistry") ? #type : "", #member},
#include "api/slots_interfaces.def"
#undef SLOT
#undef SLOT_OF
  };
  return all;
}

bool is_setter(const std::string& name) {
  static const std::regex setter("(set|unset|mark|unmark|clear|reset)[A-Z].*");
  return std::regex_match(name, setter);
}

// "apiv::VBuilderConfig" is IBuilderConfig.
std::string public_name(std::string owner) {
  owner = std::regex_replace(owner, std::regex("apiv::V"), "I");
  return std::regex_replace(owner, std::regex("nvonnxparser::"), "");
}

// A layer's own settings are the network: each takes effect, or is refused, or its add...() gives null and one report.
// layers_test walks those.
bool is_layer_kind(const std::string& owner) {
  static const Names kinds = [] {
    Names kinds;
#define SLOT(type, number, member) kinds.insert(public_name(#type));
#include "api/slots_layers.def"
#undef SLOT
    for (const char* common : {"ITensor", "ILayer"}) kinds.erase(common);
    return kinds;
  }();
  return kinds.contains(owner);
}

std::string header(const std::string& name) {
  std::string path = lathe::source_path("/include/");
  path += name;
  std::ifstream file(path);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

Names setters() {
  Names names;
  for (const Member& member : members())
    if (const std::string owner = public_name(member.owner);
        !owner.empty() && is_setter(member.name) && !is_layer_kind(owner))
      names.insert(owner + "::" + member.name);
  names.insert({"process::createInferRefitter", "process::createParserRefitter"});
  names.insert("IAttention::setDecomposable");  // of a layer, and no part of what the layer computes
  const auto functions = [&](const std::string& owner, const char* file, const std::string& start) {
    const std::string text = header(file);
    const std::regex function(start + "(?:bool|void) ((?:set|init)[A-Z]\\w*)\\(");
    for (std::sregex_iterator it(text.begin(), text.end(), function); it != std::sregex_iterator(); ++it)
      names.insert(owner + "::" + it->str(1));
  };
  functions("lathe", "lathe.h", "TENSORRTAPI ");
  functions("process", "NvInferPlugin.h", "extern \"C\" TENSORRTAPI ");
  for (const char* file : {"NvInfer.h", "NvInferRuntime.h"}) functions("process", file, "extern \"C\" TENSORRTAPI ");
  return names;
}

// By enumeration.
std::map<std::string, Names> enumerators() {
  std::map<std::string, Names> all;
#define VALUE(enumeration, enumerator, number) all[public_name(#enumeration)].insert(#enumerator);
#define COUNT(enumeration, number)
#include "api/enums.def"
#undef VALUE
#undef COUNT
  return all;
}

// Enumerations that layers, tensors and answers consist of.
const Names kNoSettings = {"LayerType",
                           "ActivationType",
                           "PaddingMode",
                           "PoolingType",
                           "ScaleMode",
                           "ElementWiseOperation",
                           "GatherMode",
                           "UnaryOperation",
                           "ReduceOperation",
                           "CollectiveOperation",
                           "SampleMode",
                           "TopKOperation",
                           "MatrixOperation",
                           "InterpolationMode",
                           "ResizeCoordinateTransformation",
                           "ResizeSelector",
                           "ResizeRoundMode",
                           "LoopOutput",
                           "TripLimit",
                           "FillOperation",
                           "ScatterMode",
                           "BoundingBoxFormat",
                           "CumulativeOperation",
                           "AttentionNormalizationOp",
                           "CausalMaskKind",
                           "AttentionIOForm",
                           "KVCacheMode",
                           "MoEActType",
                           "DimensionOperation",
                           "SeekPosition",
                           "WeightsRole",
                           "AllocatorFlag",
                           "ILogger::Severity",
                           "OptProfileSelector",
                           "EngineStat",
                           "LayerInformationFormat",
                           "DataType",
                           "APILanguage",
                           "ErrorCode",
                           "TensorIOMode",
                           "PluginVersion",
                           "PluginCreatorVersion",
                           "PluginFieldType",
                           "TensorRTPhase",
                           "PluginCapabilityType"};

Setting row(size_t i) { return lathe::api::setting_of(static_cast<SettingId>(i)); }
constexpr auto kRows = static_cast<size_t>(SettingId::count);

TEST(Settings, EachHasARow) {
  Names rows;
  for (size_t i = 0; i < kRows; ++i) EXPECT_TRUE(rows.insert(row(i).name).second) << row(i).name << " has two";
  Names wanted = setters();
  EXPECT_GT(wanted.size(), 90u);
  for (const auto& [enumeration, values] : enumerators())
    for (const std::string& value : values)
      if (!kNoSettings.contains(enumeration)) wanted.insert(enumeration + "::" + value);
  for (const std::string& name : wanted)
    EXPECT_TRUE(rows.contains(name)) << name << " has no row in src/api/settings.def: say what becomes of it";
  for (const std::string& name : rows) EXPECT_TRUE(wanted.contains(name)) << name << " is no setting";
}

// ---- What happens --------------------------------------------------------------------------------------------------

bool makes_refitter(World& w) { return std::unique_ptr<IRefitter>(createInferRefitter(w.engine(), w.log)) != nullptr; }

bool makes_parser_refitter(World& w) {
  return std::unique_ptr<nvonnxparser::IParserRefitter>(nvonnxparser::createParserRefitter(w.refitter(), w.log)) !=
         nullptr;
}

std::function<bool(World&)> call_of(const Setting& setting) {
  static const std::map<std::string, Call> functions = [] {
    std::map<std::string, Call> all = builder_calls();
    all.merge(network_calls());
    all.merge(runtime_calls());
    all.merge(refitter_calls());
    all.merge(context_calls());
    all.merge(own_calls());
    return all;
  }();
  static const std::map<std::string, ValueCall> values = [] {
    std::map<std::string, ValueCall> all = value_calls();
    all.merge(runtime_value_calls());
    return all;
  }();
  const std::string name = setting.name;
  const std::string owner = name.substr(0, name.find(':'));
  if (name == "process::createInferRefitter") return makes_refitter;
  if (name == "process::createParserRefitter") return makes_parser_refitter;
  if (const auto it = functions.find(name); it != functions.end()) return it->second;
  if (const auto it = values.find(owner); it != values.end())
    return [call = it->second, value = setting.value](World& w) { return call(w, value); };
  return {};
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

class EachSetting : public testing::TestWithParam<size_t> {};

// S58, S78, S130.
TEST_P(EachSetting, DoesWhatItsRowSays) {
  const Setting& setting = row(GetParam());
  const std::function<bool(World&)> call = call_of(setting);
  ASSERT_TRUE(call) << setting.name << " has no call here";
  World world;
  if (std::string(setting.name).find("WeightsRefittable") != std::string::npos) names_weights(world);
  if (setting.effect == Effect::honoured && std::string(setting.name).find("unmarkWeights") != std::string::npos)
    world.network->markWeightsRefittable(kWeightsName);
  for (int time = 1; time <= 2; ++time) {  // the second time, too, but a warning is given once
    world.log.errors.clear();
    world.log.warnings.clear();
    EXPECT_EQ(call(world), setting.effect != Effect::refused) << setting.name;
    if (setting.name == std::string("process::setInternalLibraryPath")) world.log.errors = {lathe::lastError()};
    EXPECT_EQ(world.log.errors.size(), setting.effect == Effect::refused) << joined(world.log.errors);
    EXPECT_EQ(world.log.warnings.size(), setting.effect == Effect::no_effect && time == 1)
        << joined(world.log.warnings);
    for (const auto* lines : {&world.log.errors, &world.log.warnings})
      for (const std::string& line : *lines) {
        EXPECT_NE(line.find(setting.words), std::string::npos) << line;
        EXPECT_EQ(line.find("LATHE-3002") != std::string::npos, lines == &world.log.errors) << line;
      }
    EXPECT_TRUE(setting.effect == Effect::honoured || *setting.words) << setting.name << " needs a reason";
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, EachSetting, testing::Range(size_t{0}, kRows),
                         [](const testing::TestParamInfo<size_t>& info) {
                           return std::regex_replace(std::string(row(info.param).name), std::regex("::"), "_");
                         });

// What makes no sense is refused whatever the row says, with one report each.
TEST(Settings, NonsenseIsRefused) {
  World w;
  const std::pair<const char*, std::function<bool()>> calls[] = {
      {"pool", [&] { return w.config->setMemoryPoolLimit(static_cast<MemoryPoolType>(77), 1), false; }},
      {"flags", [&] { return w.config->setFlags(1U << 31), w.config->getFlags() >> 31 == 1; }},
      {"capability", [&] { return w.config->setEngineCapability(static_cast<EngineCapability>(9)), false; }},
      {"iterations", [&] { return w.config->setAvgTimingIterations(0), w.config->getAvgTimingIterations() == 0; }},
      {"tactics", [&] { return w.config->setMaxNbTactics(0), w.config->getMaxNbTactics() == 0; }},
      {"streams", [&] { return w.config->setMaxAuxStreams(-1); }},
      {"L2", [&] { return w.config->setL2LimitForTiling(-2); }},
      {"level", [&] { return w.config->setBuilderOptimizationLevel(6), w.config->getBuilderOptimizationLevel() == 6; }},
      {"layer", [&] { return w.config->setDeviceType(nullptr, DeviceType::kGPU), false; }},
      {"formats", [&] { return w.x->setAllowedFormats(0), w.x->getAllowedFormats() == 0; }},
      {"target", [&] { return w.profile().setExtraMemoryTarget(2); }},
      {"sources", [&] { return w.config->setTacticSources(1U << 30); }},
      {"twice",
       [&] {
         const char* paths[] = {"a.so", "a.so"};
         return w.config->setPluginsToSerialize(paths, 2), w.config->getNbPluginsToSerialize() == 2;
       }},
      {"strategy",
       [&] {
         constexpr auto kNone = static_cast<ExecutionContextAllocationStrategy>(5);
         return w.runtime_config().setExecutionContextAllocationStrategy(kNone), false;
       }},
  };
  for (const auto& [name, call] : calls) {
    w.log.errors.clear();
    EXPECT_FALSE(call()) << name;
    EXPECT_EQ(w.log.errors.size(), 1u) << name << "\n" << joined(w.log.errors);
  }
  EXPECT_TRUE(w.log.warnings.empty()) << joined(w.log.warnings);
}

// Each object warns for itself.
TEST(Settings, WarningsAreCountedByObject) {
  World w;
  const std::unique_ptr<IBuilderConfig> other(w.builder->createBuilderConfig());
  for (IBuilderConfig* config : {w.config.get(), other.get()}) config->setFlag(BuilderFlag::kGPU_FALLBACK);
  EXPECT_EQ(w.log.warnings.size(), 2u);
  w.config->setMemoryPoolLimit(MemoryPoolType::kDLA_LOCAL_DRAM, 1 << 30);
  EXPECT_EQ(w.log.warnings.size(), 3u);
}

TEST(Settings, TargetsAreKnownOrRefused) {
  World w;
  for (const char* target : {"cpu", "cuda", "cuda:0", "cuda:12", "cuda-sm_90", "sm_80"})
    EXPECT_TRUE(lathe::setTarget(*w.config, target)) << target << lathe::lastError();
  for (const char* target : {"cudanonsense", "cuda:", "cuda:x", "cuda:-1", "cuda-", "cuda-sm_", "sm_12", "CPU", ""}) {
    EXPECT_FALSE(lathe::setTarget(*w.config, target)) << target;
    EXPECT_STREQ(lathe::getTarget(*w.config), "cuda-sm_80") << target;
  }
}

}  // namespace
}  // namespace nvinfer1
