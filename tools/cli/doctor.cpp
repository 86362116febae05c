// SPDX-License-Identifier: Apache-2.0
// lathe doctor
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "failure.h"
#include "session.h"

namespace lathe::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Tool {
  const char* name;
  const char* purpose;
  const char* remedy;
};

// Engines are built and run without any of these.
constexpr Tool kTools[] = {
    {"cmake", "compiling Lathe from source", "make setup"},
    {"ninja", "compiling Lathe from source", "make setup"},
    {"g++", "compiling Lathe from source", "make setup"},
    {"flatc", "compiling Lathe from source", "make setup"},
    {"mold", "quicker linking", "make setup"},
    {"ccache", "quicker recompiling", "make setup"},
    {"python3", "the demo and the tests", "make setup"},
};

bool is_on_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  return false;
}

std::string first_line(const char* path) {
  std::string text;
  try {
    text = read_file(path);
  } catch (const Failure&) {  // the file does not exist everywhere
  }
  return text.substr(0, text.find('\n'));
}

Json check(std::string name, bool good, std::string detail, std::string remedy) {
  return {{"name", std::move(name)},
          {"ok", good},
          {"detail", std::move(detail)},
          {"remedy", good ? "" : std::move(remedy)}};
}

Json examine() {
  Json json = Json::parse(take_text(doctorJson()));
  Json& checks = json["checks"];
  const double available = static_cast<double>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  checks.push_back(check("free memory", available > 256e6, human_bytes(available),
                         "close other programs: building wants more than 256 MB"));
  const std::string limit = first_line("/sys/fs/cgroup/memory.max");
  if (!limit.empty() && limit != "max")
    checks.push_back(check("memory limit", std::atof(limit.c_str()) > 512e6, human_bytes(std::atof(limit.c_str())),
                           "raise this container's memory limit"));
  const std::string pages = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  if (!pages.empty())
    checks.push_back(check("huge pages", pages.find("[never]") == std::string::npos, pages,
                           "optional, for speed: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"));
  for (const Tool& tool : kTools) {
    const bool found = is_on_path(tool.name);
    checks.push_back(
        check(tool.name, found, found ? "found" : fmt::format("missing; for {} only", tool.purpose), tool.remedy));
  }
  return json;
}

// "cuda:0   NVIDIA H200: compute capability 9.0, multiprocessors 132, memory 150.1 GB"
std::string line_of(const Json& device) {
  std::string line = fmt::format("{:<8} {}", device["name"].get<std::string>(), device["product"].get<std::string>());
  const char* separator = ": ";
  for (const auto& [key, value] : device.items()) {
    if (key == "name" || key == "product" || key == "target") continue;
    const bool is_bytes = key.ends_with("_bytes");
    std::string words = is_bytes ? key.substr(0, key.size() - 6) : key;
    std::replace(words.begin(), words.end(), '_', ' ');
    line += fmt::format("{}{} {}", separator, words,
                        is_bytes            ? human_bytes(value.get<double>())
                        : value.is_string() ? value.get<std::string>()
                                            : value.dump());
    separator = ", ";
  }
  return line;
}

}  // namespace

int doctor(const DoctorCommand& command) {
  const Json json = examine();
  fmt::print("Lathe {} on {}\n", json["version"].get<std::string>(), json["os"].get<std::string>());
  fmt::print("memory   {}\n", human_bytes(json["memory_bytes"].get<double>()));
  for (const Json& device : json["devices"]) fmt::print("{}\n", line_of(device));
  fmt::print("targets  {}\n\n", json["targets"].dump());
  std::vector<std::vector<std::string>> rows = {{"check", "", "found"}};
  std::string remedies;  // sentences: they have no place in a table
  for (const Json& entry : json["checks"]) {
    const bool good = entry["ok"].get<bool>();
    rows.push_back({entry["name"].get<std::string>(), good ? "good" : "LOOK", entry.value("detail", "")});
    if (!good) remedies += fmt::format("\n{}: {}\n", entry["name"].get<std::string>(), entry.value("remedy", ""));
  }
  fmt::print("{}{}", table(rows), remedies);
  if (!command.json.empty()) write_file(command.json, json.dump(2) + "\n");
  return json["checks"][0]["ok"].get<bool>() ? 0 : 1;
}

}  // namespace lathe::cli
