// SPDX-License-Identifier: Apache-2.0
// A row for every setter of attentions and of updates of their caches; x counts from -2.
#pragma once

#include "api/layers_world.h"

namespace nvinfer1::layers {

// Two queries over two keys: scores -2 -1 and 0 1.
inline IAttentionOutputLayer* two_queries(Net& n) {
  ITensor& x = n.input(Dims4(1, 1, 2, 2));
  IAttention* attention = n.network->addAttentionV2(x, n.constant(Dims4(1, 1, 2, 2), {1, 0, 0, 1}),
                                                    n.constant(Dims4(1, 1, 2, 2), {1, 2, 3, 4}),
                                                    AttentionNormalizationOp::kSOFTMAX, CausalMaskKind::kNONE);
  ILayer* layer = n.network->getLayer(n.network->getNbLayers() - 1);
  EXPECT_EQ(layer->getType(), LayerType::kATTENTION_OUTPUT);
  auto* output = static_cast<IAttentionOutputLayer*>(layer);
  EXPECT_EQ(output->getAttention(), attention);
  return output;
}

// A call of the attention, and whether its getter then shows what was set.
#define ATTENTION(call) [](Net& n, auto& l) { l.getAttention()->call; }
#define ATTENDS(call, shown)           \
  [](Net& n, auto& l) {                \
    IAttention& a = *l.getAttention(); \
    return a.call && (shown);          \
  }

inline void add_attention(Table& table) {
  add<IAttentionOutputLayer>(table, "IAttention", two_queries,
                             {{"setInput",
                               ATTENDS(setInput(2, n.constant(Dims4(1, 1, 2, 2), {10, 0, 0, 20})),
                                       a.getNbInputs() == 3 && a.getInput(2)),
                               "f32[1, 1, 2, 2]: 2.689 14.62 2.689 14.62",
                               {ATTENTION(setInput(7, *n.network->getInput(0))),
                                ATTENTION(setInput(-1, *n.network->getInput(0))),
                                ATTENTION(setInput(1, n.constant(Dims3(1, 2, 2), {1, 0, 0, 1}))),
                                ATTENTION(setInput(0, n.shaped(Dims4(1, 1, 1, 2), {1, 1}))),
                                ATTENTION(setInput(1, n.constant(Dims4(1, 1, 2, 1), {1, 1}))),
                                ATTENTION(setInput(2, n.constant(Dims4(1, 1, 1, 2), {1, 1})))}},
                              {"setName",
                               ATTENDS(setName("a"), std::string(a.getName()) == "a"),
                               nullptr,
                               {ATTENTION(setName(nullptr))}},
                              {"setMetadata",
                               ATTENDS(setMetadata("m"), std::string(a.getMetadata()) == "m"),
                               nullptr,
                               {ATTENTION(setMetadata(nullptr))}},
                              {"setNbRanks",
                               ATTENDS(setNbRanks(1), a.getNbRanks() == 1),
                               nullptr,
                               {ATTENTION(setNbRanks(0)), ATTENTION(setNbRanks(2))}},
                              {"setNormalizationOperation",
                               ATTENDS(setNormalizationOperation(AttentionNormalizationOp::kNONE),
                                       a.getNormalizationOperation() == AttentionNormalizationOp::kNONE),
                               "f32[1, 1, 2, 2]: -5 -8 3 4",
                               {ATTENTION(setNormalizationOperation(no_such<AttentionNormalizationOp>()))}},
                              {"setCausal",
                               ATTENDS(setCausal(true),
                                       a.getCausalKind() == CausalMaskKind::kUPPER_LEFT && a.getNbOutputs() == 1 &&
                                           n.network
                                               ->addAttention(*a.getInput(0), *a.getInput(1), *a.getInput(2),
                                                              AttentionNormalizationOp::kSOFTMAX, true)
                                               ->getCausal()),
                               "f32[1, 1, 2, 2]: 1 2 2.462 3.462",
                               {}},
                              {"setCausalKind",
                               ATTENDS(setInput(1, n.constant(Dims4(1, 1, 3, 2), {0, 0, 1, 0, 0, 1})) &&
                                           a.setInput(2, n.constant(Dims4(1, 1, 3, 2), {9, 9, 1, 2, 3, 4})) &&
                                           a.setCausalKind(CausalMaskKind::kLOWER_RIGHT),
                                       a.getCausal() && a.getCausalKind() == CausalMaskKind::kLOWER_RIGHT),
                               "f32[1, 1, 2, 2]: 8.046 8.166 3.848 4.636",
                               {ATTENTION(setCausalKind(no_such<CausalMaskKind>())),
                                [](Net& n, IAttentionOutputLayer& l) {
                                  l.getAttention()->setMask(n.constant(Dims4(1, 1, 2, 2), {0, 0, 0, 0}));
                                  l.getAttention()->setCausalKind(CausalMaskKind::kUPPER_LEFT);
                                }}},
                              {"setMask",
                               ATTENDS(setMask(n.constant(Dims4(1, 1, 2, 2), {0, -1, 0, 0})),
                                       a.getMask() == a.getInput(3)),
                               "f32[1, 1, 2, 2]: 2 3 2.462 3.462",
                               {ATTENTION(setMask(n.constant(Dims2(2, 2), {0, 0, 0, 0}))),
                                ATTENTION(setMask(n.shaped(Dims4(1, 1, 1, 1), {1}))),
                                ATTENTION(setMask(n.constant(Dims4(1, 1, 1, 3), {0, 0, 0})))}},
                              {"setDecomposable", ATTENDS(setDecomposable(true), a.getDecomposable()), nullptr, {}},
                              {"setNormalizationQuantizeScale",
                               ATTENDS(setNormalizationQuantizeToType(DataType::kINT8) &&
                                           a.setNormalizationQuantizeScale(n.constant(dims({}), {0.5f})),
                                       a.getNormalizationQuantizeScale() == a.getInput(4)),
                               "f32[1, 1, 2, 2]: 2 3 2 3",
                               {ATTENTION(setNormalizationQuantizeScale(n.constant(dims({}), {1}))),
                                [](Net& n, IAttentionOutputLayer& l) {
                                  l.getAttention()->setNormalizationQuantizeToType(DataType::kFP8);
                                  l.getAttention()->setNormalizationQuantizeScale(n.constant(dims({2}), {1, 1}));
                                },
                                [](Net& n, IAttentionOutputLayer& l) {
                                  l.getAttention()->setNormalizationQuantizeToType(DataType::kFP8);
                                  l.getAttention()->setNormalizationQuantizeScale(n.numbers({1}));
                                }}},
                              {"setNormalizationQuantizeToType",
                               ATTENDS(setNormalizationQuantizeScale(n.constant(dims({1}), {0.25f})) &&
                                           a.setNormalizationQuantizeToType(DataType::kINT8),
                                       a.getNormalizationQuantizeToType() == DataType::kINT8),
                               "f32[1, 1, 2, 2]: 2.5 3.5 2.5 3.5",
                               {ATTENTION(setNormalizationQuantizeToType(DataType::kFP8)),
                                ATTENTION(setNormalizationQuantizeToType(DataType::kHALF)),
                                ATTENTION(setNormalizationQuantizeToType(no_such<DataType>()))}},
                              {"setQueryForm",
                               ATTENDS(
                                   setInput(0, *n.network->addSqueeze(*a.getInput(0), n.numbers({0}))->getOutput(0)) &&
                                       a.setQueryLengths(&n.numbers({0, 1})) &&
                                       a.setQueryForm(AttentionIOForm::kPACKED_NHD),
                                   a.getQueryForm() == AttentionIOForm::kPACKED_NHD),
                               "f32[1, 2, 2]: 2.462 3.462 2.462 3.462",
                               {ATTENTION(setQueryForm(AttentionIOForm::kPACKED_NHD)),
                                ATTENTION(setQueryForm(no_such<AttentionIOForm>()))}},
                              {"setQueryLengths",
                               ATTENDS(setInput(0, n.input(Dims3(2, 1, 2))) && a.setQueryLengths(&n.numbers({0, 1})) &&
                                           a.setQueryForm(AttentionIOForm::kPACKED_NHD),
                                       a.getQueryLengths() == a.getInput(5)),
                               "f32[2, 1, 2]: 2.462 3.462 0 0",
                               {ATTENTION(setQueryLengths(&n.numbers({0, 1})))}},
                              {"setKeyValueForm",
                               ATTENDS(setInput(1, n.constant(Dims3(3, 1, 2), {1, 0, 0, 1, 5, 5})) &&
                                           a.setInput(2, n.constant(Dims3(3, 1, 2), {1, 2, 3, 4, 9, 9})) &&
                                           a.setKeyValueLengths(&n.numbers({0, 1})) &&
                                           a.setKeyValueForm(AttentionIOForm::kPACKED_NHD),
                                       a.getKeyValueForm() == AttentionIOForm::kPACKED_NHD),
                               "f32[1, 1, 2, 2]: 1 2 1 2",
                               {ATTENTION(setKeyValueForm(AttentionIOForm::kPACKED_NHD)),
                                ATTENTION(setKeyValueForm(no_such<AttentionIOForm>()))}},
                              {"setKeyValueLengths",
                               ATTENDS(setInput(1, n.constant(Dims3(3, 1, 2), {1, 0, 0, 1, 5, 5})) &&
                                           a.setInput(2, n.constant(Dims3(3, 1, 2), {1, 2, 3, 4, 9, 9})) &&
                                           a.setKeyValueForm(AttentionIOForm::kPACKED_NHD) &&
                                           a.setKeyValueLengths(&n.numbers({0, 3})),
                                       a.getKeyValueLengths() == a.getInput(6)),
                               "f32[1, 1, 2, 2]: 2.462 3.462 8.84 8.865",
                               {ATTENTION(setKeyValueLengths(&n.numbers({0, 1})))}}});
}

// One token goes into row 1 of three.
inline void add_cache_update(Table& table) {
  add<IKVCacheUpdateLayer>(
      table, "IKVCacheUpdateLayer",
      [](Net& n) {
        return n.network->addKVCacheUpdate(n.constant(Dims4(1, 1, 3, 2), {1, 2, 3, 4, 5, 6}),
                                           n.input(Dims4(1, 1, 1, 2)), n.numbers({1}), KVCacheMode::kLINEAR);
      },
      {{"setCacheMode",
        DOES(setCacheMode(KVCacheMode::kLINEAR), l.getCacheMode() == KVCacheMode::kLINEAR),
        nullptr,
        {CALL(setCacheMode(no_such<KVCacheMode>())), CALL(setInput(2, n.numbers({1, 1}))),
         CALL(setInput(2, n.constant(dims({1}), {1}))), CALL(setInput(1, n.input(Dims4(1, 1, 1, 3)))),
         CALL(setInput(1, n.input(Dims3(1, 1, 2)))), CALL(setInput(4, *l.getInput(0)))}},
       {"setUpdateForm",
        [](Net& n, IKVCacheUpdateLayer& l) {
          l.setInput(1, n.input(Dims3(2, 1, 2)));
          return l.setUpdateForm(AttentionIOForm::kPACKED_NHD) && l.setUpdateLengths(&n.numbers({0, 2})) &&
                 l.getUpdateForm() == AttentionIOForm::kPACKED_NHD;
        },
        "f32[1, 1, 3, 2]: 1 2 -2 -1 0 1",
        {CALL(setUpdateForm(AttentionIOForm::kPACKED_NHD)), CALL(setUpdateForm(no_such<AttentionIOForm>()))}},
       {"setUpdateLengths",
        [](Net& n, IKVCacheUpdateLayer& l) {
          l.setInput(1, n.input(Dims3(2, 1, 2)));
          return l.setUpdateLengths(&n.numbers({1, 2})) && l.setUpdateForm(AttentionIOForm::kPACKED_NHD) &&
                 l.getUpdateLengths() == l.getInput(3);
        },
        "f32[1, 1, 3, 2]: 1 2 0 1 5 6",
        {CALL(setUpdateLengths(&n.numbers({0, 1})))}}});
}

}  // namespace nvinfer1::layers
