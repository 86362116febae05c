// SPDX-License-Identifier: Apache-2.0
// Attention whose tiles the copy engine brings and groups of four warps multiply, of many queries of 8-bit and 16-bit
// floats.
#include <algorithm>
#include <cmath>

#include "base/divide.h"
#include "kernels/cuda/attention/logits.h"
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/match.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kInstructionColumns[] = {32, 48, 64, 80, 96, 128, 192, 256};  // that values may have
constexpr int64_t kFloat8Columns[] = {64, 128};                                 // of 8-bit floats, beside their sums'
constexpr int64_t kTileKeys[] = {48, 64, 80, 96, 128, 160, 176, 192};
constexpr int64_t kMostFloat8Keys = 128;  // that a row of turned values has

int64_t bytes_of(DType dtype) { return static_cast<int64_t>(size_of(dtype)); }

struct Heads {
  DType dtype;
  int64_t size;           // elements of a key, in whole steps of an instruction
  int64_t value_columns;  // of a value, as many as the instruction has
  bool linear;            // whether logits are products times a positive number and what is added by places, or -inf
  bool has_sinks;

  bool is_float8() const { return bytes_of(dtype) == 1; }
  int64_t panel() const { return 128 / bytes_of(dtype); }  // elements of a row
};

// The choice.
struct Tiles {
  int64_t groups;    // of 64 queries
  int64_t keys;      // of a tile
  int64_t stages;    // tiles of keys and values in shared memory
  int64_t resident;  // blocks on a multiprocessor
  bool stays;        // as many blocks as run at once, which take tiles of queries in turns

  int64_t queries() const { return 64 * groups; }
};

int64_t row_bytes(const Heads& heads, int64_t elements) {
  return round_up(elements, heads.panel()) * 128 / heads.panel();
}
int64_t stage_bytes(const Heads& heads, int64_t keys) {
  const int64_t turned = heads.is_float8() ? 128 * (heads.value_columns + 8) : 0;
  return keys * (row_bytes(heads, heads.size) + row_bytes(heads, heads.value_columns)) + turned;
}
int64_t shared_bytes(const Heads& heads, const Tiles& tiles) {
  const int64_t barriers = 2 + (heads.is_float8() ? 6 : 4) * tiles.stages + tiles.groups;
  return tiles.queries() * row_bytes(heads, heads.size) + tiles.stages * stage_bytes(heads, tiles.keys) + 8 * barriers;
}

// Registers of a thread: sums of values, of 8-bit floats those of a tile, too; scores, and weights of the tile before;
// and what else there is.
int64_t registers(const Heads& heads, int64_t keys) {
  const int64_t sums = heads.is_float8() ? heads.value_columns + 8 : heads.value_columns / 2;
  return sums + keys / 2 + keys * bytes_of(heads.dtype) / 8 + (heads.has_sinks ? 48 : 32);
}
int64_t most_registers(int64_t groups) {
  constexpr int64_t kMost[] = {255, 232, 160, 116};  // four groups have 112, which suffice
  return kMost[groups - 1];
}

std::optional<Tiles> tiles_of(const Problem& problem, const Heads& heads, int64_t groups, int64_t keys) {
  constexpr int64_t kMostStages = 4, kRegistersOfTwo = 128, kLargestOfFour = 64;  // larger heads spill registers
  const Target::Limits& limits = problem.target.limits;
  if (registers(heads, keys) > most_registers(groups)) return std::nullopt;
  if (heads.is_float8() && (keys > kMostFloat8Keys || keys % 32 != 0 || groups > 3)) return std::nullopt;
  if (groups > 3 && std::max(heads.size, heads.value_columns) > kLargestOfFour) return std::nullopt;
  Tiles tiles{groups, keys, 2, 1, true};
  if (shared_bytes(heads, tiles) > limits.shared_bytes) return std::nullopt;
  constexpr int64_t kReserved = 1024;  // of each block
  if (groups == 1 && registers(heads, keys) <= kRegistersOfTwo &&
      2 * (shared_bytes(heads, tiles) + kReserved) <= limits.core_shared_bytes)
    tiles.resident = 2;
  const int64_t space = tiles.resident == 2 ? limits.core_shared_bytes / 2 - kReserved : limits.shared_bytes;
  for (Tiles more = tiles; more.stages <= kMostStages && shared_bytes(heads, more) <= space; ++more.stages)
    tiles.stages = more.stages;
  return tiles;
}

// Clocks of a tile of keys: of the matrix units, of what makes weights of scores, and what they wait for each other.
double tile_clocks(const Problem& problem, const Heads& heads, const Tiles& tiles) {
  constexpr double kMatrixShare = 0.7, kMaskedClocks = 0.15, kWait = 1.15, kTurnClocks = 120;
  constexpr double kScoreClocks[] = {0.105, 0.105, 0.105, 0.085};  // by groups
  const auto scores = static_cast<double>(tiles.queries() * tiles.keys);
  const int64_t halves = (heads.size + heads.value_columns) * bytes_of(heads.dtype) / 2;
  const double multiply =
      scores * static_cast<double>(halves) / (kMatrixShare * problem.target.products.warpgroup_matrix);
  const double plain = kScoreClocks[tiles.groups - 1];
  const double weigh = scores * (heads.linear ? plain : plain * kMaskedClocks / kScoreClocks[0]);
  if (tiles.groups == 1 && tiles.resident == 1) return multiply + weigh + kTurnClocks;
  return kWait * std::max(multiply, weigh) + kTurnClocks;
}

double predicted_us(const Problem& problem, const Heads& heads, const Tiles& tiles) {
  constexpr double kStartClocks = 1500, kEndClocks = 1000, kEndStayingClocks = 1000, kUneven = 1.15;
  const Target& target = problem.target;
  const Dims& q = problem.inputs[0].opt_dims;
  const auto blocks_at_once = static_cast<double>(target.cores * tiles.resident);
  const double rows = std::ceil(static_cast<double>(q[2]) / static_cast<double>(tiles.queries()));
  const auto works = static_cast<double>(q[0] * q[1]) * rows;
  const TileCounts steps = seen_tiles(problem, tiles.queries(), tiles.keys);
  double rounds = std::ceil(works / blocks_at_once);
  if (steps.mean < steps.most)
    rounds = rounds > 1 ? works / blocks_at_once * (tiles.stays ? kUneven : 1) : steps.most / steps.mean;
  const double shared = works > target.cores ? static_cast<double>(tiles.resident) : 1;
  const double end = tiles.stays ? kEndStayingClocks : kEndClocks + (rounds > 1 ? kStartClocks : 0);
  const double clocks = kStartClocks + rounds * (steps.mean * shared * tile_clocks(problem, heads, tiles) + end);
  return target.launch_us + clocks / target.clock_mhz;
}

std::string text_of(const Tiles& tiles) {
  return fmt::format("{}x{} queries x keys stages={}{}{}", tiles.queries(), tiles.keys, tiles.stages,
                     tiles.resident == 2 ? " resident=2" : "", tiles.stays ? "" : " one tile each");
}

std::vector<Config> configs(const Problem& problem, const Heads& heads) {
  constexpr size_t kMost = 8;
  std::vector<Tiles> choices;
  const Dims& q = problem.inputs[0].opt_dims;
  for (const int64_t groups : {1, 2, 3, 4})
    for (const int64_t keys : kTileKeys) {
      std::optional<Tiles> tiles = tiles_of(problem, heads, groups, keys);
      if (!tiles) continue;
      choices.push_back(*tiles);
      tiles->stays = false;
      if (q[0] * q[1] * ceil_div(q[2], tiles->queries()) > problem.target.cores * tiles->resident)
        choices.push_back(*tiles);
    }
  std::vector<Config> all =
      configs_of(choices, text_of, [&](const Tiles& tiles) { return predicted_us(problem, heads, tiles); });
  if (all.size() > kMost) all.resize(kMost);
  return all;
}

// Declares the map of an input's heads; gives what the kernel copies, the map and the place of a head in it.
std::string declare_map(Source& source, const Operand& operand, size_t input, int64_t rows, int64_t panel) {
  constexpr std::string_view kNumbers[] = {"batch", "head"};
  TensorMap map{static_cast<uint32_t>(input),
                operand.dtype,
                false,
                {operand.dims[3], operand.dims[2]},
                {operand.strides[2]},
                {static_cast<uint32_t>(panel), static_cast<uint32_t>(rows)},
                {}};
  std::string places = "0, 0";
  for (const size_t d : {1, 0}) {
    if (operand.strides[d] == Expr(0)) continue;
    places += fmt::format(", {}", kNumbers[d]);
    map.dims.push_back(operand.dims[d]);
    map.strides.push_back(operand.strides[d]);
    map.box.push_back(1);
  }
  const std::string name = fmt::format("map{}", input);
  std::string text = fmt::format("copied(&{}, [](int batch, int head) {{ return MapPlace<{}>{{{{{}}}}}; }})", name,
                                 map.dims.size(), places);
  source.tensor_map(std::move(map), name);
  return text;
}

// Heads of queries whose keys and values fit the last cache together.
int64_t heads_of_section(const Problem& problem) {
  constexpr double kCacheShare = 0.5;
  const Dims &q = problem.inputs[0].opt_dims, &k = problem.inputs[1].opt_dims, &v = problem.inputs[2].opt_dims;
  const double bytes = static_cast<double>(bytes_of(problem.inputs[1].dtype) * k[2] * (k[3] + v[3]) * k[1]) /
                       static_cast<double>(std::max<int64_t>(q[1], 1));
  return std::clamp<int64_t>(static_cast<int64_t>(kCacheShare * problem.target.cache_bytes / std::max(bytes, 1.0)), 1,
                             1024);
}

Result<Emission> emit(const Problem& problem, const Heads& heads, const Config& config) {
  const auto& tiles = config.as<Tiles>();
  Emission emission;
  Source source("attention_pipeline/attention_pipeline.cuh");
  for (size_t i = 0; i < 3; ++i) emission.inputs.push_back({StepInput::input, i});
  source.input(0, problem.inputs[0], "Q");
  source.input(1, problem.inputs[1], "K");
  source.input(2, problem.inputs[2], "V");
  const std::string logits = declare_logits(source, problem, emission);
  source.output(0, problem.outputs[0], "Y");
  source.fusion(problem, emission.inputs.size());
  add_operand_inputs(problem, emission);
  std::string copies;
  for (size_t i = 0; i < 3; ++i)
    copies +=
        declare_map(source, problem.inputs[i], i, i == 0 ? tiles.queries() : tiles.keys, heads.panel()) + ",\n      ";
  const lathe::Shape& q = problem.inputs[0].dims;
  const Expr works = q[0] * q[1] * ceildiv(q[2], tiles.queries());
  const bool causal = problem.attrs<AttentionAttrs>().causal;
  const std::string body = fmt::format(
      "using namespace attention_pipeline;\n"
      "  using Tiles = Shape<{}, {}, {}, {}, {}, {}>;\n"
      "  const auto logits = {};\n"
      "  const auto work = [&](unsigned i) {{ return work_of<Tiles, {}>(i, {}, Q_, logits); }};\n"
      "  run<Tiles, {}>({}, work, static_cast<int>(Q_.dim(1) / K_.dim(1)),\n      {}V_, Y_, logits, fusion_);",
      device_type(heads.dtype), heads.size, heads.value_columns, tiles.groups, tiles.keys, tiles.stages, logits, causal,
      heads_of_section(problem), heads.linear, source.number(works), copies);
  const Expr blocks = tiles.stays ? min(works, Expr(problem.target.cores * tiles.resident)) : works;
  emission.launches.push_back(source.finish(body, {blocks, 1, 1}, static_cast<uint32_t>(128 * (tiles.groups + 1)),
                                            static_cast<uint32_t>(shared_bytes(heads, tiles)),
                                            static_cast<int>(tiles.resident)));
  return emission;
}

std::optional<std::string> refuse_heads(const Problem& problem) {
  const int64_t vector = 16 / bytes_of(problem.inputs[0].dtype), most = vector == 16 ? 128 : 256;
  for (size_t i = 0; i < 3; ++i) {
    const Operand& operand = problem.inputs[i];
    const std::optional<int64_t> size = operand.dims[3].as_constant();
    if (!size) return "the size of a head is not known";
    if (*size > most) return fmt::format("heads of {} elements, {} are handled", *size, most);
    if (*size % vector != 0 || unit_dim(operand) != 3 || vector_width(operand) < vector)
      return "heads that do not lie in rows of whole 16 bytes, as the copy engine reads them";
  }
  return std::nullopt;
}

// Whether a mask does the same to a key's scores of all queries: it hides them, or adds a number to them.
bool is_of_keys(const Problem& problem) {
  if (!problem.has_input(attention_input::kMask)) return true;
  const Operand& mask = problem.inputs[attention_input::kMask];
  const bool is_row = mask.rank() < 2 || mask.dims[static_cast<size_t>(mask.rank()) - 2] == Expr(1);
  return is_row && (mask.dtype != DType::boolean || std::isinf(problem.attrs<AttentionAttrs>().hidden));
}

}  // namespace

Matched match_attention_pipeline(const Problem& problem) {
  if (!problem.is(OpKind::attention)) return refuse("not an attention");
  if (!problem.target.limits.warpgroups) return refuse("the device has no products of four warps");
  if (auto reason = unsupported_feature(problem, {.reassociated_inputs = 7, .float8 = true}))
    return refuse(*std::move(reason));
  const DType dtype = problem.inputs[0].dtype;
  const bool is_float8 = dtype == DType::f8e4m3fn;
  if (dtype != DType::f16 && dtype != DType::bf16 && !is_float8)
    return refuse(fmt::format("its input is {}", name_of(dtype)));
  for (size_t i = 1; i < 3; ++i)
    if (problem.inputs[i].dtype != dtype) return refuse("keys or values of another type");
  if (auto reason = refuse_doubles(problem)) return refuse(*std::move(reason));
  if (auto reason = refuse_order(problem)) return refuse(*std::move(reason));
  if (auto reason = refuse_heads(problem)) return refuse(*std::move(reason));
  const auto& attrs = problem.attrs<AttentionAttrs>();
  if (is_float8 && attrs.mean_for_none) return refuse("queries that see no key have means of 8-bit floats");
  const int64_t value_size = *problem.inputs[2].dims[3].as_constant();
  const auto columns = is_float8 ? std::span<const int64_t>(kFloat8Columns) : kInstructionColumns;
  const Heads heads{dtype, round_up(*problem.inputs[0].dims[3].as_constant(), is_float8 ? 32 : 16),
                    *std::ranges::lower_bound(columns, value_size),
                    is_of_keys(problem) && attrs.softcap == 0 && attrs.scale > 0,
                    problem.has_input(attention_input::kSinks)};
  return match_form(problem, heads, configs, emit);
}

}  // namespace lathe::cuda
