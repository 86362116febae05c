// SPDX-License-Identifier: Apache-2.0
// Non-maximum suppression: boxes.cuh. What is found: for each class of each image a list of boxes, then where each list
// begins among all, then their number.
#include "kernels/cuda/generic/data_dependent_ops.h"
#include "kernels/cuda/generic/op_source.h"

namespace lathe::cuda {
namespace {

constexpr std::string_view kHeader = "generic/boxes.cuh";
constexpr uint32_t kThreads = 256;  // kBoxThreads of the header
constexpr uint32_t kBoxBytes = 20, kKeyBytes = 8;

struct Lists {
  Expr slots, classes;
  Expr length;  // of each
  Expr total() const { return slots * length + slots; }
};

Lists lists_of(const Problem& problem) {
  const Shape& scores = problem.inputs[1].dims;
  Lists lists{scores[0] * scores[1], scores[1], scores[2]};
  const std::optional<Ints> most = known_contents(problem, 2);
  if (problem.inputs.size() < 3 || problem.inputs[2].omitted)
    lists.length = 0;
  else if (most)
    lists.length = min(scores[2], std::max<int64_t>(most->at(0), 0));
  return lists;
}

// The number that a floating input holds, in device code.
std::string number_of(OpSource& source, size_t input, std::string_view otherwise) {
  return source.has(input) ? fmt::format("to_float({}.data[0])", source.input(input)) : std::string(otherwise);
}

Emission emit_find(const Problem& problem, const Lists& lists) {
  Emission emission;
  const Expr keys = lists.slots * problem.inputs[1].dims[2] * int64_t{kKeyBytes};
  emission.workspace = keys + lists.slots * lists.length * int64_t{kBoxBytes};
  {
    OpSource source(kHeader, problem, emission);
    const std::string boxes = source.input(0), scores = source.input(1);
    const std::string most = source.has(2) ? source.contents(2, "Most") + "(0)" : "0L";
    const std::string iou = number_of(source, 3, "0.0f");
    const std::string counts = source.has(4)
                                   ? fmt::format("[=](float score) {{ return score > {}; }}", number_of(source, 4, ""))
                                   : "[](float score) { return score == score; }";
    source.source().workspace("keys", 0, "uint64");
    source.source().workspace("kept", keys, "Box");
    source.source().output(0, list_operand(lists.total() + 1), "List");
    const std::string length = source.source().number(lists.length),
                      begins = source.source().number(lists.slots * lists.length);
    source.finish_blocks(
        fmt::format(
            "long* const list = reinterpret_cast<long*>(List_.data);\n"
            "  suppress_boxes<Attributes::center_point_box>({}, {}, {}, {}, {}, {}, keys, kept, list, list + {});",
            boxes, scores, counts, iou, most, length, begins),
        lists.slots, kThreads, kThreads * kBoxBytes + 64);
  }
  OpSource source(kHeader, problem, emission);
  source.source().output(0, list_operand(lists.total() + 1), "List");
  source.finish_blocks(
      fmt::format("number_boxes({}, reinterpret_cast<long*>(List_.data) + {});", source.source().number(lists.slots),
                  source.source().number(lists.slots * lists.length)),
      1, kThreads, kThreads * sizeof(int64_t));
  return emission;
}

Emission emit_write(const Problem& problem, const Lists& lists) {
  Emission emission;
  OpSource source(kHeader, problem, emission);
  const std::string out = source.output(0);
  // What was found is the last input of the step, and its only one.
  source.source().input(0, list_operand(lists.total() + 1), "List");
  const auto number = [&](const Expr& expr) { return source.source().number(expr); };
  source.finish(fmt::format("const long* const list = reinterpret_cast<const long*>(List_.data);\n"
                            "  list_boxes(list, list + {}, {}, {}, {}, {});",
                            number(lists.slots * lists.length), number(lists.slots), number(lists.classes),
                            number(lists.length), out),
                volume(problem.outputs[0].dims));
  return emission;
}

}  // namespace

DataDependentMatched match_suppression(const Problem& problem) {
  if (!problem.is(OpKind::non_max_suppression)) return refuse("no suppression of boxes");
  const Lists lists = lists_of(problem);
  DataDependentEmission emission;
  emission.find = emit_find(problem, lists);
  emission.write = emit_write(problem, lists);
  emission.found = {lists.total() + 1};
  emission.count = lists.total();
  return emission;
}

}  // namespace lathe::cuda
