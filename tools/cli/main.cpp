// SPDX-License-Identifier: Apache-2.0
// The command line: what can be said, and what is said back when it cannot.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <string_view>

#include "cache_options.h"
#include "commands.h"
#include "failure.h"
#include "lathe.h"
#include "quantize_options.h"
#include "shared_options.h"
#include "trtexec/trtexec.h"

namespace {

using namespace lathe::cli;

constexpr const char* kAbout =
    "Lathe turns ONNX models into engines that are tuned for this machine, and runs them.\n\n"
    "  lathe build model.onnx -o model.engine              tune once\n"
    "  lathe run model.engine --loadInputs=x:input.npy     run on real input\n"
    "  lathe bench model.engine                            measure\n\n"
    "`lathe COMMAND --help` explains each command with examples.";

constexpr const char* kEasier =
    "Easier here than with trtexec:\n"
    "  lathe run model.onnx --loadInputs=image:cat.jpg     pictures, .npy and .pb go in, outputs are shown\n"
    "  lathe compare model.onnx --fp16                     is the answer right, and where is it not\n"
    "  lathe inspect model.onnx --support                  what of a model is supported, without building\n"
    "  lathe inspect model.engine --profile --html e.html  where the time goes, as a page\n"
    "  lathe inspect model.onnx --why=LAYER                why a layer runs as it does\n"
    "  lathe build model.onnx -o model.engine --buildBudget=10   a build that ends in time\n"
    "  lathe quantize model.onnx --data pictures -o q.onnx       8-bit integers, from files instead of a calibrator\n"
    "  lathe diff before.engine after.engine               what has changed between two engines\n"
    "  lathe doctor                                        what is missing on this machine, and what to do\n"
    "None of them needs a GPU. `lathe trtexec` takes trtexec's own flags.";

void add_build(CLI::App& app, std::function<int()>& chosen) {
  auto* command = app.add_subcommand("build", "Build an engine from an ONNX model");
  auto options = std::make_shared<BuildCommand>();
  command->add_option("MODEL", options->model, "The ONNX model")->required();
  command->add_option("-o,--output", options->output, "Where the engine goes")->required();
  add_threads(*command, options->settings);
  auto* compatible = command->add_flag("--versionCompatible", options->settings.version_compatible,
                                       "An engine that later versions run, too; it holds the runtime of this one");
  command
      ->add_flag("--excludeLeanRuntime", options->settings.exclude_lean_runtime,
                 "With --versionCompatible: without that runtime")
      ->needs(compatible);
  command->add_option("--targets", options->settings.targets,
                      "Several targets, in the order of preference: sm_90,sm_80+,cpu-x86_64-avx2. The engine has a "
                      "variant for each, with what they share of the weights once");
  command->add_flag("--storeWeights", options->settings.stores_weights,
                    "With --targets: weights are there in the order of each variant, so that loading derives none");
  add_build_options(*command, options->settings, true);
  command->footer(
      "A model whose inputs have open sizes becomes an engine for any sizes, tuned for size 1, unless you say what it\n"
      "is for. A timing cache makes later builds quick, and equal.\n\n"
      "Examples:\n"
      "  lathe build resnet50.onnx -o resnet50.engine --timingCacheFile=this_machine.cache\n"
      "  lathe build bert.onnx -o bert.engine --minShapes=ids:1x1 --optShapes=ids:1x128 --maxShapes=ids:8x512\n"
      "  lathe build model.onnx -o model.engine --buildBudget=10 --threads=1");
  command->callback([options, &chosen] { chosen = [options] { return build(*options); }; });
}

void add_run(CLI::App& app, std::function<int()>& chosen) {
  auto* command = app.add_subcommand("run", "Run an engine, or a model, once on given inputs");
  auto options = std::make_shared<RunCommand>();
  command->add_option("FILE", options->file, "An engine, or a model (.onnx), which is built first")->required();
  command->add_option("--loadInputs", options->inputs, "name:file,... (.npy, .pb, .png, .jpg, or bare bytes)");
  command->add_option("--exportOutput", options->output_directory, "Folder for the outputs, one .npy file each");
  add_threads(*command, options->settings);
  add_runtime(*command, options->runtime);
  add_build_options(*command, options->settings, true);
  command->footer(
      "Each output is shown with type, shape, first values and, where it looks like classes, the best five. A picture\n"
      "is brought to the input's size; float inputs get 0 to 1, uint8 inputs 0 to 255.\n\n"
      "Examples:\n"
      "  lathe run digits.engine --loadInputs=image:digit.png\n"
      "  lathe run model.onnx --loadInputs=ids:ids.npy,mask:mask.npy --exportOutput out");
  command->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

void add_bench(CLI::App& app, std::function<int()>& chosen) {
  auto* command = app.add_subcommand("bench", "Measure latency, throughput, load time and memory");
  auto options = std::make_shared<BenchCommand>();
  command->add_option("FILE", options->file, "An engine, or a model (.onnx), which is built first")->required();
  command->add_option("--shapes", options->shapes, "Sizes of dynamic inputs: name:1x3x224x224,...");
  command->add_option("--loadInputs", options->inputs, "name:file,...; other inputs are made up");
  command->add_option("--seconds", options->seconds, "How long to measure; 3 unless given")->check(CLI::PositiveNumber);
  command->add_option("--json", options->json, "File for the numbers as JSON");
  add_threads(*command, options->settings);
  add_runtime(*command, options->runtime);
  add_build_options(*command, options->settings, false);
  command->footer(
      "Examples:\n"
      "  lathe bench resnet50.engine --threads=1\n"
      "  lathe bench bert.engine --shapes=ids:1x128,mask:1x128 --seconds=10 --json bench.json");
  command->callback([options, &chosen] { chosen = [options] { return bench(*options); }; });
}

void add_inspect(CLI::App& app, std::function<int()>& chosen) {
  auto* command = app.add_subcommand("inspect", "Show what an engine does, or what of a model is supported");
  auto options = std::make_shared<InspectCommand>();
  command->add_option("FILE", options->file, "An engine, or a model (.onnx), which is built first")->required();
  command->add_flag("--support", options->support,
                    "Of a model: each node with native, generic, or unsupported and why");
  command->add_option("--why", options->why,
                      "Of a model: why this tensor lies where it does, and what else would have cost");
  command->add_option(
      "--html", options->html,
      "File for all of it as one page, for a browser: steps and what lies between them, times, roofline, "
      "memory, copies");
  command->add_flag("--profile", options->profile,
                    "Measure what each step takes, in runs, rather than rely on the build");
  command->add_option("--loadInputs", options->inputs,
                      "Of --profile: name:file,...; other inputs are made up, of the sizes that were tuned for");
  command->add_option("--json", options->json, "File for all of it as JSON");
  add_threads(*command, options->settings);
  add_build_options(*command, options->settings, true);
  command->footer(
      "Examples:\n"
      "  lathe inspect resnet50.engine\n"
      "  lathe inspect resnet50.engine --profile --html resnet50.html\n"
      "  lathe inspect model.onnx --why=/layer1/Add_output_0 --buildBudget=0\n"
      "  lathe inspect model.onnx --support");
  command->callback([options, &chosen] { chosen = [options] { return inspect(*options); }; });
}

constexpr double kMeasuresAll = 24 * 60 * 60;  // seconds

void add_tune(CLI::App& app, std::function<int()>& chosen) {
  auto* command = app.add_subcommand("tune", "Measure a model's steps here, for builds elsewhere");
  auto options = std::make_shared<TuneCommand>();
  options->settings.budget = kMeasuresAll;
  command->add_option("MODEL", options->model, "The ONNX model")->required();
  command
      ->add_option(
          "--merge", options->caches,
          "Another timing cache, whose measurements are taken up where this one has none; may be given several times")
      ->take_all()
      ->allow_extra_args(false);
  add_threads(*command, options->settings);
  add_build_options(*command, options->settings, true);
  command->get_option("--timingCacheFile")->required();
  command->footer(
      "A build with the timing cache, on a machine without the device, chooses what it would choose there. Give both\n"
      "the same options. All is measured that is not known, unless --buildBudget says otherwise. The cache says what\n"
      "device it is of: for several of one architecture, keep several files.\n\n"
      "Example:\n"
      "  lathe tune model.onnx --timingCacheFile=h200.cache                           # where the H200 is\n"
      "  lathe build model.onnx -o model.engine --target=sm_90 --timingCacheFile=h200.cache  # anywhere");
  command->callback([options, &chosen] { chosen = [options] { return tune(*options); }; });
}

void add_diff(CLI::App& app, std::function<int()>& chosen) {
  auto* command = app.add_subcommand("diff", "Tell how two engines differ");
  auto options = std::make_shared<DiffCommand>();
  command->add_option("A", options->a, "An engine")->required();
  command->add_option("B", options->b, "Another")->required();
  command->add_option("--json", options->json, "File for all of it as JSON");
  command->footer(
      "Target, version, settings, weights, memory, and each step: kernel, tactic, types, layout, predicted time. Times "
      "that\n"
      "were measured while building are not compared. The exit status is 0 when the engines are the same, 1 when they\n"
      "differ, 2 when they cannot be compared.\n\n"
      "Example:\n"
      "  lathe diff before.engine after.engine");
  command->callback([options, &chosen] { chosen = [options] { return diff(*options); }; });
}

void add_merge(CLI::App& app, std::function<int()>& chosen) {
  auto* command = app.add_subcommand("merge", "Make one engine of several that are for different targets");
  auto options = std::make_shared<MergeCommand>();
  command->add_option("ENGINE", options->files, "Engines of one network, in the order of preference")->required();
  command->add_option("-o,--output", options->output, "Where the merged engine goes")->required();
  command->add_flag("--storeWeights", options->stores_weights,
                    "Weights are there in the order of each engine, so that loading derives none");
  command->footer(
      "Each may have been built, and measured, on a machine of its own. What they share of the weights is there "
      "once.\n\n"
      "Example:\n"
      "  lathe merge h200.engine a100.engine cpu.engine -o model.engine");
  command->callback([options, &chosen] { chosen = [options] { return merge(*options); }; });
}

void add_key(CLI::App& app, std::function<int()>& chosen) {
  auto* group = app.add_subcommand("key", "Make keys that sign engines");
  group->require_subcommand(1);
  auto* command = group->add_subcommand("new", "A new pair of keys, in files NAME.key (secret) and NAME.pub");
  auto options = std::make_shared<KeyCommand>();
  command->add_option("NAME", options->name, "What the files are called, with their folder")->required();
  command->footer(
      "NAME.key signs: keep it where engines are built, and to yourself. NAME.pub goes to whoever loads them.\n\n"
      "Example:\n"
      "  lathe key new release");
  command->callback([options, &chosen] { chosen = [options] { return make_key(*options); }; });
}

void add_sign(CLI::App& app, std::function<int()>& chosen) {
  auto* command = app.add_subcommand("sign", "Sign an engine, so that others can tell that it is yours");
  auto options = std::make_shared<SignCommand>();
  command->add_option("ENGINE", options->file, "The engine")->required();
  command->add_option("--key", options->key, "File of the secret key, which `lathe key new` made")->required();
  command->add_option("-o,--output", options->output, "Where the signed engine goes; in place of ENGINE unless given");
  command->footer(
      "A signature that is there already is replaced. A damaged engine is refused.\n\n"
      "Example:\n"
      "  lathe sign model.engine --key release.key");
  command->callback([options, &chosen] { chosen = [options] { return sign(*options); }; });
}

void add_verify(CLI::App& app, std::function<int()>& chosen) {
  auto* command = app.add_subcommand("verify", "Tell whether an engine is signed by a trusted key, and as it was then");
  auto options = std::make_shared<VerifyCommand>();
  command->add_option("ENGINE", options->file, "The engine")->required();
  add_trusted_keys(*command, options->trusted_keys);
  command->footer(
      "Without --trustedKeys, LATHE_TRUSTED_KEYS in the environment says whose engines are taken. The exit status is "
      "1\n"
      "when the engine is not signed by one of them, or has changed since.\n\n"
      "Example:\n"
      "  lathe verify model.engine --trustedKeys=release.pub");
  command->callback([options, &chosen] { chosen = [options] { return verify(*options); }; });
}

void add_compare(CLI::App& app, std::function<int()>& chosen) {
  auto* command = app.add_subcommand("compare", "Compare the engine of a model with its plain evaluation");
  auto options = std::make_shared<CompareCommand>();
  command->add_option("MODEL", options->model, "The ONNX model")->required();
  command->add_option("--shapes", options->shapes, "Sizes of dynamic inputs: name:1x3x224x224,...; 1 unless given");
  command->add_option("--loadInputs", options->inputs, "name:file,...; other inputs are made up");
  command->add_option("--loadOutputs", options->outputs,
                      "name:file,...: outputs that another program has computed of these inputs, to compare with, too");
  command->add_option(
      "--loadTensors", options->tensors,
      "A .npz file of outputs and of values inside, by their names in the model, that another program has "
      "computed of these inputs (tools/onnxruntime_tensors.py writes one), to compare with, too");
  command
      ->add_option("--reference", options->reference,
                   "What the plain evaluation computes in: model (unless given: the model's own types) or f64")
      ->check(CLI::IsMember({"model", "f64"}));
  command
      ->add_option(
          "--accuracyBudget", options->budget,
          "With --fp16 or the like: find layers to keep in float32, so that the error of each output, relative to its "
          "greatest value in f64, is no more than this. Builds many engines, which measure nothing unless "
          "--buildBudget is given")
      ->check(kNotNegative);
  command->add_option("--saveLayerPrecisions", options->kept,
                      "File for the arguments that keep these layers in float32, for `lathe build`");
  command->add_option("--rtol", options->rtol, "Relative tolerance; 1e-3 unless given");
  command->add_option("--atol", options->atol, "Absolute tolerance; 1e-5 unless given");
  command->add_option("--json", options->json, "File for the numbers as JSON");
  add_threads(*command, options->settings);
  add_build_options(*command, options->settings, false);
  command->footer(
      "Every tensor of the model that the engine still computes is compared. The exit status is 1 when an output\n"
      "differs by more than the tolerance, or the error by more than the budget.\n\n"
      "Examples:\n"
      "  lathe compare model.onnx\n"
      "  lathe compare model.onnx --target=cuda --fp16 --rtol=1e-2 --atol=1e-2\n"
      "  lathe compare model.onnx --reference=f64 --loadInputs=x:x.npy --loadOutputs=y:y_of_another.npy\n"
      "  lathe compare model.onnx --loadInputs=x:x.npy --loadTensors=tensors.npz\n"
      "  lathe compare model.onnx --target=cuda --fp16 --accuracyBudget=1e-2 --saveLayerPrecisions=keep.txt\n"
      "  lathe compare bert.onnx --shapes=ids:1x16 --loadInputs=ids:ids.npy");
  command->callback([options, &chosen] { chosen = [options] { return compare(*options); }; });
}

void add_conformance(CLI::App& app, std::function<int()>& chosen) {
  auto* command = app.add_subcommand("conformance", "Run ONNX test folders at the official tolerance");
  auto options = std::make_shared<ConformanceCommand>();
  command->add_option("DIR", options->directories, "Folders, searched for cases: model.onnx, test_data_set_*")
      ->required();
  command
      ->add_option("--mode", options->mode,
                   "runtime: inputs at run time; frozen: inputs as constants; symbolic: sizes known at run time only; "
                   "reload: engine serialized and loaded again")
      ->check(CLI::IsMember({"runtime", "frozen", "symbolic", "reload"}));
  command->add_option("--jobs", options->jobs, "Cases at a time; one per allowed CPU unless given")
      ->check(CLI::Range(0, 256));
  command->add_option("--target", options->target,
                      "What to build for: cpu, cuda; without it the GPU where there is one");
  command->add_flag("--noTF32", options->no_tf32, "Products of float32 do not round their operands to TF32");
  command->add_option("--timeout", options->timeout, "Seconds for one case; 120 unless given")
      ->check(CLI::PositiveNumber);
  command->add_option("--json", options->json, "File for the result of each case as JSON");
  command->add_flag("--quiet", options->quiet, "Only failures and the summary");
  command->footer(
      "Each case runs in a process of its own: a crash is a failed case. The exit status is 1 when a case failed;\n"
      "unsupported ones are listed with the reason and do not count as failed.\n\n"
      "Examples:\n"
      "  lathe conformance data/conformance\n"
      "  lathe conformance data/conformance/node --mode=symbolic --json result.json");
  command->callback([options, &chosen] { chosen = [options] { return conformance(*options); }; });
}

// Its flags are TensorRT's: they are read over there, before those of the other commands.
void add_trtexec(CLI::App& app) {
  app.add_subcommand("trtexec", "As TensorRT's trtexec: its flags, of both generations, its output and its files");
}

void add_doctor(CLI::App& app, std::function<int()>& chosen) {
  auto* command = app.add_subcommand("doctor", "Tell what is installed, what is missing, and what to do");
  auto options = std::make_shared<DoctorCommand>();
  command->add_option("--json", options->json, "File for all of it as JSON");
  command->callback([options, &chosen] { chosen = [options] { return doctor(*options); }; });
}

int report(const char* message, int status, const char* hint = "") {
  std::fflush(stdout);
  std::fprintf(stderr, "lathe: %s\n%s", message, hint);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(kAbout, "lathe");
  app.footer(kEasier);
  app.set_version_flag("--version", lathe::latheVersion());
  app.require_subcommand(1);
  std::function<int()> chosen;
  add_build(app, chosen);
  add_run(app, chosen);
  add_bench(app, chosen);
  add_inspect(app, chosen);
  add_tune(app, chosen);
  add_diff(app, chosen);
  add_merge(app, chosen);
  add_cache(app, chosen);
  add_key(app, chosen);
  add_sign(app, chosen);
  add_verify(app, chosen);
  add_compare(app, chosen);
  add_quantize(app, chosen);
  add_conformance(app, chosen);
  add_doctor(app, chosen);
  add_trtexec(app);
  if (argc > 1 && std::string_view(argv[1]) == "trtexec")
    return lathe::trtexec::run_trtexec(std::string(argv[0]) + " trtexec", {argv + 2, argv + argc});
  try {
    if (argc == 1) {
      std::fputs(app.help().c_str(), stdout);
      return 2;
    }
    app.parse(argc, argv);
    return chosen();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;  // help and version are such errors, too
  } catch (const UsageError& error) {
    return report(error.what(), 2, "`lathe COMMAND --help` shows what it takes.\n");
  } catch (const std::bad_alloc&) {
    return report("out of memory", 1);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}
