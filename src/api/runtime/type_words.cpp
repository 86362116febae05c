// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/type_words.h"

namespace lathe::api {
namespace {

struct Words {
  DType type;
  const char *inspector, *format;
};

#define ROW(type, inspector, format) \
  { DType::type, inspector, "Row major linear " format " format" }
constexpr Words kWords[] = {
    ROW(f32, "Float", "FP32"),
    ROW(f64, "Double", "FP64"),
    ROW(f16, "Half", "FP16"),
    ROW(bf16, "BFloat16", "BFloat16"),
    ROW(i8, "Int8", "Int8"),
    ROW(i16, "Int16", "Int16"),
    ROW(i32, "Int32", "Int32"),
    ROW(i64, "Int64", "Int64"),
    ROW(u8, "UInt8", "UInt8"),
    ROW(u16, "UInt16", "UInt16"),
    ROW(u32, "UInt32", "UInt32"),
    ROW(u64, "UInt64", "UInt64"),
    ROW(boolean, "Bool", "BOOL"),
    ROW(f8e4m3fn, "FP8", "FP8"),
    ROW(f8e4m3fnuz, "FP8E4M3FNUZ", "FP8E4M3FNUZ"),
    ROW(f8e5m2, "FP8E5M2", "FP8E5M2"),
    ROW(f8e5m2fnuz, "FP8E5M2FNUZ", "FP8E5M2FNUZ"),
    ROW(f8e8m0, "E8M0", "E8M0"),
    ROW(f4e2m1, "FP4", "FP4"),
    ROW(i4, "Int4", "Int4"),
    ROW(u4, "UInt4", "UInt4"),
    ROW(i2, "Int2", "Int2"),
    ROW(u2, "UInt2", "UInt2"),
};
#undef ROW

// Of every type: the numbers of types begin with 1.
constexpr bool is_complete() {
  size_t number = 0;
  for (const Words& words : kWords)
    if (static_cast<size_t>(words.type) != ++number) return false;
#define LATHE_DTYPE(name, ...) --number;
#include "base/dtypes.def"
#undef LATHE_DTYPE
  return number == 0;
}
static_assert(is_complete());

const Words& words_of(DType type) { return kWords[static_cast<size_t>(type) - 1]; }

}  // namespace

const char* inspector_word(DType type) { return words_of(type).inspector; }
const char* format_sentence(DType type) { return words_of(type).format; }

}  // namespace lathe::api
