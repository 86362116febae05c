// SPDX-License-Identifier: Apache-2.0
#include "quantize_options.h"

#include "shared_options.h"

namespace lathe::cli {

void add_quantize(CLI::App& app, std::function<int()>& chosen) {
  auto* command =
      app.add_subcommand("quantize", "Write a model of floats as one of 8-bit integers, or 8-bit floats (Q/DQ)");
  auto options = std::make_shared<QuantizeCommand>();
  command->add_option("MODEL", options->model, "The ONNX model")->required();
  command
      ->add_option("--data", options->data,
                   "Inputs that the model is for: a .npz with an array for each, a file for the only one (.npy, .pb, "
                   ".png, ...), or a folder of such, of files <input>.npy, or of folders with those")
      ->required();
  command->add_option("-o,--output", options->output, "Where the quantised model goes")->required();
  command
      ->add_option(
          "--method", options->method,
          "Which values are kept: entropy (those that tell most), minmax (all) or percentile; unless given, entropy "
          "for integers and minmax for floats")
      ->check(CLI::IsMember({"entropy", "minmax", "percentile"}));
  command->add_option("--percentile", options->percentile, "Of --method=percentile; 99.99 unless given")
      ->check(CLI::Range(1e-6, 100.0));
  command
      ->add_option("--types", options->types,
                   "Of activations and weights: i8,i8 (unless given), u8,i8, i8,u8, u8,u8 or f8e4m3fn,f8e4m3fn; GPUs "
                   "multiply i8,i8 and, from compute capability 8.9 on, f8e4m3fn,f8e4m3fn")
      ->check(CLI::IsMember({"i8,i8", "u8,i8", "i8,u8", "u8,u8", "f8e4m3fn,f8e4m3fn"}));
  command->add_flag("--asymmetric", options->asymmetric,
                    "Activations have a zero point that suits their range, rather than the middle of the levels");
  command->add_flag("--per-tensor", options->per_tensor, "One scale for all output channels of weights");
  command
      ->add_option(
          "--exclude", options->exclude,
          "Layers that stay in floats: a name, which may hold one *, or an operator; may be given several times")
      ->take_all()
      ->allow_extra_args(false);
  command
      ->add_option("--batch", options->batch, "Samples of a batch, where the model leaves that open; 32 unless given")
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option(
          "--accuracyBudget", options->budget,
          "Find layers to keep in floats, so that the error of each output, relative to the greatest value that "
          "the model of floats gives it, is no more than this. Builds many engines")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--trialBatches", options->trials, "Batches that this error is measured on; 8 unless given")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--json", options->json, "File for what became of each layer as JSON");
  add_threads(*command, options->settings);
  add_build_options(*command, options->settings, false);
  command->footer(
      "Conv (of integers alone), MatMul and Gemm with constant weights are quantised: weights by their largest\n"
      "magnitudes, the tensors that they multiply by what these hold when the model runs on the data. All names\n"
      "of the model stay. What --target and the like say is of the engines that --accuracyBudget builds.\n\n"
      "Examples:\n"
      "  lathe quantize model.onnx --data samples.npz -o model-int8.onnx\n"
      "  lathe quantize model.onnx --data pictures -o model-int8.onnx --method=percentile --exclude=head*\n"
      "  lathe quantize model.onnx --data samples.npz -o model-int8.onnx --accuracyBudget=0.02\n"
      "  lathe quantize model.onnx --data samples.npz -o model-fp8.onnx --types=f8e4m3fn,f8e4m3fn");
  command->callback([options, &chosen] { chosen = [options] { return quantize(*options); }; });
}

}  // namespace lathe::cli
