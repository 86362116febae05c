// SPDX-License-Identifier: Apache-2.0
#include "passes/graph_dump.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/atomic_file.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".graph";
constexpr int64_t kFewElements = 64;
constexpr int64_t kManyElements = 1 << 16;

// "012_fold_affine.graph"
bool is_ours(const std::string& name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return name.size() > 4 && std::all_of(name.begin(), name.begin() + 3, is_digit) && name[3] == '_' &&
         name.ends_with(kSuffix);
}

}  // namespace

Result<GraphDump> GraphDump::open(const std::string& directory) {
  GraphDump dump;
  if (directory.empty()) return dump;
  std::error_code error;
  fs::create_directories(directory, error);
  if (error)
    return fail(ErrorCode::file_read, "cannot make the folder '{}' for the passes' graphs: {}", directory,
                error.message());
  fs::directory_iterator files(directory, error);
  for (; !error && files != fs::directory_iterator(); files.increment(error)) {
    std::error_code removal;
    if (is_ours(files->path().filename().string())) fs::remove(files->path(), removal);
    if (removal) error = removal;
  }
  if (error)
    return fail(ErrorCode::file_read, "cannot clear the folder '{}' of earlier graphs: {}", directory, error.message());
  dump.directory_ = directory;
  return dump;
}

Result<> GraphDump::write(std::string_view name, const ir::Graph& graph) {
  LATHE_TRY(write(name, graph, kFewElements));
  return {};
}

Result<std::string> GraphDump::write_failed(std::string_view pass, const ir::Graph& given) {
  return write(fmt::format("{}_failed", pass), given, kManyElements);
}

Result<std::string> GraphDump::write(std::string_view name, const ir::Graph& graph, int64_t max_elements) {
  if (directory_.empty()) return std::string();
  std::string path = fmt::format("{}/{:03}_{}{}", directory_, written_++, name, kSuffix);
  const std::string text = ir::to_text(graph, max_elements);
  LATHE_TRY(write_file_atomically(path, std::as_bytes(std::span(text))));
  return path;
}

}  // namespace lathe
