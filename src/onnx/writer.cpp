// SPDX-License-Identifier: Apache-2.0
#include "onnx/writer.h"

#include <algorithm>
#include <limits>

#include "onnx/reader.h"
#include "onnx/wire.h"

namespace lathe::onnx {
namespace {

// Of ModelProto, GraphProto, NodeProto, AttributeProto and TensorProto.
enum Field : uint32_t {
  kModelGraph = 7,
  kGraphNode = 1,
  kGraphInitializer = 5,
  kNodeInput = 1,
  kNodeOutput = 2,
  kNodeName = 3,
  kNodeOpType = 4,
  kNodeAttribute = 5,
  kAttributeName = 1,
  kAttributeInteger = 3,
  kAttributeType = 20,
  kTensorDims = 1,
  kTensorType = 2,
  kTensorName = 8,
  kTensorRaw = 9,
  kTensorLocation = 14,
};

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void append_integer(std::string& out, Field field, int64_t value) {
  append_varint(out, field << 3);
  append_varint(out, static_cast<uint64_t>(value));
}

void append_bytes(std::string& out, Field field, std::string_view bytes) {
  append_varint(out, field << 3 | 2);
  append_varint(out, bytes.size());
  out += bytes;
}

std::string tensor_proto(std::string_view name, ElementType type, std::span<const int64_t> dims,
                         std::span<const std::byte> bytes) {
  std::string out;
  for (const int64_t dim : dims) append_integer(out, kTensorDims, dim);
  append_integer(out, kTensorType, static_cast<int64_t>(type));
  append_bytes(out, kTensorName, name);
  append_bytes(out, kTensorRaw, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return out;
}

std::string node_proto(const NewNode& node) {
  std::string out;
  for (const std::string& input : node.inputs) append_bytes(out, kNodeInput, input);
  append_bytes(out, kNodeOutput, node.output);
  append_bytes(out, kNodeName, node.name);
  append_bytes(out, kNodeOpType, node.op_type);
  if (node.axis) {
    std::string attribute;
    append_bytes(attribute, kAttributeName, "axis");
    append_integer(attribute, kAttributeInteger, *node.axis);
    append_integer(attribute, kAttributeType, static_cast<int64_t>(AttributeKind::integer));
    append_bytes(out, kNodeAttribute, attribute);
  }
  return out;
}

class Writer {
 public:
  Writer(std::span<const std::byte> file, const Model& model, const ModelEdits& edits)
      : bytes_(reinterpret_cast<const char*>(file.data()), file.size()), model_(model), edits_(edits) {}

  Result<std::string> write() {
    std::string out;
    size_t graphs = 0;
    WireCursor cursor(state_, bytes_, "ModelProto");
    while (cursor.next()) {
      if (cursor.field() != kModelGraph) {
        out += cursor.whole();
        continue;
      }
      append_bytes(out, kModelGraph, graph(cursor.message("GraphProto")));
      if (++graphs > 1)
        return fail(ErrorCode::model_malformed,
                    "the file holds its graph in several parts; load and save it with the onnx package");
    }
    if (state_.error) return fail(*state_.error);
    if (out.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
      return fail(ErrorCode::model_limit,
                  "the model would take {} bytes, and an ONNX file holds 2 GiB at most; what lies beside the file that "
                  "was read is taken into it",
                  out.size());
    return out;
  }

 private:
  std::string graph(WireCursor cursor) {
    std::string out;
    size_t nodes = 0, initializers = 0;
    while (cursor.next()) {
      if (cursor.field() == kGraphNode) {
        if (const auto fresh = edits_.before.find(nodes); fresh != edits_.before.end())
          for (const NewNode& each : fresh->second) append_bytes(out, kGraphNode, node_proto(each));
        append_bytes(out, kGraphNode, node(cursor.message("NodeProto"), nodes++));
      } else if (cursor.field() == kGraphInitializer) {
        initializer(out, cursor.whole(), model_.graph.initializers[initializers++]);
      } else {
        out += cursor.whole();
      }
    }
    for (const NewInitializer& fresh : edits_.initializers)
      append_bytes(
          out, kGraphInitializer,
          tensor_proto(fresh.name, from_dtype(fresh.content.dtype()), fresh.content.dims(), fresh.content.raw()));
    return out;
  }

  std::string node(WireCursor cursor, size_t index) {
    std::string out;
    size_t inputs = 0;
    while (cursor.next()) {
      const bool is_input = cursor.field() == kNodeInput;
      const auto changed = is_input ? edits_.inputs.find({index, inputs++}) : edits_.inputs.end();
      const std::string_view whole = cursor.whole();
      if (changed == edits_.inputs.end())
        out += whole;
      else
        append_bytes(out, kNodeInput, changed->second);
    }
    return out;
  }

  // `whole` is the field as it was, with its tag.
  void initializer(std::string& out, std::string_view whole, const TensorData& tensor) {
    if (edits_.dropped.contains(tensor.name)) return;
    WireCursor field(state_, whole, "GraphProto");
    field.next();
    bool is_external = false;
    for (WireCursor cursor = field.message("TensorProto"); cursor.next();) {
      if (cursor.field() == kTensorLocation)
        is_external = cursor.integer() == 1;
      else
        cursor.skip();
    }
    if (is_external)
      append_bytes(out, kGraphInitializer, tensor_proto(tensor.name, tensor.type, tensor.dims, tensor.bytes));
    else
      out += whole;
  }

  static constexpr int kMaxDepth = 100;
  std::string_view bytes_;
  const Model& model_;
  const ModelEdits& edits_;
  WireState state_{bytes_, kMaxDepth};
};

}  // namespace

Result<std::string> write_model(std::span<const std::byte> file, const Model& model, const ModelEdits& edits) {
  LATHE_ASSIGN(std::string written, Writer(file, model, edits).write());
  // Tensors of nested graphs whose content lies beside the file are refused here.
  LATHE_TRY(read_model(std::as_bytes(std::span(written)), {.borrows = true}));
  return written;
}

}  // namespace lathe::onnx
