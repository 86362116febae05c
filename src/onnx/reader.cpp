// SPDX-License-Identifier: Apache-2.0
#include "onnx/reader.h"

#include <cstring>

#include "onnx/aligned_copies.h"
#include "onnx/tensor_reader.h"
#include "onnx/type_reader.h"

namespace lathe::onnx {
namespace {

// One function per message. A singular message that occurs twice is merged, as protobuf does.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const ModelReadOptions& options, std::shared_ptr<const void> owner)
      : bytes_(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
        state_(bytes_, options.max_depth),
        external_(options.directory),
        tensors_{external_, std::move(owner), problems_, std::make_shared<AlignedCopies>()},
        may_miss_initializers_(options.may_miss_initializers) {}

  // Of the bytes: they are those of a mapped file.
  void set_is_file() { tensors_.is_file = true; }

  Result<Model> model() {
    Model model;
    model.owner = tensors_.owner;
    model.copies = tensors_.copies;
    read(WireCursor(state_, bytes_, "ModelProto"), model);
    LATHE_TRY(finish("model"));
    if (!model.has_graph) return fail(ErrorCode::model_malformed, "the file holds no graph; it is not an ONNX model");
    model.files = external_.files();
    return model;
  }

  Result<TensorData> tensor() {
    TensorData tensor;
    tensors_.read(WireCursor(state_, bytes_, "TensorProto"), tensor);
    LATHE_TRY(finish("tensor"));
    if (!tensor.owner) tensor.owner = tensors_.owner;  // of the name and strings
    return tensor;
  }

 private:
  Result<> finish(const char* what) {
    if (state_.error) return fail(std::move(*state_.error));
    if (problems_.empty()) return {};
    if (problems_.size() == 1) return fail(std::move(problems_.front()));
    Error error{problems_.front().code, fmt::format("the {} has {} faulty tensors", what, problems_.size()),
                std::move(problems_)};
    return fail(std::move(error));
  }

  void read(WireCursor cursor, Model& model);
  void read(WireCursor cursor, FunctionProto& function);
  void read(WireCursor cursor, GraphProto& graph);
  void read(WireCursor cursor, NodeProto& node);
  void read(WireCursor cursor, Attribute& attribute);
  void read(WireCursor cursor, ValueInfo& value);
  void read(WireCursor cursor, TypeProto& type) { read_type(cursor, type); }
  void read(WireCursor cursor, OpsetImport& import);
  void read_entry(WireCursor cursor, std::pair<std::string_view, std::string_view>& entry);
  void read_text(WireCursor& cursor, std::vector<std::string_view>& list) {
    if (cursor.charge(sizeof(std::string_view))) list.push_back(cursor.bytes());
  }
  template <class T>
  void add(WireCursor& cursor, const char* message, std::vector<T>& list) {
    WireCursor inner = cursor.message(message);
    if (cursor.charge(sizeof(T))) read(inner, list.emplace_back());
  }
  template <class T>
  void add_tensor(WireCursor& cursor, const char* message, std::vector<T>& list) {
    WireCursor inner = cursor.message(message);
    if (cursor.charge(sizeof(T))) tensors_.read(inner, list.emplace_back());
  }

  std::string_view bytes_;
  WireState state_;
  std::vector<Error> problems_;
  ExternalData external_;
  TensorReader tensors_;
  bool may_miss_initializers_;
  int graph_depth_ = 0;  // 1 in the main graph
};

void Reader::read(WireCursor cursor, Model& model) {
  while (cursor.next()) {
    switch (cursor.field()) {
      case 1:
        model.ir_version = cursor.integer();
        break;
      case 2:
        model.producer_name = cursor.bytes();
        break;
      case 3:
        model.producer_version = cursor.bytes();
        break;
      case 4:
        model.domain = cursor.bytes();
        break;
      case 5:
        model.model_version = cursor.integer();
        break;
      case 6:
        model.doc = cursor.bytes();
        break;
      case 7:
        model.has_graph = true, read(cursor.message("GraphProto"), model.graph);
        break;
      case 8:
        add(cursor, "OperatorSetIdProto", model.opset_imports);
        break;
      case 14: {
        WireCursor entry = cursor.message("StringStringEntryProto");
        if (cursor.charge(2 * sizeof(std::string_view))) read_entry(entry, model.metadata.emplace_back());
        break;
      }
      case 20:
        model.has_training_info = true, cursor.skip();
        break;
      case 25:
        add(cursor, "FunctionProto", model.functions);
        break;
      default:
        cursor.skip();
    }
  }
}

void Reader::read(WireCursor cursor, FunctionProto& function) {
  while (cursor.next()) {
    switch (cursor.field()) {
      case 1:
        function.name = cursor.bytes();
        break;
      case 4:
        read_text(cursor, function.inputs);
        break;
      case 5:
        read_text(cursor, function.outputs);
        break;
      case 6:
        read_text(cursor, function.attributes);
        break;
      case 7:
        add(cursor, "NodeProto", function.nodes);
        break;
      case 9:
        add(cursor, "OperatorSetIdProto", function.opset_imports);
        break;
      case 10:
        function.domain = cursor.bytes();
        break;
      case 11:
        add(cursor, "AttributeProto", function.attribute_defaults);
        break;
      case 12:
        add(cursor, "ValueInfoProto", function.value_infos);
        break;
      case 13:
        function.overload = cursor.bytes();
        break;
      default:
        cursor.skip();
    }
  }
}

void Reader::read(WireCursor cursor, GraphProto& graph) {
  ++graph_depth_;
  while (cursor.next()) {
    switch (cursor.field()) {
      case 1:
        add(cursor, "NodeProto", graph.nodes);
        break;
      case 2:
        graph.name = cursor.bytes();
        break;
      case 5:
        tensors_.may_miss_external = may_miss_initializers_ && graph_depth_ == 1;
        add_tensor(cursor, "TensorProto", graph.initializers);
        tensors_.may_miss_external = false;
        break;
      case 11:
        add(cursor, "ValueInfoProto", graph.inputs);
        break;
      case 12:
        add(cursor, "ValueInfoProto", graph.outputs);
        break;
      case 13:
        add(cursor, "ValueInfoProto", graph.value_infos);
        break;
      case 15:
        add_tensor(cursor, "SparseTensorProto", graph.sparse_initializers);
        break;
      default:
        cursor.skip();
    }
  }
  --graph_depth_;
}

void Reader::read(WireCursor cursor, NodeProto& node) {
  while (cursor.next()) {
    switch (cursor.field()) {
      case 1:
        read_text(cursor, node.inputs);
        break;
      case 2:
        read_text(cursor, node.outputs);
        break;
      case 3:
        node.name = cursor.bytes();
        break;
      case 4:
        node.op_type = cursor.bytes();
        break;
      case 5:
        add(cursor, "AttributeProto", node.attributes);
        break;
      case 7:
        node.domain = normal_domain(cursor.bytes());
        break;
      case 8:
        node.overload = cursor.bytes();
        break;
      default:
        cursor.skip();
    }
  }
}

void Reader::read(WireCursor cursor, Attribute& attribute) {
  AttributeKind seen = AttributeKind::undefined;  // files older than IR 2 leave the type out
  bool typed = false;
  while (cursor.next()) {
    const auto holds = [&](AttributeKind kind) { seen = kind; };
    switch (cursor.field()) {
      case 1:
        attribute.name = cursor.bytes();
        break;
      case 2:
        holds(AttributeKind::real), attribute.real = cursor.real32();
        break;
      case 3:
        holds(AttributeKind::integer), attribute.integer = cursor.integer();
        break;
      case 4:
        holds(AttributeKind::string), attribute.string = cursor.bytes();
        break;
      case 5:
        holds(AttributeKind::tensor), attribute.tensors.clear(), add_tensor(cursor, "TensorProto", attribute.tensors);
        break;
      case 6:
        holds(AttributeKind::graph), attribute.graphs.clear(), add(cursor, "GraphProto", attribute.graphs);
        break;
      case 7:
        holds(AttributeKind::reals), cursor.reals32([&](float value) { attribute.reals.push_back(value); });
        break;
      case 8:
        holds(AttributeKind::integers), cursor.integers([&](int64_t value) { attribute.integers.push_back(value); });
        break;
      case 9:
        holds(AttributeKind::strings), read_text(cursor, attribute.strings);
        break;
      case 10:
        holds(AttributeKind::tensors), add_tensor(cursor, "TensorProto", attribute.tensors);
        break;
      case 11:
        holds(AttributeKind::graphs), add(cursor, "GraphProto", attribute.graphs);
        break;
      case 14:
        holds(AttributeKind::type), attribute.types.clear(), add(cursor, "TypeProto", attribute.types);
        break;
      case 15:
        holds(AttributeKind::types), add(cursor, "TypeProto", attribute.types);
        break;
      case 20:
        typed = true, attribute.kind = static_cast<AttributeKind>(cursor.integer32());
        break;
      case 21:
        attribute.reference = cursor.bytes();
        break;
      case 22:
        holds(AttributeKind::sparse_tensor), attribute.sparse_tensors.clear(),
            add_tensor(cursor, "SparseTensorProto", attribute.sparse_tensors);
        break;
      case 23:
        holds(AttributeKind::sparse_tensors), add_tensor(cursor, "SparseTensorProto", attribute.sparse_tensors);
        break;
      default:
        cursor.skip();
    }
  }
  if (!typed) attribute.kind = seen;
}

void Reader::read(WireCursor cursor, ValueInfo& value) {
  while (cursor.next()) {
    switch (cursor.field()) {
      case 1:
        value.name = cursor.bytes();
        break;
      case 2:
        read(cursor.message("TypeProto"), value.type);
        break;
      default:
        cursor.skip();
    }
  }
}

void Reader::read(WireCursor cursor, OpsetImport& import) {
  while (cursor.next()) {
    switch (cursor.field()) {
      case 1:
        import.domain = normal_domain(cursor.bytes());
        break;
      case 2:
        import.version = cursor.integer();
        break;
      default:
        cursor.skip();
    }
  }
}

void Reader::read_entry(WireCursor cursor, std::pair<std::string_view, std::string_view>& entry) {
  while (cursor.next()) {
    switch (cursor.field()) {
      case 1:
        entry.first = cursor.bytes();
        break;
      case 2:
        entry.second = cursor.bytes();
        break;
      default:
        cursor.skip();
    }
  }
}

// Without an owner the bytes are the caller's: a copy outlives the call.
std::shared_ptr<const void> own(std::span<const std::byte>& bytes, std::shared_ptr<const void> owner) {
  if (owner) return owner;
  auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  bytes = *copy;
  return copy;
}

}  // namespace

Result<Model> read_model(std::span<const std::byte> bytes, const ModelReadOptions& options,
                         std::shared_ptr<const void> owner) {
  if (options.borrows && !owner)
    owner = std::shared_ptr<const void>(std::shared_ptr<const void>(), bytes.data());  // that keeps nothing alive
  owner = own(bytes, std::move(owner));
  return Reader(bytes, options, std::move(owner)).model();
}

Result<Model> read_model(std::shared_ptr<const MappedFile> file, const ModelReadOptions& options) {
  Reader reader(file->bytes(), options, file);
  reader.set_is_file();
  LATHE_ASSIGN(Model model, reader.model());
  model.files.push_back(std::move(file));
  return model;
}

Result<TensorData> read_tensor(std::span<const std::byte> bytes, const ModelReadOptions& options,
                               std::shared_ptr<const void> owner) {
  owner = own(bytes, std::move(owner));
  return Reader(bytes, options, std::move(owner)).tensor();
}

Result<Model> read_model_file(const std::string& path, ModelReadOptions options) {
  LATHE_ASSIGN(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  if (options.directory.empty()) {
    const size_t slash = path.rfind('/');
    options.directory = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  }
  auto model = read_model(std::move(file), options);
  if (!model) return fail(with_context(std::move(model).error(), path));
  return model;
}

}  // namespace lathe::onnx
