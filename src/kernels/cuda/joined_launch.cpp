// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/joined_launch.h"

#include <algorithm>

namespace lathe::cuda {
namespace {

constexpr uint32_t kWarp = 32;

// What Source::finish() has written.
struct KernelText {
  std::vector<std::string_view> includes;  // lines
  std::string_view declarations;
  std::vector<std::string_view> parameters;  // "A::Type* A_data"
  std::string_view body;                     // with its last brace
};

// Takes what stands before the mark, and the mark, off the text.
std::optional<std::string_view> take_until(std::string_view& text, std::string_view mark) {
  const size_t end = text.find(mark);
  if (end == text.npos) return std::nullopt;
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end + mark.size());
  return taken;
}

// nullopt: it is written in another way.
std::optional<KernelText> parse(std::string_view text) {
  KernelText kernel;
  while (text.starts_with("#include")) kernel.includes.push_back(*take_until(text, "\n"));
  const auto declarations = take_until(text, "LATHE_PARAMETERS("), count = take_until(text, "LATHE_KERNEL("),
             limits = take_until(text, "void lathe_kernel(");
  auto parameters = take_until(text, ") {\n");
  if (!declarations || !count || !limits || !parameters) return std::nullopt;
  if (declarations->find('#') != declarations->npos) return std::nullopt;  // headers that would be in a namespace
  kernel.declarations = *declarations;
  kernel.body = text;
  while (!parameters->empty()) {
    const auto one = take_until(*parameters, ", ");
    kernel.parameters.push_back(one.value_or(*parameters));
    if (!one) break;
  }
  return kernel;
}

// Kernels of which each block does little and knows of no others, by their headers' folders.
bool is_short(const KernelText& kernel) {
  constexpr size_t kName = std::string_view("#include \"").size();
  return std::ranges::any_of(joined_folders(), [&](std::string_view folder) {
    return std::ranges::any_of(kernel.includes,
                               [&](std::string_view line) { return line.substr(kName).starts_with(folder); });
  });
}

bool has_own_blocks(const Launch& launch) {
  return launch.library.empty() && launch.cluster == 1 && launch.maps.empty() && launch.overlaps &&
         launch.grid[1] == Expr(1) && launch.grid[2] == Expr(1);
}

class Joined {
 public:
  explicit Joined(JoinedParts how) : how_(how) {}

  void add(size_t i, const KernelText& kernel, const Launch& launch) {
    for (const std::string_view line : kernel.includes)
      if (std::ranges::find(includes_, line) == includes_.end()) includes_.push_back(line);
    std::string own, given;
    for (const std::string_view parameter : kernel.parameters) {
      const size_t space = parameter.rfind(' ');
      const std::string_view type = parameter.substr(0, space), name = parameter.substr(space + 1);
      const bool is_declared = type.find("::") != type.npos;  // by the part
      own += fmt::format("{}{}", own.empty() ? "" : ", ", parameter);
      given += fmt::format("{}p{}_{}", given.empty() ? "" : ", ", i, name);
      parameters_.push_back(fmt::format("{}{} p{}_{}", is_declared ? fmt::format("part{}::", i) : "", type, i, name));
    }
    args_.insert(args_.end(), launch.args.begin(), launch.args.end());
    parts_ += fmt::format("namespace part{} {{\n{}LATHE_DEVICE void run({}) {{\n{}}}\n", i, kernel.declarations, own,
                          kernel.body);
    calls_ += call(i, launch, given);
    widest_ = i == 0 ? launch.grid[0] : max(widest_, launch.grid[0]);
    shared_bytes_ = std::max(shared_bytes_, launch.shared_bytes);
    block_ = std::max(block_, launch.block);
  }

  SourceLaunch finish(int64_t count) && {
    SourceLaunch result;
    if (how_ == JoinedParts::in_turn) result.source = "#define LATHE_PARTS_IN_TURN\n";
    for (const std::string_view line : includes_) result.source.append(line).append("\n");
    result.source += parts_;
    std::string parameters;
    for (const std::string& parameter : parameters_) parameters += (parameters.empty() ? "" : ", ") + parameter;
    result.source += fmt::format("LATHE_PARAMETERS({})\nLATHE_KERNEL({}, 1) void lathe_kernel({}) {{\n{}",
                                 parameters_.size(), block_, parameters, calls_);
    result.source += "  dependency_wait();\n}\n";  // of blocks that are no part's
    result.launch.entry = "lathe_kernel";
    result.launch.grid = {widest_, how_ == JoinedParts::at_once ? count : 1, 1};
    result.launch.block = block_;
    result.launch.shared_bytes = shared_bytes_;
    result.launch.overlaps = true;
    result.launch.args = std::move(args_);
    return result;
  }

 private:
  // Threads that are done with a part early, and those that it does not have, wait at the barrier behind it: no kernel
  // of these folders has a barrier that some of its threads do not reach. What the block has written, all its threads
  // see from there on.
  std::string call(size_t i, const Launch& launch, std::string_view given) {
    const std::string own = blocks(i, launch.grid[0]);
    if (how_ == JoinedParts::at_once)
      return fmt::format("  if (block_y() == {0} && block_x() < {1}) return part{0}::run({2});\n", i, own, given);
    return fmt::format(
        "  begin_part({3});\n  if (thread_x() < {3} && block_x() < {1}) part{0}::run({2});\n  barrier_of_parts();\n", i,
        own, given, launch.block);
  }

  // How many of the row are the part's.
  std::string blocks(size_t i, const Expr& extent) {
    if (const auto known = extent.as_constant()) return fmt::format("{}L", *known);
    std::string name = fmt::format("p{}_blocks", i);
    parameters_.push_back("long " + name);
    args_.push_back({LaunchArg::number, 0, extent});
    return name;
  }

  JoinedParts how_;
  std::vector<std::string_view> includes_;
  std::vector<std::string> parameters_;
  std::vector<LaunchArg> args_;
  std::string parts_, calls_;
  Expr widest_;
  uint32_t shared_bytes_ = 0, block_ = 0;
};

}  // namespace

std::span<const std::string_view> joined_folders() {
  static constexpr std::string_view kFolders[] = {"copy/",    "cumulative/",     "gather/",
                                                  "generic/", "normalization/",  "pointwise/",
                                                  "reduce/",  "tensor_scatter/", "topk/"};
  return kFolders;
}

std::optional<SourceLaunch> joined_launch(std::span<const SourceLaunch> parts, JoinedParts how) {
  Joined joined(how);
  size_t args = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Launch& launch = parts[i].launch;
    if (!has_own_blocks(launch)) return std::nullopt;
    if (how == JoinedParts::at_once ? launch.block != parts[0].launch.block : launch.block % kWarp != 0)
      return std::nullopt;
    const std::optional<KernelText> kernel = parse(parts[i].source);
    args += launch.args.size() + 1;
    if (!kernel || !is_short(*kernel) || args > kMaxLaunchArgs) return std::nullopt;
    joined.add(i, *kernel, launch);
  }
  return std::move(joined).finish(static_cast<int64_t>(parts.size()));
}

}  // namespace lathe::cuda
