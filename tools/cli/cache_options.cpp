// SPDX-License-Identifier: Apache-2.0
#include "cache_options.h"

#include "commands.h"
#include "shared_options.h"

namespace lathe::cli {
namespace {

using Run = int (*)(const CacheCommand&);

// What a command is about.
struct Subject {
  const char *name, *about;
};
constexpr Subject kFolder{"DIRECTORY", "The folder"}, kModel{"MODEL", "The ONNX model"};

std::shared_ptr<CacheCommand> add(CLI::App& group, std::function<int()>& chosen, const char* name, const char* about,
                                  const Subject& subject, Run run) {
  auto* command = group.add_subcommand(name, about);
  auto options = std::make_shared<CacheCommand>();
  command->add_option(subject.name, options->path, subject.about)->required();
  command->callback([options, run, &chosen] { chosen = [options, run] { return run(*options); }; });
  return options;
}

void add_request(CLI::App& command, CacheCommand& options) {
  command.add_option("--directory", options.directory, "Where artifacts lie; the model's folder unless given");
  command.add_option("--precision", options.precision, "fp32 (unless given), fp16, bf16, int8 or best");
  command.add_option("--batch", options.batch, "What open first dimensions are fixed to; 1 unless given");
  command.add_option("--target", options.target, "What the engine is for, as `lathe build` takes it");
  add_shapes(command, options.settings);
}

}  // namespace

void add_cache(CLI::App& app, std::function<int()>& chosen) {
  auto* group = app.add_subcommand("cache", "Engines that are kept beside their models");
  group->require_subcommand(1);
  add(*group, chosen, "ls", "The engines below a folder", kFolder, list_artifacts);
  add(*group, chosen, "verify", "Read them, and tell which are of no use; the exit status is then 1", kFolder,
      verify_artifacts);
  const auto prune = add(*group, chosen, "prune", "Remove those that were not used for longest, and those of no use",
                         kFolder, prune_artifacts);
  group->get_subcommand("prune")
      ->add_option("--mostBytes", prune->most_bytes, "How much may stay")
      ->required()
      ->check(kNotNegative);
  const auto explain = add(*group, chosen, "explain",
                           "Tell whether a model's engine would be used, and what has changed if not: exit status 1",
                           kModel, explain_artifact);
  add_request(*group->get_subcommand("explain"), *explain);
  const auto get = add(*group, chosen, "get", "Use a model's engine, or build it", kModel, get_artifact);
  auto* command = group->get_subcommand("get");
  add_request(*command, *get);
  command->add_option("--budget", get->settings.budget, "Seconds for the search, if it is built")->check(kNotNegative);
  command->add_option("--mostBytes", get->most_bytes, "Engines not used for longest go beyond so much; 0: none")
      ->check(kNotNegative);
  command->add_option("-o,--output", get->output, "Where a copy of the engine goes");
  group->footer(
      "An engine lies in PRECISION/bsBATCH beside its model, and beside it a JSON file says what it depends on.\n\n"
      "Examples:\n"
      "  lathe cache get model.onnx --precision fp16 --batch 8\n"
      "  lathe cache explain model.onnx --precision fp16 --batch 8\n"
      "  lathe cache prune models --mostBytes 10000000000");
}

}  // namespace lathe::cli
