// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/source.h"
#include "shape/broadcast.h"

#include <algorithm>

namespace lathe::cuda {
namespace {

constexpr int64_t kVectorBytes = 16;

std::string literal(int64_t value) {
  return value == INT64_MIN ? "(-9223372036854775807L - 1)" : fmt::format("{}L", value);
}

std::string join(const std::vector<std::string>& texts, std::string_view separator) {
  std::string text;
  for (const std::string& part : texts) text.append(text.empty() ? "" : separator).append(part);
  return text;
}

// Whether an operand is the same wherever neighbours along dimension D begin at the same place: as the condition on D
// in device code, or "".
std::string along_columns(const Operand& operand) {
  if (operand.padding) return {};
  const int unit = unit_dim(operand);
  for (int d = 0; d < operand.rank(); ++d) {
    const auto i = static_cast<size_t>(d);
    if (d != unit && operand.dims[i] != Expr(1) && operand.strides[i] != Expr(0)) return {};
  }
  return unit < 0 ? "true" : fmt::format("D == {}", unit);
}

// For epilogues: Columns, the operands that only columns choose, and the function that loads them.
std::string columns_function(std::span<const Operand> operands) {
  std::string members, loads;
  for (size_t k = 0; k < operands.size(); ++k) {
    const std::string condition = along_columns(operands[k]);
    if (condition.empty()) continue;
    members += fmt::format(" float o{}[W];", k);
    loads += fmt::format("    if constexpr ({0}) load<D>(op{1}, c, held.o{1}, count);\n", condition, k);
  }
  return fmt::format(
      "  template <int D, int W>\n  struct Columns {{{} }};\n"
      "  template <int D, int W>\n  LATHE_DEVICE_MEMBER Columns<D, W> columns("
      "[[maybe_unused]] const long (&c)[kCoordinates], [[maybe_unused]] int count) const {{\n"
      "    Columns<D, W> held;\n{}    return held;\n  }}\n",
      members, loads);
}

// Loads the operands of W elements that are not held.
std::string operand_loads(std::span<const Operand> operands, bool may_be_held) {
  std::string text;
  for (size_t k = 0; k < operands.size(); ++k) {
    const std::string condition = may_be_held ? along_columns(operands[k]) : "",
                      load = fmt::format("load<D>(op{0}, c, o{0}, count);\n", k);
    text += fmt::format("    float o{}[W];\n    ", k);
    if (!condition.empty())
      text +=
          fmt::format("if constexpr ({0})\n      for (int i = 0; i < W; ++i) o{1}[i] = held.o{1}[i];\n    else\n      ",
                      condition, k);
    text += load;
  }
  return text;
}

// The function that loads the operands of W elements and runs the program on each.
std::string program_function(const Program& program, size_t accumulators, const std::optional<Levels>& levels,
                             Exactness exactness, std::span<const Operand> operands) {
  const size_t outputs = program.outputs.size();
  const bool is_applied = accumulators > 0 && outputs == 1, may_be_held = accumulators == 1 && is_applied;
  std::string text = may_be_held ? columns_function(operands) : "";
  text += "  template <int D, int W>\n  LATHE_DEVICE_MEMBER void ";
  text += is_applied ? "apply(float (&v)[W]" : accumulators > 0 ? "evaluate(const float (&v)[W]" : "evaluate(";
  if (accumulators > 1) text += ", const float (&w)[W]";
  if (!is_applied) text += fmt::format("{}float (&results)[kOutputs][W]", accumulators > 0 ? ", " : "");
  text += ", const long (&c)[kCoordinates], int count";
  text += may_be_held ? ", const Columns<D, W>& held) const {\n" : ") const {\n";
  text += operand_loads(operands, may_be_held);
  text += "    LATHE_UNROLL\n    for (int i = 0; i < W; ++i) {\n";
  if (accumulators > 0) text += "      const float r0 = v[i];\n";
  if (accumulators > 1) text += "      const float r1 = w[i];\n";
  for (size_t k = 0; k < operands.size(); ++k)
    text += fmt::format("      const float r{} = o{}[i];\n", k + accumulators, k);
  Program before = program;
  if (levels) before.code.resize(levels->instructions), before.outputs.back() = static_cast<uint16_t>(levels->x);
  text += program_lines(before, "float", "      ", levels && levels->gelu ? *levels->gelu : exactness);
  for (size_t k = 0; k < outputs; ++k)
    text += fmt::format("      {} = {};\n", is_applied ? "v[i]" : fmt::format("results[{}][i]", k),
                        levels && k + 1 == outputs ? unrounded(*levels) : fmt::format("r{}", program.outputs[k]));
  text += "    }\n  }\n";
  if (may_be_held)
    text +=
        "  template <int D, int W>\n  LATHE_DEVICE_MEMBER void apply(float (&v)[W], const long (&c)[kCoordinates], int "
        "count) const {\n    apply<D, W>(v, c, count, columns<D, W>(c, count));\n  }\n";
  return text;
}

}  // namespace

int unit_dim(const Operand& operand) {
  for (int d = operand.rank(); d-- > 0;)
    if (operand.strides[static_cast<size_t>(d)] == Expr(1) && operand.dims[static_cast<size_t>(d)] != Expr(1)) return d;
  return -1;
}

int vector_width(const Operand& operand) {
  const int unit = unit_dim(operand);
  if (unit < 0) return 1;
  int64_t width = kVectorBytes / static_cast<int64_t>(size_of(operand.dtype));
  while (width > 1 && mod(operand.offset, width) != Expr(0)) width /= 2;
  if (operand.padding)
    while (width > 1 && mod(operand.padding->begin[static_cast<size_t>(unit)], width) != Expr(0)) width /= 2;
  for (int d = 0; d < operand.rank(); ++d) {
    const size_t i = static_cast<size_t>(d);
    if (d == unit || operand.dims[i] == Expr(1)) continue;
    while (width > 1 && mod(operand.strides[i], width) != Expr(0)) width /= 2;
  }
  return static_cast<int>(width);
}

Operand broadcast(const Operand& operand, const Operand& to) {
  if (operand.padding) return operand;
  Operand result = operand;
  result.dims = to.dims;
  result.opt_dims = to.opt_dims;
  result.strides.assign(to.dims.size(), Expr(0));
  result.opt_strides.assign(to.dims.size(), 0);
  const size_t lead = to.dims.size() - operand.dims.size();
  for (size_t d = 0; d < operand.dims.size(); ++d) {
    result.strides[lead + d] = broadcast_stride(operand.dims[d], to.dims[lead + d], operand.strides[d]);
    const bool repeats = operand.dims[d] == Expr(1) || (operand.opt_dims[d] == 1 && to.opt_dims[lead + d] != 1);
    result.opt_strides[lead + d] = repeats ? 0 : operand.opt_strides[d];
  }
  return result;
}

std::string_view device_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::i8:
      return "int8";
    case DType::i16:
      return "int16";
    case DType::i32:
      return "int32";
    case DType::i64:
      return "int64";
    case DType::u8:
      return "uint8";
    case DType::u16:
      return "uint16";
    case DType::u32:
      return "uint32";
    case DType::u64:
      return "uint64";
    case DType::boolean:
      return "bool";
    case DType::f8e4m3fn:
      return "f8e4m3";
    case DType::f8e5m2:
      return "f8e5m2";
    default:  // other storage types: no kernel reads more than their bits
      return "uint8";
  }
}

DType raw_type(DType dtype) {
  switch (size_of(dtype)) {
    case 1:
      return DType::u8;
    case 2:
      return DType::u16;
    case 4:
      return DType::u32;
    default:
      return DType::u64;
  }
}

Source::Source(std::string_view header) { include(header); }

void Source::include(std::string_view header) { headers_ += fmt::format("#include \"{}\"\n", header); }

std::string Source::number(const Expr& expr) {
  if (const auto value = expr.as_constant()) return literal(*value);
  const auto known = std::find(numbers_.begin(), numbers_.end(), expr);
  if (known == numbers_.end()) {
    numbers_.push_back(expr);
    return fmt::format("n{}", numbers_.size() - 1);
  }
  return fmt::format("n{}", known - numbers_.begin());
}

// "long name(int i) const": values[i]. Arguments that it needs are added to the descriptor's members.
std::string Source::index_function(std::string_view name, const Shape& values, std::vector<std::string>& members) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string value = number(values[i]);
    if (!values[i].is_constant() && std::find(members.begin(), members.end(), value) == members.end())
      members.push_back(value);
    text += i + 1 < values.size() ? fmt::format("i == {} ? {} : ", i, value) : value;
  }
  return fmt::format("  LATHE_DEVICE_MEMBER long {}(int i) const {{ return {}; }}\n", name, text.empty() ? "1L" : text);
}

void Source::tensor(LaunchArg arg, const Operand& operand, std::string_view name) {
  std::vector<std::string> members;
  const std::string dims = index_function("dim", operand.dims, members);
  std::string functions = dims + index_function("stride", operand.strides, members);
  if (operand.padding)
    functions +=
        index_function("begin", operand.padding->begin, members) +
        fmt::format("  LATHE_DEVICE_MEMBER float fill() const {{ return {}; }}\n", literal(operand.padding->value));
  declarations_ += fmt::format("struct {} {{\n  using Type = {};\n", name, device_type(operand.dtype));
  declarations_ += fmt::format("  static constexpr int kRank = {}, kUnit = {}, kVector = {};\n  Type* data;\n",
                               operand.rank(), unit_dim(operand), vector_width(operand));
  if (!members.empty()) declarations_ += fmt::format("  long {};\n", join(members, ", "));
  declarations_ += functions + "};\n";
  parameters_ += fmt::format("{}{}::Type* {}_data", parameters_.empty() ? "" : ", ", name, name);
  members.insert(members.begin(), fmt::format("{}_data", name));
  objects_ += fmt::format("  const {} {}_{{{}}};\n", name, name, join(members, ", "));
  args_.push_back(std::move(arg));
}

void Source::list(std::string_view name, const Shape& values) {
  std::vector<std::string> members;
  const std::string function = index_function("operator()", values, members);
  declarations_ += fmt::format("struct {} {{\n", name);
  if (!members.empty()) declarations_ += fmt::format("  long {};\n", join(members, ", "));
  declarations_ += function + "};\n";
  objects_ += fmt::format("  const {} {}_{{{}}};\n", name, name, join(members, ", "));
}

void Source::input(size_t index, const Operand& operand, std::string_view name) {
  tensor({LaunchArg::input, static_cast<uint32_t>(index), {}}, operand, name);
}

void Source::output(size_t index, const Operand& operand, std::string_view name) {
  tensor({LaunchArg::output, static_cast<uint32_t>(index), {}}, operand, name);
}

void Source::fusion(const Problem& problem, size_t first_input) {
  fusion(problem, problem.outputs[0], problem.operands, first_input);
}

void Source::fusion(const Problem& problem, const Operand& output, const std::vector<Operand>& views,
                    size_t first_input) {
  declare_fusion(problem, output, views, first_input, std::nullopt);
}

void Source::rounding_fusion(const Problem& problem, size_t first_input) {
  rounding_fusion(problem, problem.outputs[0], problem.operands, first_input);
}

void Source::rounding_fusion(const Problem& problem, const Operand& output, const std::vector<Operand>& views,
                             size_t first_input) {
  declare_fusion(problem, output, views, first_input, levels_of(problem.program, problem.outputs.back().dtype));
}

void Source::declare_fusion(const Problem& problem, const Operand& output, const std::vector<Operand>& views,
                            size_t first_input, const std::optional<Levels>& levels) {
  Program program = problem.program;
  if (program.outputs.empty()) {
    program.num_inputs = 1;
    program.outputs = {0};
  }
  std::vector<Operand> operands;
  for (const Operand& view : views) operands.push_back(broadcast(view, output));
  const auto all_are = [&](auto is) {
    return std::ranges::all_of(problem.outputs, [&](const Operand& o) { return is(o.dtype); });
  };
  const Exactness exactness =
      all_are([](DType dtype) { return dtype == DType::f16; }) ? Exactness::half
      : all_are([](DType dtype) { return (is_floating(dtype) && size_of(dtype) <= 2) || is_factor_float8(dtype); })
          ? Exactness::bits16
          : Exactness::full;
  declare_program({"Fusion", "fusion_", "Op"}, {program, problem.accumulators(), levels, exactness}, output.dims.size(),
                  operands, first_input);
}

void Source::prologue(const Program& program, const std::vector<Operand>& views, size_t first_input,
                      std::string_view tensor) {
  const std::string type = fmt::format("{}Prologue", tensor), object = tensor.empty() ? "prologue_" : type + "_";
  declare_program({type, object, fmt::format("{}Pre", tensor)}, {program, 1, std::nullopt}, views[0].dims.size(),
                  std::span(views).subspan(1), first_input);
}

void Source::declare_program(const ProgramNames& names, const ProgramText& text, size_t rank,
                             std::span<const Operand> operands, size_t first_input) {
  const Program& program = text.program;
  std::string members;
  std::vector<std::string> objects;
  for (size_t k = 0; k < operands.size(); ++k) {
    const std::string name = fmt::format("{}{}", names.operand, k);
    input(first_input + k, operands[k], name);
    const std::string type = operands[k].padding ? fmt::format("Padded<{}>", name) : name;
    members += fmt::format("  {} op{};\n", type, k);
    objects.push_back(operands[k].padding ? fmt::format("{{{}_}}", name) : name + "_");
  }
  declarations_ += fmt::format("struct {} {{\n", names.type);
  declarations_ += fmt::format("  static constexpr int kCoordinates = {}, kOutputs = {};\n", std::max<size_t>(rank, 1),
                               program.outputs.size());
  // Operands of several vectors are loaded together; long programs would stand in the code too often.
  constexpr size_t kShort = 6;
  const bool is_short = (text.levels ? text.levels->instructions : program.code.size()) <= kShort;
  declarations_ += fmt::format("  static constexpr int kAtOnce = {};\n", operands.empty() ? 1 : is_short ? 4 : 2);
  declarations_ += fmt::format("  static constexpr bool kShort = {};\n", is_short);
  declarations_ += fmt::format("  static constexpr bool kIdentity = {};\n", program.is_identity());
  declarations_ += fmt::format("  static constexpr bool kRounds = {};\n  static constexpr int kZero = {};\n",
                               text.levels.has_value(), text.levels ? text.levels->zero : 0);
  declarations_ +=
      members + program_function(program, text.accumulators, text.levels, text.exactness, operands) + "};\n";
  objects_ += fmt::format("  const {} {}{{{}}};\n", names.type, names.object, join(objects, ", "));
}

void Source::tensor_map(TensorMap map, std::string_view name) {
  map_parameters_ += fmt::format("{}LATHE_TENSOR_MAP {}", maps_.empty() ? "" : ", ", name);
  maps_.push_back(std::move(map));
}

void Source::workspace(std::string_view name, Expr byte_offset, std::string_view type) {
  parameters_ += fmt::format("{}{}* {}", parameters_.empty() ? "" : ", ", type, name);
  args_.push_back({LaunchArg::workspace, 0, std::move(byte_offset)});
}

void Source::define(std::string_view name, int64_t value) {
  declarations_ += fmt::format("constexpr long {} = {};\n", name, literal(value));
}

void Source::declare(std::string_view text) {
  declarations_ += text;
  declarations_ += '\n';
}

SourceLaunch Source::finish(std::string_view call, std::array<Expr, 3> grid, uint32_t block, uint32_t shared_bytes,
                            int min_blocks) {
  SourceLaunch result;
  std::string parameters = map_parameters_;
  if (!parameters.empty() && !parameters_.empty()) parameters += ", ";
  parameters += parameters_;
  for (size_t i = 0; i < numbers_.size(); ++i)
    parameters += fmt::format("{}long n{}", parameters.empty() ? "" : ", ", i);
  result.source = "#include \"lib/math.cuh\"\n#include \"lib/tensor.cuh\"\n";
  result.source += headers_;
  result.source += declarations_;
  result.source += fmt::format("LATHE_PARAMETERS({})\n", maps_.size() + args_.size() + numbers_.size());
  if (!maps_.empty()) result.source += fmt::format("LATHE_TENSOR_MAPS({})\n", maps_.size());
  result.source += fmt::format("LATHE_KERNEL({}, {}) void lathe_kernel({}) {{\n", block, min_blocks, parameters);
  result.source += objects_;
  result.source += fmt::format("  {}\n}}\n", call);
  result.launch.entry = "lathe_kernel";
  result.launch.grid = std::move(grid);
  result.launch.block = block;
  result.launch.shared_bytes = shared_bytes;
  result.launch.overlaps = true;
  for (uint32_t i = 0; i < maps_.size(); ++i) result.launch.args.push_back({LaunchArg::tensor_map, i, {}});
  result.launch.args.insert(result.launch.args.end(), args_.begin(), args_.end());
  result.launch.maps = maps_;
  for (const Expr& expr : numbers_) result.launch.args.push_back({LaunchArg::number, 0, expr});
  return result;
}

}  // namespace lathe::cuda
