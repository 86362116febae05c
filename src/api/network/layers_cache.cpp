// SPDX-License-Identifier: Apache-2.0
#include "api/network/layers_cache.h"

#include <unordered_set>

#include "api/network/network_add.h"
#include "api/network/operand_checks.h"
#include "compose/cache_update.h"

namespace lathe::api {
namespace {

using Collective = nv::CollectiveOperation;

bool reduces(Collective operation) {
  return operation == Collective::kALL_REDUCE || operation == Collective::kREDUCE ||
         operation == Collective::kREDUCE_SCATTER;
}

bool has_root(Collective operation) {
#if NV_TENSORRT_MAJOR >= 11
  if (operation == Collective::kGATHER || operation == Collective::kSCATTER) return true;
#endif
  return operation == Collective::kBROADCAST || operation == Collective::kREDUCE;
}

Result<> check_collective(Collective operation, nv::ReduceOperation reduction, int64_t root, const int64_t* groups,
                          int64_t size) {
  LATHE_TRY(check_argument(operation));
  LATHE_TRY(check_argument(reduction));
  if (reduces(operation) == (reduction == nv::ReduceOperation::kNONE))
    return fail(ErrorCode::invalid_argument,
                "kALL_REDUCE, kREDUCE and kREDUCE_SCATTER take a reduction, the others kNONE");
  if (has_root(operation) ? root < 0 : root != -1 && root != 0)
    return fail(ErrorCode::invalid_argument, "the root is {}; give a rank where there is one, else -1", root);
  if (size < 0 || (size > 0) != (groups != nullptr))
    return fail(ErrorCode::invalid_argument, "a group of {} ranks is not a list of ranks; give none for all", size);
  std::unordered_set<int64_t> ranks;
  for (int64_t i = 0; i < size; ++i)
    if (groups[i] < 0 || !ranks.insert(groups[i]).second)
      return fail(ErrorCode::invalid_argument, "rank {} of the group is negative or stands there twice", groups[i]);
  if (has_root(operation) && size > 0 && !ranks.contains(root))
    return fail(ErrorCode::invalid_argument, "the root {} is not in the group", root);
  return {};
}

}  // namespace

bool KVCacheUpdateLayer::setCacheMode(nv::KVCacheMode cacheMode) noexcept {
  return guarded(entry(), "IKVCacheUpdateLayer::setCacheMode", [&]() -> Result<> {
    if (Result<> checked = check_argument(cacheMode); !checked) return in_layer(std::move(checked).error());
    mode_ = cacheMode, touch();
    return {};
  });
}

bool KVCacheUpdateLayer::setUpdateForm(nv::AttentionIOForm form) noexcept {
  return guarded(entry(), "IKVCacheUpdateLayer::setUpdateForm", [&]() -> Result<> {
    if (Result<> checked = check_argument(form); !checked) return in_layer(std::move(checked).error());
    form_ = form, touch();
    return {};
  });
}

bool KVCacheUpdateLayer::setUpdateLengths(nv::ITensor* lengths) noexcept {
  return guarded(entry(), "IKVCacheUpdateLayer::setUpdateLengths", [&]() -> Result<> {
    TensorView* view = nullptr;
    if (lengths) {
      LATHE_ASSIGN(view, network_.own(lengths));
    }
    read(kLengths, view);
    return {};
  });
}

Result<> KVCacheUpdateLayer::check_inputs() const {
  const bool packed = form_ == nv::AttentionIOForm::kPACKED_NHD;
  LATHE_TRY(check_floats(in(0)));
  LATHE_TRY(check_same_type(in(1), in(0)));
  LATHE_TRY(check_integers(in(2), "write indices"));
  if (in(0)->rank() != 4 || in(1)->rank() != (packed ? 3 : 4) || in(2)->rank() != 1)
    return fail(
        ErrorCode::shape_mismatch,
        "a cache is [batch, heads, rows, size], its update [batch, heads, tokens, size], or packed [tokens, heads, "
        "size], and indices are [batch], but they are {}, {} and {}",
        to_string(in(0)->shape()), to_string(in(1)->shape()), to_string(in(2)->shape()));
  const auto agree = [](const Expr& a, const Expr& b) { return !a.is_constant() || !b.is_constant() || a == b; };
  const Shape &cache = in(0)->shape(), &update = in(1)->shape();
  if (!agree(cache[3], update.back()) || !agree(cache[1], update[1]) || !agree(cache[0], in(2)->shape()[0]) ||
      (!packed && !agree(cache[0], update[0])))
    return fail(ErrorCode::shape_mismatch, "the cache is {}, but its update {}, and the indices {}", to_string(cache),
                to_string(update), to_string(in(2)->shape()));
  if (!packed && in(kLengths))
    return fail(ErrorCode::invalid_argument,
                "the update is padded, so that it has no lengths; set the form kPACKED_NHD");
  if (!packed) return {};
  if (!in(kLengths))
    return fail(ErrorCode::invalid_argument, "the update is packed; where does each sequence begin? Set the lengths");
  LATHE_TRY(check_integers(in(kLengths), "lengths"));
  if (in(kLengths)->rank() == 1 && agree(cache[0] + Expr(1), in(kLengths)->shape()[0])) return {};
  return fail(ErrorCode::shape_mismatch, "lengths are one more than there are sequences, but '{}' is {}",
              in(kLengths)->name(), to_string(in(kLengths)->shape()));
}

Result<std::vector<ir::Value*>> KVCacheUpdateLayer::lower(LayerLowering& lowering) {
  LATHE_TRY(check_inputs());
  if (in(kLengths)) return std::vector{write_packed_rows(lowering, in(0), in(1), in(2), in(kLengths))};
  TensorScatterAttrs attributes;
  attributes.axis = 2;
  return std::vector{lowering.add(attributes, {in(0), in(1), in(2)})};
}

Result<std::vector<ir::Value*>> DistCollectiveLayer::lower(LayerLowering&) {
  return fail(ErrorCode::op_unsupported,
              "collective layers exchange data between several GPUs, and engines run on one; build a network without "
              "them for each GPU and exchange the outputs in the application");
}

nv::IKVCacheUpdateLayer* NetworkDefinition::addKVCacheUpdate(nv::ITensor& cache, nv::ITensor& update,
                                                             nv::ITensor& writeIndices,
                                                             nv::KVCacheMode cacheMode) noexcept {
  return add<KVCacheUpdateLayer>("INetworkDefinition::addKVCacheUpdate", {&cache, &update, &writeIndices}, cacheMode);
}

nv::IDistCollectiveLayer* NetworkDefinition::addDistCollective(nv::ITensor& input,
                                                               nv::CollectiveOperation distCollectiveOp,
                                                               nv::ReduceOperation reduceOp, int64_t root,
                                                               int64_t* groups, int64_t groupSize) noexcept {
  constexpr const char* kWhere = "INetworkDefinition::addDistCollective";
  const bool fits =
      guarded(entry(), kWhere, [&] { return check_collective(distCollectiveOp, reduceOp, root, groups, groupSize); });
  return fits ? add<DistCollectiveLayer>(kWhere, {&input}) : nullptr;
}

}  // namespace lathe::api
