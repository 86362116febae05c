// SPDX-License-Identifier: Apache-2.0
// Every setter of every layer does what it says, or is refused with one report: nothing is accepted in silence.
#include "api/layers_calls_attention.h"
#include "api/layers_calls_control.h"
#include "api/layers_calls_experts.h"
#include "api/layers_calls_move.h"
#include "api/layers_calls_sample.h"

#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "source_dir.h"

namespace nvinfer1::layers {
namespace {

const Table& table() {
  static const Table all = [] {
    Table rows;
    for (const auto add : {add_common,    add_window,       add_pooling,
                           add_pointwise, add_rows,         add_products,
                           add_moves,     add_slices,       add_makers,
                           add_picks,     add_resize,       add_quantization,
                           add_loops,     add_iterators,    add_conditionals,
                           add_samplers,  add_suppression,  add_rotation,
                           add_attention, add_cache_update, add_dynamic_quantization,
                           add_experts,   add_assertions})
      add(rows);
    return rows;
  }();
  return all;
}

struct Setter {
  std::string kind, name;
};

// Setters that take numbers and truths alone, all of which make sense, as the headers declare them.
bool takes_any(const Setter& setter) {
  static const std::string text = [] {
    std::string all;
    for (const char* name : {"tensor.h", "layers_basic.h", "layers_select.h", "layers_shape.h", "layers_quantize.h",
                             "layers_control.h", "layers_attention.h"}) {
      std::ifstream file(lathe::source_path(std::string("/include/nvinfer/") + name));
      EXPECT_TRUE(file) << name;
      all.append(std::istreambuf_iterator<char>(file), {});
    }
    return all;
  }();
  const size_t kind = text.find("class " + setter.kind + " :");
  const size_t at = text.find(" " + setter.name + "(", kind);
  EXPECT_NE(std::max(kind, at), std::string::npos) << setter.kind << "::" << setter.name;
  const std::string argument = text.substr(at + setter.name.size() + 2, 6);
  return argument.starts_with("bool ") || argument.starts_with("float ") || argument.starts_with("double");
}

// ITensor's own are among the settings of settings.def.
const std::vector<Setter>& setters() {
  static const std::vector<Setter> all = [] {
    std::vector<Setter> found;
    const std::regex setter("set[A-Z].*");
#define SLOT(type, number, member)       \
  if (std::regex_match(#member, setter)) \
    found.push_back({std::regex_replace(#type, std::regex("apiv::V"), "I"), #member});
#define SLOT_OF(type, number, member, result, parameters) SLOT(type, number, member)
#include "api/slots_layers.def"
#undef SLOT
#undef SLOT_OF
    std::erase_if(found, [](const Setter& s) { return s.kind == "ITensor"; });
    return found;
  }();
  return all;
}

TEST(LayerSetters, EachHasARow) {
  std::set<std::string> wanted;
  for (const auto& [kind, name] : setters()) {
    EXPECT_TRUE(table().contains(kind + "::" + name))
        << kind << "::" << name << " needs a row that says what becomes of it";
    wanted.insert(kind + "::" + name);
    const auto row = table().find(kind + "::" + name);
    EXPECT_TRUE(row == table().end() || !row->second.nonsense.empty() || takes_any({kind, name}))
        << kind << "::" << name << ": which arguments are refused?";
  }
  EXPECT_GT(wanted.size(), 150u);
  for (const auto& [name, row] : table()) EXPECT_TRUE(wanted.contains(name)) << name << " is no setter";
}

class EachLayerSetter : public testing::TestWithParam<std::string> {};

TEST_P(EachLayerSetter, TakesEffect) {
  const Row& row = table().at(GetParam());
  Net n;
  ILayer* layer = row.make(n);
  ASSERT_NE(layer, nullptr) << n.log.text();
  const std::string before = n.result(*layer);
  EXPECT_TRUE(row.set(n, *layer)) << "the getter shows something else";
  EXPECT_EQ(n.result(*layer), row.result ? row.result : before);
  EXPECT_NE(before, row.result ? row.result : "") << "no test of an effect";
  EXPECT_TRUE(n.log.errors.empty()) << n.log.text();
  EXPECT_TRUE(row.result == nullptr || n.builds()) << n.log.text();
}

TEST_P(EachLayerSetter, RefusesNonsense) {
  const Row& row = table().at(GetParam());
  for (size_t i = 0; i < row.nonsense.size(); ++i) {
    SCOPED_TRACE("argument " + std::to_string(i));
    Net n;
    ILayer* layer = row.make(n);
    ASSERT_NE(layer, nullptr) << n.log.text();
    layer->setName("the layer");
    const std::string before = n.result(*layer);
    row.nonsense[i](n, *layer);
    if (n.log.errors.empty()) {
      EXPECT_FALSE(n.builds()) << "accepted in silence: " << before << " became " << n.result(*layer);
      EXPECT_NE(n.log.text().find("'the layer'"), std::string::npos) << n.log.text();
    } else {
      EXPECT_EQ(n.result(*layer), before);
    }
    EXPECT_EQ(n.log.errors.size(), 1u) << n.log.text();
    EXPECT_NE(n.log.text().find("LATHE-"), std::string::npos) << n.log.text();
    EXPECT_EQ(n.log.text().find("LATHE-9999"), std::string::npos) << n.log.text();
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, row] : table()) all.push_back(name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Layers, EachLayerSetter, testing::ValuesIn(names()),
                         [](const auto& info) { return std::regex_replace(info.param, std::regex("::"), "_"); });

}  // namespace
}  // namespace nvinfer1::layers
