// SPDX-License-Identifier: Apache-2.0
#include "lowering/region_lowering.h"

#include <algorithm>

#include "device/open_numbers.h"
#include "lowering/choices_by_size.h"
#include "lowering/finish_plan.h"
#include "lowering/program_builder.h"
#include "lowering/step_cost.h"
#include "ops/rules.h"
#include "tuning/all_cores.h"

namespace lathe {

using ir::Node;
using ir::Value;
using plan::TensorId;

namespace {

constexpr const char* kCopyTactic = "copy";

// Empty grids elsewhere.
void run_where(const Expr& runs, plan::Step& step, std::vector<StepForm>& forms) {
  for (Launch& launch : std::get<plan::DeviceLaunches>(step.work).launches) launch.grid[0] *= runs;
  for (StepForm& form : forms)
    for (SourceLaunch& each : form.launches) each.launch.grid[0] *= runs;
}

}  // namespace

std::string name_of_region(const Region& region) {
  std::string name;
  for (const Node* node : region.nodes) {
    if (name.size() > 120) return name + " + ...";
    name += (name.empty() ? "" : " + ") + node->name();
  }
  return name;
}

std::vector<std::string> origin_of(const Region& region) {
  std::vector<std::string> origin;
  for (const Node* node : region.nodes)
    for (const std::string& name : node->origin())
      if (std::find(origin.begin(), origin.end(), name) == origin.end()) origin.push_back(name);
  return origin;
}

RegionLowering::Pending::Pending(std::string name, std::vector<std::string> origin, std::string kind)
    : kind(std::move(kind)) {
  step.name = std::move(name);
  step.origin = std::move(origin);
}

RegionLowering::RegionLowering(const ir::Graph& graph, const Placement& placement, const LoweringContext& context,
                               PlanTensors* outer)
    : graph_(graph),
      placement_(placement),
      context_(context),
      tuner_(context.tuner),
      tactics_(context.options.tactics),
      out_(context.out),
      plan_(context.out.plan),
      code_(context.out, context.options, context.tuner.modules()),
      refused_(context.refused),
      problems_(placement, context.options, context.optimum),
      tensors_(graph, placement, context.out, threads_of(context.options.tuner.most_threads), outer) {}

Result<> RegionLowering::lower(const std::vector<Region>& regions) {
  tensors_.bind();
  for (const Region& region : regions) LATHE_TRY(lower(region));
  lower_outputs();
  return {};
}

Result<> RegionLowering::lower(const Region& region) {
  if (placement_.is_free(region)) return {};
  if (!region.root->bodies().empty()) return lower_control_flow(*region.root);
  if (region.root->is(OpKind::plugin)) return lower_plugin(*region.root);
  if (tactics_.empty()) {
    for (const Node* node : region.nodes) lower_evaluation(*node);
    return {};
  }
  switch (region.kind) {
    case RegionKind::kernel: {
      LATHE_ASSIGN(const bool is_in_place, lower_in_place(region));
      if (is_in_place) return {};
      [[fallthrough]];
    }
    case RegionKind::pointwise:  // sizes that depend on data are for a kernel of one op, or its evaluation, to find
      if (introduces_symbols(region, graph_))
        refused_.add(region, {"the result's size depends on data"});
      else if (const std::vector<std::string> reasons = match(region); !reasons.empty())
        refused_.add(region, reasons, refused_producer(region));
      return {};
    case RegionKind::movement:
      return lower_movement(region);
    case RegionKind::view:
      return lower_view(region);
    case RegionKind::single:
      return lower_single(*region.root);
  }
  return {};
}

// The region as a step, if a tactic takes it; else why none does.
std::vector<std::string> RegionLowering::match(const Region& region) {
  if (!region.boxes.empty()) {
    for (const Region& box : region.boxes)
      if (std::vector<std::string> refusals = match(box); !refusals.empty()) return refusals;
    return {};
  }
  if (problems_.wants_channels_last(region)) copy_channels_last(region.input(0));
  auto matches = std::make_unique<Matches>(problems_.of(region), tactics_);
  if (!matches->any()) return matches->refusals();
  Pending pending(name_of_region(region), origin_of(region),
                  region.kind == RegionKind::pointwise ? "pointwise" : "kernel");
  pending.matches = std::move(matches);
  pending.region = region;
  pending_.push_back(std::move(pending));
  return {};
}

// The input of the root without whose producer a tactic takes the region; the last of several.
std::optional<size_t> RegionLowering::refused_producer(const Region& region) const {
  for (const size_t input : region.produced_inputs()) {
    Region without = region;
    without.producers.erase(input);
    if (Matches(problems_.of(without), tactics_).any()) return input;
  }
  return std::nullopt;
}

// One node by a tactic that takes it, by copies, or by its plain evaluation.
Result<> RegionLowering::lower_single(Node& node) {
  if (node.num_inputs() == 0) return lower_evaluation(node), Result<>();
  Region region = region_alone(node, graph_.symbol_ranges());
  std::vector<std::string> refusals = refused_.reasons(node);
  const bool makes_sizes = introduces_symbols(region, graph_);
  const std::optional<DType> stored = storage_type_of(node);
  if (stored) refusals.push_back(fmt::format("no kernel reads or writes elements of type {}", name_of(*stored)));
  if (refusals.empty() && !is_padded_by_copies(node)) {
    LATHE_ASSIGN(const bool lowered, lower_data_dependent(region, refusals));
    if (lowered) return {};
    LATHE_ASSIGN(const bool is_in_place, lower_in_place(region));
    if (is_in_place) return {};
    if (!makes_sizes && (refusals = match(region)).empty()) {
      pending_.back().region->kind = RegionKind::single;
      return {};
    }
  }
  if (makes_sizes || (stored && is_packed(*stored)) || !lower_copies(node, Copies::any))
    lower_evaluation(node, std::move(refusals));
  return {};
}

// A copy is the pointwise region that computes nothing. To it, elements of storage types are bytes.
void RegionLowering::lower_copy(TensorId from, TensorId to, std::string name, const std::vector<std::string>& origin) {
  Pending pending(std::move(name), origin, "copy");
  pending.step.inputs = {from};
  pending.step.outputs = {to};
  if (tactics_.empty() || is_packed(tensors_[from].dtype)) {  // dense tensors both
    pending.step.work = plan::Copy();
    pending.step.tactic = kCopyTactic;
  } else {
    if (is_storage_only(tensors_[from].dtype)) {
      pending.step.inputs = {tensors_.as_type(from, DType::u8)};
      pending.step.outputs = {tensors_.as_type(to, DType::u8)};
    }
    pending.matches = std::make_unique<Matches>(
        problems_.of_copy(tensors_[pending.step.inputs[0]], tensors_[pending.step.outputs[0]]), tactics_);
  }
  pending_.push_back(std::move(pending));
}

TensorId RegionLowering::dense_of(const Value* value) {
  if (value->content() || placement_.is_dense_linear(value)) return tensors_.tensor_of(value);
  const auto it = dense_.find(value);
  if (it != dense_.end()) return it->second;
  const TensorId copy = tensors_.temporary(value->name(), value->dtype(), value->shape());
  lower_copy(tensors_.tensor_of(value), copy, "reformat " + value->name(), {});
  return dense_[value] = copy;
}

void RegionLowering::lower_evaluation(const Node& node, std::vector<std::string> refusals) {
  Pending pending(node.name(), node.origin(), "eval");
  plan::Step& step = pending.step;
  step.work = plan::Evaluation();
  step.op = node.info().name;
  step.attributes = to_text(node.attributes());
  step.tactic = "plain evaluation";
  for (const Value* input : node.inputs()) step.inputs.push_back(input ? dense_of(input) : plan::kNoTensor);
  pending.choice.refusals = std::move(refusals);
  add_with_outputs(std::move(pending), node);
}

TensorId RegionLowering::dense_output(const Value* output, std::vector<Move>& moves) {
  if (placement_.is_dense_linear(output) && !placement_.is_over_operand(output)) return tensors_.tensor_of(output);
  moves.push_back({tensors_.temporary(output->name(), output->dtype(), output->shape()), output});
  return moves.back().from;
}

void RegionLowering::add(Pending pending, const std::vector<Move>& moves) {
  pending_.push_back(std::move(pending));
  for (const Move& move : moves) lower_copy(move.from, tensors_.tensor_of(move.to), "reformat " + move.to->name(), {});
}

void RegionLowering::add_with_outputs(Pending pending, const Node& node) {
  std::vector<Move> moves;
  for (size_t i = 0; i < node.num_outputs(); ++i) pending.step.outputs.push_back(dense_output(node.output(i), moves));
  add(std::move(pending), moves);
}

void RegionLowering::lower_outputs() {
  const auto inputs = static_cast<uint32_t>(graph_.inputs().size());
  for (uint32_t i = 0; i < graph_.outputs().size(); ++i) {
    const auto& [name, value] = graph_.outputs()[i];
    TensorId target;
    if (tensors_.is_written_in_place(i)) {
      target = tensors_.tensor_of(value);
    } else {
      target = tensors_.add({name, value->dtype(), value->shape(), {}, plan::StorageKind::binding, inputs + i, 0});
      lower_copy(tensors_.tensor_of(value), target, "output " + name, {});
    }
    plan_.bindings.push_back({.name = name,
                              .is_input = false,
                              .tensor = target,
                              .dim_names = std::vector<std::string>(value->shape().size())});
  }
}

void RegionLowering::collect(std::vector<Pending*>& all) {
  for (Pending& pending : pending_) {
    all.push_back(&pending);
    for (const auto& body : pending.bodies) body->lowering.collect(all);
  }
}

Result<> RegionLowering::choose(const Tuner::Progress& progress) {
  std::vector<Pending*> all;
  collect(all);
  std::vector<Matches*> problems;
  for (const Pending* pending : all)
    if (pending->matches) problems.push_back(pending->matches.get());
  LATHE_ASSIGN(std::vector<Choice> choices, tuner_.choose(problems, progress));
  auto choice = choices.begin();
  for (Pending* each : all) {
    Pending& pending = *each;
    if (pending.matches) pending.choice = std::move(*choice++);
    if (pending.region && pending.matches && !pending.choice.tactic) {
      const Region& region = *pending.region;
      const bool is_fused = region.nodes.size() > 1 || region.kind == RegionKind::pointwise;
      is_fused ? refused_.add(region, pending.choice.refusals)
               : refused_.give_up(*region.root, pending.choice.refusals);
    }
    if (!pending.emission) continue;
    if (const auto modules = modules_of(*pending.emission, tuner_.modules()); !modules)
      refused_.give_up(*pending.region->root, {fmt::format("{}: {}", pending.step.tactic, modules.error().message)});
  }
  return choose_by_size(all, progress);
}

Result<> RegionLowering::write() {
  LATHE_TRY(inline_steps());
  LATHE_TRY(write_steps());
  tensors_.find_digests();
  return finish_plan(out_, context_.options, code_);
}

Result<> RegionLowering::write_steps() {
  count_readers();
  for (Pending& pending : pending_) {
    LATHE_TRY(write(pending));
    release(pending);
  }
  return {};
}

void RegionLowering::count_readers() {
  for (const auto& node : graph_.nodes())
    if (const Tensor* content = node->is(OpKind::constant) ? node->output()->content() : nullptr)
      contents_[content].constant = node.get();
  for (const Pending& pending : pending_)
    if (pending.matches)
      for (const Operand* operand : tensors_of(pending.matches->problem()))
        if (const auto it = contents_.find(operand->weights); it != contents_.end()) ++it->second.readers;
}

// What the step had packed or holds in the plan is not needed in the graph any more, and would be there twice.
void RegionLowering::release(Pending& pending) {
  pending.emission.reset();
  pending.sized.clear();
  if (!pending.matches) return;
  for (const Operand* operand : tensors_of(pending.matches->problem()))
    if (const auto it = contents_.find(operand->weights); it != contents_.end() && --it->second.readers == 0)
      it->second.constant->release_content();
  pending.matches.reset();
}

Result<> RegionLowering::write(Pending& pending) {
  if (!pending.bodies.empty()) return write_block(pending);
  plan::Step& step = pending.step;
  if (pending.matches) {
    const Problem& problem = pending.matches->problem();
    const Choice& choice = pending.choice;
    if (!choice.tactic) {  // a copy
      step.work = plan::Copy();
      step.tactic = kCopyTactic;
      return add_step(std::move(step), "eval", choice, &problem), Result<>();
    }
    LATHE_ASSIGN(pending.emission, pending.matches->emit(*choice.tactic, choice.config));
    for (const Packed& packed : pending.emission->packed)
      packed.content(threads_of(context_.options.tuner.most_threads));
    LATHE_TRY(describe_kernel(problem, choice, *pending.emission, step));
    if (!pending.region) return add_step(std::move(step), pending.kind, {}, &problem), Result<>();
    set_operands(pending);
  } else if (pending.emission) {
    LATHE_TRY(describe_work(*pending.emission, step.tactic, "", step));
  }
  std::vector<StepForm> forms = pending.sized.empty() ? std::vector<StepForm>() : forms_of(pending);
  if (pending.runs) run_where(*pending.runs, step, forms);
  add_step(std::move(step), std::move(pending.kind), pending.choice,
           pending.matches ? &pending.matches->problem() : nullptr);
  RegionReport& report = out_.report.regions.back();
  report.runs = pending.runs;
  if (pending.runs && pending.runs->evaluate(context_.optimum) == 0) {  // its work is another step's
    report.microseconds = report.estimated_microseconds = plan_.steps.back().milliseconds = 0;
  }
  if (!forms.empty()) {
    report.forms = std::move(forms);
    report.elements = elements_of(pending.matches->problem());
  }
  return {};
}

void RegionLowering::add_step(plan::Step step, std::string kind, const Choice& choice, const Problem* problem) {
  out_.report.regions.push_back(describe_step(step, std::move(kind), choice, problem, context_));
  plan_.steps.push_back(std::move(step));
}

// What a chosen tactic says of its step: kernel, parameters, program, device code.
Result<> RegionLowering::describe_kernel(const Problem& problem, const Choice& choice, const Emission& emission,
                                         plan::Step& step) {
  const Program* program = program_of(problem, emission);
  step.tactic = describe(*choice.tactic, choice.config);
  step.milliseconds = static_cast<float>(choice.microseconds / 1000);
  return describe_work(emission, choice.tactic->name(), program ? to_text(*program) : "", step);
}

// A kernel of the device's table, or launches of code that goes into the plan.
Result<> RegionLowering::describe_work(const Emission& emission, std::string_view tactic, std::string program,
                                       plan::Step& step) {
  std::string kernel = emission.kernel.empty() ? std::string(tactic) : emission.kernel;
  if (emission.launches.empty()) {
    step.work = plan::HostKernel{std::move(kernel), emission.params, std::move(program)};
    return {};
  }
  plan::DeviceLaunches device{std::move(kernel), std::move(program), {}, emission.workspace};
  LATHE_ASSIGN(StepModules modules, modules_of(emission, tuner_.modules()));
  const bool is_open = std::ranges::any_of(modules.launches, has_open_numbers);
  for (Launch& launch : modules.launches) {
    if (launch.library.empty()) {
      LATHE_ASSIGN(launch.code, code_.add(modules.sources[launch.code], is_open));
    }
    device.launches.push_back(std::move(launch));
  }
  step.work = std::move(device);
  return {};
}

}  // namespace lathe
