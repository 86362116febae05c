// SPDX-License-Identifier: Apache-2.0
// lathe key new, lathe sign, lathe verify
#include <fmt/core.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "failure.h"
#include "session.h"

namespace lathe::cli {

int make_key(const KeyCommand& command) {
  const std::string secret = command.name + ".key", open = command.name + ".pub";
  if (!makeKeyFiles(secret.c_str(), open.c_str())) throw Failure(lastError());
  fmt::print("{}: the secret key, which signs: let nobody else read it\n{}: the public key, {}", secret, open,
             read_file(open));
  return 0;
}

int sign(const SignCommand& command) {
  const std::string plan = read_file(command.file);
  const Plan result(signPlan(plan.data(), plan.size(), command.key.c_str()));
  if (!result) throw Failure(lastError());
  const std::string& output = command.output.empty() ? command.file : command.output;
  write_file(output, text_of(*result));
  const auto report = nlohmann::json::parse(take_text(planJson(result->data(), result->size())));
  fmt::print("{}: signed by {}\n", output, report["signed_by"].get<std::string>());
  return 0;
}

int verify(const VerifyCommand& command) {
  const char* const list = std::getenv("LATHE_TRUSTED_KEYS");
  if (command.trusted_keys.empty() && !list)
    throw UsageError("whose engines are to be taken? Say --trustedKeys=FILE.pub, or set LATHE_TRUSTED_KEYS");
  const std::string keys = command.trusted_keys.empty() ? list : command.trusted_keys;
  const std::string plan = read_file(command.file);
  if (!verifyPlan(plan.data(), plan.size(), keys.c_str())) throw Failure(lastError());
  const auto report = nlohmann::json::parse(take_text(planJson(plan.data(), plan.size())));
  fmt::print("{}: signed by {}, and not changed since\n", command.file, report["signed_by"].get<std::string>());
  return 0;
}

}  // namespace lathe::cli
