// SPDX-License-Identifier: Apache-2.0
// The text form of attributes and tensors: "{axis=1, op=relu, pads_begin=[1, 1], value=f32[2]{1, 2}}".
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/encoding.h"
#include "ops/attributes.h"

namespace lathe {
namespace {

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return fmt::format("{}", value);  // shortest form that reads back exactly
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

template <class T, class Print>
std::string list_text(std::span<const T> values, Print print) {
  std::string out;
  for (const T& value : values) out += (out.empty() ? "" : ", ") + print(value);
  return out;
}

// Collects "name=value" pairs in field order.
class Printer final : public FieldVisitor {
 public:
  void field(std::string_view name, bool& value) override { add(name, value ? "true" : "false"); }
  void field(std::string_view name, int64_t& value) override { add(name, std::to_string(value)); }
  void field(std::string_view name, double& value) override { add(name, number_text(value)); }
  void field(std::string_view name, std::string& value) override { add(name, quote(value)); }
  void field(std::string_view name, Ints& value) override {
    add(name, "[" + list_text<int64_t>(value, [](int64_t v) { return std::to_string(v); }) + "]");
  }
  void field(std::string_view name, DType& value) override { add(name, std::string(name_of(value))); }
  void field(std::string_view name, Tensor& value) override { add(name, value.defined() ? to_text(value) : "none"); }
  void enumeration(std::string_view name, int& value, const EnumInfo& info) override {
    add(name, std::string(info.values[static_cast<size_t>(value)]));
  }

  std::vector<std::pair<std::string, std::string>> pairs;

 private:
  void add(std::string_view name, std::string value) { pairs.emplace_back(name, std::move(value)); }
};

std::vector<std::pair<std::string, std::string>> print_fields(const Attributes& attributes) {
  Printer printer;
  const_cast<Attributes&>(attributes).visit(printer);  // the printer only reads
  return std::move(printer.pairs);
}

void skip_spaces(std::string_view& text) {
  while (!text.empty() && (text[0] == ' ' || text[0] == '\n' || text[0] == '\t')) text.remove_prefix(1);
}

bool accept(std::string_view& text, std::string_view token) {
  skip_spaces(text);
  if (!text.starts_with(token)) return false;
  text.remove_prefix(token.size());
  return true;
}

std::string_view word(std::string_view& text) {
  skip_spaces(text);
  size_t n = 0;
  while (n < text.size() && (std::isalnum(static_cast<unsigned char>(text[n])) || std::strchr("_+-.", text[n]))) ++n;
  const std::string_view out = text.substr(0, n);
  text.remove_prefix(n);
  return out;
}

template <class T>
bool read_number(std::string_view& text, T& value) {
  const std::string_view token = word(text);
  if (token.empty()) return false;
  if constexpr (std::is_floating_point_v<T>) {
    if (token == "nan") return value = std::numeric_limits<T>::quiet_NaN(), true;
  }
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  return error == std::errc() && end == token.data() + token.size();
}

bool read_ints(std::string_view& text, Ints& values) {
  values.clear();
  if (!accept(text, "[")) return false;
  if (accept(text, "]")) return true;
  do {
    if (!read_number(text, values.emplace_back())) return false;
  } while (accept(text, ","));
  return accept(text, "]");
}

// Looks every field up among the given pairs: one pass per field keeps any order legal.
class Reader final : public FieldVisitor {
 public:
  Reader(std::string_view name, std::string_view& text) : name_(name), text_(text) {}
  void field(std::string_view name, bool& value) override {
    read(name, [&] {
      const std::string_view token = word(text_);
      value = token == "true";
      return value || token == "false";
    });
  }
  void field(std::string_view name, int64_t& value) override {
    read(name, [&] { return read_number(text_, value); });
  }
  void field(std::string_view name, double& value) override {
    read(name, [&] { return read_number(text_, value); });
  }
  void field(std::string_view name, Ints& value) override {
    read(name, [&] { return read_ints(text_, value); });
  }
  void field(std::string_view name, std::string& value) override {
    read(name, [&] {
      value.clear();
      if (!accept(text_, "\"")) return false;
      for (; !text_.empty() && text_[0] != '"'; text_.remove_prefix(1)) {
        if (text_[0] == '\\') text_.remove_prefix(1);
        if (text_.empty()) return false;
        value += text_[0];
      }
      return accept(text_, "\"");
    });
  }
  void field(std::string_view name, DType& value) override {
    read(name, [&] {
      const std::optional<DType> type = dtype_from_name(word(text_));
      if (type) value = *type;
      return type.has_value();
    });
  }
  void field(std::string_view name, Tensor& value) override {
    read(name, [&] {
      if (accept(text_, "none")) return value = Tensor(), true;
      Result<Tensor> tensor = parse_tensor(text_);
      if (!tensor) return false;
      value = *std::move(tensor);
      return true;
    });
  }
  void enumeration(std::string_view name, int& value, const EnumInfo& info) override {
    read(name, [&] {
      const std::string_view token = word(text_);
      for (size_t i = 0; i < info.values.size(); ++i)
        if (info.values[i] == token) return value = static_cast<int>(i), true;
      return false;
    });
  }

  bool found = false;
  bool valid = true;

 private:
  template <class Read>
  void read(std::string_view name, Read read_value) {
    if (found || name != name_) return;
    found = true;
    valid = read_value();
  }

  std::string_view name_;
  std::string_view& text_;
};

template <class T>
std::string element_text(T value) {
  if constexpr (std::is_class_v<T>)
    return number_text(static_cast<float>(value));
  else if constexpr (std::is_floating_point_v<T>)
    return std::isfinite(value) ? fmt::format("{}", value) : number_text(value);
  else
    return std::to_string(static_cast<std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>(value));
}

template <class T>
bool read_element(std::string_view& text, T& value) {
  if constexpr (std::is_class_v<T>) {
    float number = 0;
    const bool valid = read_number(text, number);
    value = T(number);
    return valid;
  } else if constexpr (std::is_same_v<T, bool>) {
    int number = 0;
    const bool valid = read_number(text, number) && (number == 0 || number == 1);
    value = number != 0;
    return valid;
  } else {
    return read_number(text, value);
  }
}

// Storage types have several codes of NaN: those print as they are, "0x7f".
std::string code_text(DType type, uint8_t code) {
  const double value = decode(type, code);
  return std::isnan(value) ? fmt::format("{:#04x}", code) : number_text(value);
}

bool read_code(std::string_view& text, DType type, uint8_t& code) {
  skip_spaces(text);
  if (text.starts_with("0x")) {
    const std::string_view digits = word(text).substr(2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    return error == std::errc() && end == digits.data() + digits.size() && code >> bits_of(type) == 0;
  }
  double value = 0;
  if (!read_number(text, value)) return false;
  code = encode(type, value, false);
  return decode(type, code) == value || (std::isnan(value) && std::isnan(decode(type, code)));
}

}  // namespace

std::string to_text(const Attributes& attributes) {
  const auto fields = print_fields(attributes);
  const auto defaults = print_fields(*make_attributes(attributes.kind()));
  std::string out;
  for (size_t i = 0; i < fields.size(); ++i)
    if (fields[i] != defaults[i]) out += (out.empty() ? "{" : ", ") + fields[i].first + "=" + fields[i].second;
  return out.empty() ? out : out + "}";
}

Result<std::unique_ptr<Attributes>> parse_attributes(OpKind kind, std::string_view text) {
  std::unique_ptr<Attributes> attributes = make_attributes(kind);
  skip_spaces(text);
  if (text.empty()) return attributes;
  if (!accept(text, "{"))
    return fail(ErrorCode::text_syntax, "attributes must start with '{{', found '{}'", text.substr(0, 20));
  while (!accept(text, "}")) {
    const std::string name(word(text));
    if (!accept(text, "=")) return fail(ErrorCode::text_syntax, "expected '=' after attribute '{}'", name);
    Reader reader(name, text);
    attributes->visit(reader);
    if (!reader.found) return fail(ErrorCode::text_syntax, "there is no attribute '{}'", name);
    if (!reader.valid)
      return fail(ErrorCode::text_syntax, "attribute '{}' has an invalid value near '{}'", name, text.substr(0, 20));
    accept(text, ",");
  }
  skip_spaces(text);
  if (!text.empty()) return fail(ErrorCode::text_syntax, "unexpected text after attributes: '{}'", text.substr(0, 20));
  return attributes;
}

std::string to_text(const Tensor& tensor) {
  std::string out = std::string(name_of(tensor.dtype())) + "[" +
                    list_text<int64_t>(tensor.dims(), [](int64_t d) { return std::to_string(d); }) + "]{";
  if (is_storage_only(tensor.dtype())) {
    for (int64_t i = 0; i < tensor.volume(); ++i)
      out += (i > 0 ? ", " : "") + code_text(tensor.dtype(), load_code(tensor.dtype(), tensor.data(), i));
    return out + "}";
  }
  dispatch(tensor.dtype(), [&](auto zero) {
    using T = decltype(zero);
    out += list_text<T>({tensor.as<T>(), static_cast<size_t>(tensor.volume())}, [](T v) { return element_text(v); });
  });
  return out + "}";
}

Result<Tensor> parse_tensor(std::string_view& text) {
  const std::optional<DType> dtype = dtype_from_name(word(text));
  Ints dims;
  if (!dtype || !read_ints(text, dims) || !accept(text, "{"))
    return fail(ErrorCode::text_syntax, "expected a tensor such as f32[2]{{1, 2}} near '{}'", text.substr(0, 20));
  const std::optional<int64_t> count = checked_volume(dims);
  // Every element takes at least one character, so the text bounds the allocation.
  if (!count || static_cast<uint64_t>(*count) > text.size())
    return fail(ErrorCode::text_syntax, "tensor dims do not fit the elements that follow");
  LATHE_ASSIGN(Tensor tensor, Tensor::allocate(*dtype, dims));
  const auto read_all = [&](auto read_at) {
    for (int64_t i = 0; i < *count; ++i)
      if ((i > 0 && !accept(text, ",")) || !read_at(i)) return false;
    return true;
  };
  const auto read_code_at = [&](int64_t i) {
    uint8_t code = 0;
    const bool valid = read_code(text, *dtype, code);
    store_code(*dtype, tensor.mutable_data(), i, code);
    return valid;
  };
  const bool valid = is_storage_only(*dtype) ? read_all(read_code_at) : dispatch(*dtype, [&](auto zero) {
    using T = decltype(zero);
    return read_all([&](int64_t i) { return read_element(text, tensor.mutable_as<T>()[i]); });
  });
  if (!valid || !accept(text, "}"))
    return fail(ErrorCode::text_syntax, "invalid tensor element near '{}'", text.substr(0, 20));
  return tensor;
}

}  // namespace lathe
