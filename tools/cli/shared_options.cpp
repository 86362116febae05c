// SPDX-License-Identifier: Apache-2.0
#include "shared_options.h"

#include <fmt/core.h>

#include <cmath>

namespace lathe::cli {
namespace {

constexpr const char* kHowToBuild = "How to build";

void add_precisions(CLI::App& command, BuildSettings& settings) {
  constexpr const char* group = "Precision";
  auto* fp16 = command.add_flag("--fp16", settings.fp16, "Float32 computation may be narrowed to float16");
  auto* bf16 = command.add_flag("--bf16", settings.bf16, "... or to bfloat16");
  auto* int8 = command.add_flag(
      "--int8", settings.int8,
      "A quantised network (with Q/DQ) is expected: its quantised parts run in int8 where the target can");
  auto* best = command.add_flag("--best", settings.best, "Whatever is fastest: as --fp16 --int8");
  command.add_flag("--noTF32", settings.no_tf32, "Products of float32 do not round their operands to TF32")
      ->group(group);
  command
      .add_option("--sparsity", settings.sparsity,
                  "What becomes of 2:4 sparse weights: disable (unless given: nothing), enable (kernels of GPUs that "
                  "leave out zeros take part in the choice), force (the same, and all weights are pruned to such: "
                  "results are others)")
      ->check(CLI::IsMember({"disable", "enable", "force"}))
      ->group(group);
  auto* typed = command.add_flag("--stronglyTyped", settings.strongly_typed, "Exactly the types that the network says");
  command
      .add_option("--precisionConstraints", settings.constraints,
                  "What the types set for single layers are: none (unless given: they have no effect), prefer (a layer "
                  "that cannot have its type gets a warning), obey (the build fails)")
      ->check(CLI::IsMember({"none", "prefer", "obey"}))
      ->group(group);
  command
      .add_option("--layerPrecisions", settings.layer_precisions,
                  "What layers compute in: name:fp32,... (fp32, fp16, bf16, int8); names may hold one *")
      ->group(group);
  command
      .add_option("--layerOutputTypes", settings.layer_output_types,
                  "What their outputs are rounded to: name:fp16,... (name:fp32+fp16 for two outputs)")
      ->group(group);
  for (CLI::Option* option : {fp16, bf16, int8, best}) option->group(group)->excludes(typed);
  fp16->excludes(bf16);
  best->excludes(bf16);
  typed->group(group);
}

void add_passes(CLI::App& command, BuildSettings& settings) {
  constexpr const char* group = "Looking into a build";
  command
      .add_option("--dumpPasses", settings.pass_dump,
                  "Folder for the network as text: 000_before.graph, then one file per pass that changed it; what a "
                  "failing pass was given, too. Earlier dumps in it are removed")
      ->group(group);
  command
      .add_option(
          "--skipPass", settings.skip,
          "Leave a pass out, to find one that is to blame; may be given several times. An unknown name lists all")
      ->take_all()
      ->allow_extra_args(false)
      ->group(group);
}

}  // namespace

const CLI::Validator kNotNegative(
    [](const std::string& text) {
      double number = -1;
      const bool is_valid = CLI::detail::lexical_cast(text, number) && std::isfinite(number) && number >= 0;
      return is_valid ? "" : fmt::format("'{}' is no number from 0 on", text);
    },
    "NONNEGATIVE");

void add_shapes(CLI::App& command, BuildSettings& settings) {
  command.add_option("--minShapes", settings.min_shapes, "Least sizes of dynamic inputs: name:1x3x224x224,...")
      ->group(kHowToBuild);
  command.add_option("--optShapes", settings.opt_shapes, "Sizes to tune for")->group(kHowToBuild);
  command.add_option("--maxShapes", settings.max_shapes, "Largest sizes")->group(kHowToBuild);
}

void add_build_options(CLI::App& command, BuildSettings& settings, bool shapes) {
  const char* const group = kHowToBuild;
  if (shapes) add_shapes(command, settings);
  command
      .add_option("--inputElements", settings.input_elements,
                  "How many tensors there are of inputs that are sequences: name:3,... and they are name_0, name_1 and "
                  "so on; name:3@1x?x64 with their dims, where the model does not tell; name:none for an optional that "
                  "is not given")
      ->group(group);
  command.add_option("--timingCacheFile", settings.timing_cache, "Measurements to reuse, and to add to")->group(group);
  command
      .add_option("--buildBudget", settings.budget,
                  "Seconds to spend on measuring; 0 measures nothing and trusts the cost model")
      ->check(kNotNegative)
      ->group(group);
  command
      .add_option("--builderOptimizationLevel", settings.level,
                  "0 (quickest build) to 5 (quickest engine); 3 unless given")
      ->check(CLI::Range(0, 5))
      ->group(group);
  command
      .add_option(
          "--target", settings.target,
          "What to build for: cpu, cuda (the current GPU), cuda:1, sm_90 (any GPU of that architecture); unless "
          "given, what LATHE_TARGET names, else the GPU where there is one, else the CPU")
      ->group(group);
  command
      .add_option("--tacticSources", settings.tactic_sources,
                  "Libraries whose kernels may be used beside Lathe's own: +CUBLAS_LT,+CUDNN; off unless given, for "
                  "engines that use one need it wherever they are loaded")
      ->group(group);
  add_precisions(command, settings);
  add_passes(command, settings);
  command.add_flag("--verbose", settings.verbose, "Everything the library logs")->group(group);
}

void add_threads(CLI::App& command, BuildSettings& settings) {
  command.add_option("--threads", settings.threads, "Threads to run on; all allowed CPUs unless given")
      ->check(CLI::Range(0, 4096));
}

void add_trusted_keys(CLI::App& command, std::string& keys) {
  command.add_option("--trustedKeys", keys,
                     "Whose engines are taken: public keys (ed25519:...), or files of them, separated by commas");
}

void add_runtime(CLI::App& command, RuntimeSettings& runtime) {
  constexpr const char* group = "What runs the engine";
  command
      .add_option("--useRuntime", runtime.which,
                  "full: this program's library; lean or dispatch: liblathe_lean.so or liblathe_dispatch.so beside it")
      ->check(CLI::IsMember({"full", "lean", "dispatch"}))
      ->group(group);
  command
      .add_option("--leanDLLPath", runtime.lean_library,
                  "The runtime library that is to run the engine: liblathe_lean.so of the version that built it, say")
      ->group(group);
  command
      .add_flag("--allowHostCode", runtime.allow_host_code,
                "Load code for the host that the engine holds, a runtime of its own version: of engines that you trust")
      ->group(group);
  command
      .add_option("--runtimeCacheFile", runtime.cache_file,
                  "Where kernels that have to be compiled for this GPU are looked for, and kept for the next start")
      ->group(group);
  add_trusted_keys(command, runtime.trusted_keys);
}

}  // namespace lathe::cli
