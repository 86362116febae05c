// SPDX-License-Identifier: Apache-2.0
// On a CPU every op runs by a kernel, whatever its element type and though its sizes are open, or stands in the table
// of those that may run by their plain evaluation, with a reason. An op without a case here is a failure.
#include <set>

#include "lowering/engine_fixture.h"
#include "ops/rules.h"

namespace lathe {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,  DType::i16,    DType::i32,
                            DType::i64, DType::u8,  DType::u16, DType::u32,  DType::u64, DType::boolean};

// `inputs`: "x: @[a, b]; k: i64[1]=3", where @ is the element type, letters are open dimensions and a number fills the
// input; `lines`: the rest of the graph, whose results to look at are %y, and %z where it occurs; `evaluated`: the
// types of which some op runs by its plain evaluation.
struct OpCase {
  std::string_view op, inputs, lines, evaluated = "", reason = "";
};

constexpr std::string_view kAll = "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool";
constexpr std::string_view kNumbers = "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64";
constexpr std::string_view kFloats = "f32 f64 f16 bf16";

constexpr std::string_view kSizes = "a few numbers, which follow from sizes";
constexpr std::string_view kExperts = "networks of experts have no doubles";
constexpr std::string_view kScaled = "passes make it for GPUs alone";
constexpr std::string_view kText = "the host's library writes and reads numbers";
constexpr std::string_view kTraining = "statistics are results of training alone";

constexpr OpCase kCases[] = {
    {"constant", "x: @[a]", "%y = constant{value=@[2]{~1}}()"},
    {"identity", "x: @[a, b]", "%y = identity(%x)"},
    {"cast", "x: @[a, b]", "%y = cast{to=f32}(%x)"},
    {"cast", "x: f32[a, b]", "%y = cast{to=@}(%x)"},
    {"unary", "x: @[a, b]", "%y = unary{op=neg}(%x)"},
    {"unary", "x: @[a, b]", "%y = unary{op=exp}(%x)"},
    {"unary", "x: @[a, b]", "%y = unary{op=erf}(%x)"},
    {"unary", "x: @[a, b]", "%y = unary{op=abs}(%x)"},
    {"unary", "x: @[a, b]", "%y = unary{op=is_nan}(%x)"},
    {"unary", "x: @[a, b]", "%y = unary{op=logical_not}(%x)"},
    {"activation", "x: @[a, b]", "%y = activation{op=relu}(%x)"},
    {"activation", "x: @[a, b]", "%y = activation{op=gelu_erf}(%x)"},
    {"elementwise", "x: @[a, b]; v: @[b]", "%y = elementwise{op=add}(%x, %v)"},
    {"elementwise", "x: @[a, b]; v: @[b]", "%y = elementwise{op=less}(%x, %v)"},
    {"elementwise", "x: @[a, b]; v: @[b]", "%y = elementwise{op=logical_and}(%x, %v)"},
    {"elementwise", "x: @[a, b]; v: @[b]", "%y = elementwise{op=pow}(%x, %v)"},
    {"prelu", "x: @[a, b]; v: @[b]", "%y = prelu(%x, %v)"},
    {"select", "c: bool[a, b]; x: @[a, b]; v: @[b]", "%y = select(%c, %x, %v)"},
    {"quantize", "x: @[a, b]; s: @[]", "%y = quantize{to=u8}(%x, %s)"},
    {"dequantize", "x: @[a, b]; s: f32[]", "%y = dequantize(%x, %s)"},
    {"matmul", "x: @[a, b, c]; v: @[a, c, d]", "%y = matmul(%x, %v)"},
    {"convolution", "x: @[a, 3, b, c]", "%w = constant{value=@[4, 3, 3, 3]{~1}}() %y = convolution(%x, %w)"},
    {"convolution", "x: @[a, 3, b, c]; w: @[4, 3, 2, 2]", "%y = convolution(%x, %w)"},
    {"convolution", "x: @[a, 3, b, c]; w: @[4, 3, 1, 1]; v: @[4]", "%y = convolution(%x, %w, %v)"},
    {"convolution", "x: @[a, 3, b]", "%w = constant{value=@[4, 3, 3]{~1}}() %y = convolution(%x, %w)"},
    {"convolution", "x: @[a, 2, b, c, 3]", "%w = constant{value=@[4, 2, 2, 2, 2]{~1}}() %y = convolution(%x, %w)"},
    {"convolution", "x: @[a, 4, b, c]", "%w = constant{value=@[4, 1, 3, 3]{~1}}() %y = convolution{groups=4}(%x, %w)"},
    {"deconvolution", "x: @[a, 3, b, c]", "%w = constant{value=@[3, 2, 3, 3]{~1}}() %y = deconvolution(%x, %w)"},
    {"deconvolution", "x: @[a, 3, b]", "%w = constant{value=@[3, 2, 3]{~1}}() %y = deconvolution(%x, %w)"},
    {"convolution", "x: @[a, 3, b, c]; w: @[4, 3, 3, 3]",
     "%y = convolution{padding_mode=same_upper, stride=[2, 2]}(%x, %w)"},
    {"convolution", "x: @[a, 3, b, c]",
     "%w = constant{value=@[4, 3, 3, 3]{~1}}() %y = convolution{padding_mode=same_upper, stride=[2, 2]}(%x, %w)"},
    {"convolution", "x: @[a, 4, b, c]",
     "%w = constant{value=@[4, 2, 9, 9]{~1}}() %y = convolution{groups=2, pads_begin=[4, 4], pads_end=[4, 4]}(%x, %w)"},
    {"deconvolution", "x: @[a, 3, b, c]; w: @[3, 2, 3, 3]; v: @[2]", "%y = deconvolution{stride=[2, 2]}(%x, %w, %v)"},
    {"deconvolution", "x: @[a, 3, b, c]",
     "%w = constant{value=@[3, 2, 3, 3]{~1}}() "
     "%y = deconvolution{padding_mode=same_lower, stride=[2, 2]}(%x, %w)"},
    {"attention", "q: @[a, 2, b, 4]; k: @[a, 2, c, 4]; v: @[a, 2, c, 4]", "%y = attention(%q, %k, %v)"},
    {"attention", "q: @[a, 4, b, 4]; k: @[a, 2, b, 4]; v: @[a, 2, b, 4]; m: @[b, b]", "%y = attention(%q, %k, %v, %m)"},
    {"attention", "q: @[a, 2, b, 4]; k: @[a, 2, c, 4]; v: @[a, 2, c, 4]", "%y = attention{causal=true}(%q, %k, %v)",
     "f64", kSizes},
    {"expert_matmul", "x: @[a, b]; w: @[2, b, 3]; i: i64[a]=1", "%y = expert_matmul(%x, %w, %i)", "f64", kExperts},
    {"expert_matmul", "x: @[a, 5]; i: u8[a]=1",
     "%w = constant{value=@[2, 4, 5]{~1}}() %y = expert_matmul{transpose_w=true, strict=true}(%x, %w, %i)", "f64",
     kExperts},
    {"scaled_matmul", "x: f8e4m3fn[a, 4]; w: f8e4m3fn[3, 4]; s: @[a, 1]", "%y = scaled_matmul(%x, %w, %s)", "f32",
     kScaled},
    {"recurrence", "x: @[a, b, 16]", "%r = constant{value=@[1, 16, 4]{~1}}() %y, %h, %c = recurrence(%x, %r)"},
    {"recurrence", "x: @[a, b, 12]; r: @[1, 12, 4]; l: i8[b]",
     "%y, %h = recurrence{cell=gru, direction=reverse}(%x, %r, _, %l)"},
    {"einsum", "x: @[a, b, c]; v: @[c, d]", "%y = einsum{equation=\"abc,cd->adb\"}(%x, %v)"},
    {"einsum", "x: @[a, b, c]", "%y = einsum{equation=\"abc->ca\"}(%x)"},
    {"einsum", "x: @[a, b]; v: @[b, c]; w: @[c, d]", "%y = einsum{equation=\"ab,bc,cd->ad\"}(%x, %v, %w)"},
    {"pooling", "x: @[a, 3, b, c]", "%y = pooling{op=max, window=[2, 2]}(%x)"},
    {"pooling", "x: @[a, 3, b, c]", "%y, %z = pooling{op=max, window=[2, 2]}(%x)"},
    {"pooling", "x: @[a, 3, b, c]",
     "%y, %z = pooling{op=max, window=[3, 3], padding_mode=same_upper, stride=[2, 2]}(%x)"},
    {"pooling", "x: @[a, 3, b, c]", "%y = pooling{op=max, window=[3, 3], padding_mode=same_lower, stride=[2, 2]}(%x)"},
    {"pooling", "x: @[a, 64, 64]", "%y = pooling{op=average, window=[33, 33], pads_begin=[9, 9]}(%x)"},
    {"pooling", "x: @[a, 3, b, c]", "%y = pooling{op=lp, window=[2, 2], padding_mode=same_upper, stride=[2, 2]}(%x)"},
    {"pooling", "x: @[a, 3, b, c]", "%y = pooling{op=average, window=[2, 2]}(%x)"},
    {"pooling", "x: @[a, 3, b, c]", "%y = pooling{op=lp, window=[2, 2]}(%x)"},
    {"pooling", "x: @[a, 3, b, c, 4]", "%y = pooling{op=max, window=[2, 2, 2]}(%x)"},
    {"lrn", "x: @[a, 3, b, c]", "%y = lrn{size=3}(%x)"},
    {"resize", "x: @[a, 3, b, c]",
     "%n = constant{value=f32[0]{}}() %s = constant{value=f32[4]{1, 1, 2, 2}}() %y = resize{mode=linear}(%x, %n, %s)"},
    {"resize", "x: @[a, 3, b, c]",
     "%n = constant{value=f32[0]{}}() %s = constant{value=f32[4]{1, 1, 2, 2}}() %y = resize(%x, %n, %s)"},
    {"resize", "x: @[a, 3, b, c]; s: f32[4]=1", "%n = constant{value=f32[0]{}}() %y = resize(%x, %n, %s)"},
    {"resize", "x: @[a, 3, b, c]; s: i64[2]=5",
     "%n = constant{value=f32[0]{}}() %y = resize{mode=linear, axes=[2, 3]}(%x, %n, _, %s)"},
    {"resize", "x: @[a, 3, b, c]; s: i64[2]=5",
     "%n = constant{value=f32[0]{}}() "
     "%y = resize{mode=cubic, antialias=true, aspect=not_larger, axes=[2, 3]}(%x, %n, _, %s)"},
    {"resize", "x: @[a, 3, b, c]",
     "%r = constant{value=f32[4]{0, 0.25, 1.5, 1}}() %s = constant{value=i64[2]{5, 9}}() "
     "%y = resize{mode=linear, coordinates=tf_crop_and_resize, axes=[2, 3]}(%x, %r, _, %s)"},
    {"reduce", "x: @[a, b, c]", "%y = reduce{op=sum, axes=[1]}(%x)"},
    {"reduce", "x: @[a, b, c]", "%y = reduce{op=log_sum_exp, axes=[2]}(%x)"},
    {"reduce", "x: @[a, b, c]", "%y = reduce{op=max}(%x)"},
    {"reduce", "x: @[a, b, c]; i: i64[1]=1", "%y = reduce{op=sum}(%x, %i)", kNumbers,
     "no device has a kernel for axes that are computed"},
    {"arg_reduce", "x: @[a, b, c]", "%y = arg_reduce{axis=1}(%x)"},
    {"softmax", "x: @[a, b, c]", "%y = softmax(%x)"},
    {"softmax", "x: @[a, b, c]", "%y = softmax{axis=1, log=true}(%x)"},
    {"hardmax", "x: @[a, b, c]", "%y = hardmax(%x)"},
    {"hardmax", "x: @[a, b, c]", "%y = hardmax{axis=0}(%x)"},
    {"topk", "x: @[a, b]", "%k = constant{value=i64[1]{2}}() %y, %z = topk(%x, %k)"},
    {"topk", "x: @[a, b]; k: i64[1]=3", "%y, %z = topk(%x, %k)"},
    {"cumulative", "x: @[a, b]; i: i64[]=1", "%y = cumulative(%x, %i)"},
    {"lp_normalization", "x: @[a, b, c]", "%y = lp_normalization(%x)"},
    {"lp_normalization", "x: @[a, b, c]", "%y = lp_normalization{axis=1, p=1}(%x)"},
    {"lp_normalization", "x: @[a, b, c]", "%y = lp_normalization{axis=1, p=3}(%x)"},
    {"batch_normalization", "x: @[a, 3, b, c]; s: @[3]; t: @[3]; m: @[3]; v: @[3]",
     "%y = batch_normalization(%x, %s, %t, %m, %v)"},
    {"batch_normalization", "x: @[a, 3, b, c]; s: @[3]; t: @[3]; m: @[3]; v: @[3]",
     "%y, %z, %w = batch_normalization{training=true}(%x, %s, %t, %m, %v)", kFloats, kTraining},
    {"instance_normalization", "x: @[a, 3, b, c]; s: @[3]; t: @[3]", "%y = instance_normalization(%x, %s, %t)"},
    {"layer_normalization", "x: @[a, b, 4]; s: @[4]; t: @[4]", "%y = layer_normalization(%x, %s, %t)"},
    {"layer_normalization", "x: @[a, b, 4]; s: @[4]; t: @[4]", "%y, %z, %w = layer_normalization(%x, %s, %t)", kFloats,
     kTraining},
    {"group_normalization", "x: @[a, 4, b, c]; s: @[4]; t: @[4]", "%y = group_normalization{groups=2}(%x, %s, %t)"},
    {"rms_normalization", "x: @[a, b, 4]; s: @[4]", "%y = rms_normalization(%x, %s)"},
    {"reshape", "x: @[a, b, 4]", "%s = constant{value=i64[2]{0, -1}}() %y = reshape(%x, %s)"},
    {"reshape", "x: @[a, b, 4]; s: i64[1]=2",
     "%m = constant{value=i64[1]{-1}}() %n = concat{axis=0}(%m, %s) %y = reshape(%x, %n)"},
    {"reshape", "x: @[a, b, 4]; s: i64[1]=-1", "%y = reshape(%x, %s)"},
    {"flatten", "x: @[a, b, c]", "%y = flatten(%x)"},
    {"squeeze", "x: @[a, 1, b]", "%i = constant{value=i64[1]{1}}() %y = squeeze(%x, %i)"},
    {"unsqueeze", "x: @[a, b]", "%i = constant{value=i64[1]{1}}() %y = unsqueeze(%x, %i)"},
    {"transpose", "x: @[a, b, c]", "%y = transpose{perm=[2, 0, 1]}(%x)"},
    {"slice", "x: @[a, b, c]",
     "%s = constant{value=i64[2]{1, 0}}() %e = constant{value=i64[2]{99, -1}}() %y = slice(%x, %s, %e)"},
    {"slice", "x: @[a, b, c]",
     "%s = constant{value=i64[1]{-1}}() %e = constant{value=i64[1]{-99}}() %i = constant{value=i64[1]{1}}() "
     "%t = constant{value=i64[1]{-2}}() %y = slice(%x, %s, %e, %i, %t)"},
    {"slice", "x: @[a, b, c]; s: i64[1]=1; e: i64[1]=3", "%y = slice(%x, %s, %e)"},
    {"concat", "x: @[a, b]; v: @[c, b]", "%y = concat{axis=0}(%x, %v)"},
    {"split", "x: @[a, 6]", "%y, %z = split{axis=1}(%x)"},
    {"pad", "x: @[a, b, c]", "%p = constant{value=i64[6]{0, 1, 2, 1, -1, 0}}() %y = pad(%x, %p)"},
    {"pad", "x: @[a, b, c]; v: @[]", "%p = constant{value=i64[6]{0, 1, 2, 1, -1, 0}}() %y = pad(%x, %p, %v)"},
    {"pad", "x: @[a, b, c]", "%p = constant{value=i64[6]{0, 1, 1, 1, 0, 1}}() %y = pad{mode=reflect}(%x, %p)"},
    {"pad", "x: @[a, b, c]", "%p = constant{value=i64[6]{0, 1, 2, 1, -1, 3}}() %y = pad{mode=edge}(%x, %p)"},
    {"pad", "x: @[a, b, c]", "%p = constant{value=i64[6]{0, 1, 2, 1, -1, 3}}() %y = pad{mode=wrap}(%x, %p)"},
    {"pad", "x: @[a, b]; p: i64[4]=2", "%y = pad(%x, %p)"},
    {"pad", "x: @[a, b]; p: i64[4]=2", "%y = pad{mode=edge}(%x, %p)"},
    {"expand", "x: @[a, 1]; v: @[c, d]",
     "%s = shape(%v) %e = constant{value=i64[1]{3}}() "
     "%t = concat(%e, %s) %u = constant{value=i64[3]{3, 1, 4}}() %y = expand(%x, %u)"},
    {"expand", "x: @[a, 1]; s: i64[2]=1", "%y = expand(%x, %s)"},
    {"tile", "x: @[a, b]", "%r = constant{value=i64[2]{2, 3}}() %y = tile(%x, %r)"},
    {"tile", "x: @[a, b]; r: i64[2]=2", "%y = tile(%x, %r)"},
    {"depth_to_space", "x: @[a, 8, b, c]", "%y = depth_to_space{block=2}(%x)"},
    {"depth_to_space", "x: @[a, 8, b, c]", "%y = depth_to_space{block=2, mode=crd}(%x)"},
    {"space_to_depth", "x: @[a, 3, 4, c]", "%y = space_to_depth{block=2}(%x)"},
    {"trilu", "x: @[a, b, c]", "%y = trilu(%x)"},
    {"col2im", "x: @[a, 12, b]",
     "%h = shape{start=2, end=3}(%x) %n = constant{value=i64[1]{2}}() %i = elementwise{op=mul}(%h, %n) "
     "%k = constant{value=i64[1]{4}}() %y = col2im{stride=[2], pads_begin=[1], pads_end=[1]}(%x, %i, %k)"},
    {"col2im", "x: @[4, 4, 4]; i: i64[2]=3; k: i64[2]=2", "%y = col2im(%x, %i, %k)"},
    {"shape", "x: @[a, b, c]", "%y = shape(%x)", kAll, kSizes},
    {"size", "x: @[a, b, c]", "%y = size(%x)", kAll, kSizes},
    {"fill", "x: i64[a, b]", "%s = shape(%x) %y = fill{value=@[1]{1}}(%s)"},
    {"fill", "s: i64[2]=3", "%y = fill{value=@[1]{1}}(%s)"},
    {"range", "x: i64[a, b]",
     "%n = size(%x) %s = constant{value=i64[]{0}}() %d = constant{value=i64[]{1}}() "
     "%y = range(%s, %n, %d)"},
    {"range", "s: @[]=1; e: @[]=9; d: @[]=2", "%y = range(%s, %e, %d)"},
    {"eye_like", "x: @[a, b]", "%y = eye_like{dtype=f32, k=1}(%x)"},
    {"eye_like", "x: f32[a, b]", "%y = eye_like{dtype=@}(%x)"},
    {"gather", "x: @[a, b]; i: i64[c]", "%y = gather{axis=1}(%x, %i)"},
    {"gather_elements", "x: @[a, b]; i: i64[a, c]", "%y = gather_elements{axis=1}(%x, %i)"},
    {"gather_nd", "x: @[a, b, c]; i: i64[d, 2]", "%y = gather_nd(%x, %i)"},
    {"scatter_elements", "x: @[a, b]; i: i64[a, b]; u: @[a, b]", "%y = scatter_elements{axis=1}(%x, %i, %u)"},
    {"scatter_elements", "x: @[a, b]; i: i64[a, b]; u: @[a, b]",
     "%y = scatter_elements{axis=1, reduction=add}(%x, %i, %u)"},
    {"scatter_nd", "x: @[a, b]; i: i64[c, 1]; u: @[c, b]", "%y = scatter_nd(%x, %i, %u)"},
    {"scatter_nd", "x: @[a, b]; i: i64[c, 1]; u: @[c, b]", "%y = scatter_nd{reduction=max}(%x, %i, %u)"},
    {"tensor_scatter", "x: @[a, b, c]; u: @[a, 1, c]; i: i64[a]", "%y = tensor_scatter{axis=1}(%x, %u, %i)"},
    {"tensor_scatter", "x: @[a, b, c]; u: @[a, d, c]", "%y = tensor_scatter{axis=1, circular=true}(%x, %u)"},
    {"one_hot", "x: i64[a, b]; v: @[2]", "%d = constant{value=i64[]{3}}() %y = one_hot(%x, %d, %v)"},
    {"one_hot", "x: @[a, b]; d: i64[]=3; v: f32[2]", "%y = one_hot(%x, %d, %v)"},
    {"nonzero", "x: @[a, b]", "%y = nonzero(%x)"},
    {"compress", "x: @[a, b]; c: bool[a]", "%y = compress{flat=false, axis=0}(%x, %c)"},
    {"compress", "x: @[a, b]; c: bool[a]", "%y = compress(%x, %c)"},
    {"choose", "c: bool[]=1; x: @[a, b]; v: @[c, b]", "%y = choose(%c, %x, %v)"},
    {"roi_align", "x: @[a, 3, b, c]; r: @[d, 4]; i: i64[d]", "%y = roi_align{height=2, width=2}(%x, %r, %i)"},
    {"roi_align", "x: @[a, 3, b, c]; r: @[d, 4]; i: u8[d]", "%y = roi_align{mode=max, height=2, width=2}(%x, %r, %i)"},
    {"non_max_suppression", "b: @[a, b, 4]; s: @[a, 2, b]; n: i64[]=3", "%y = non_max_suppression(%b, %s, %n)"},
    {"random", "x: i64[a, b]; s: i64[1]", "%d = shape(%x) %y = random{dtype=@}(%d, %s)"},
    {"random", "x: i64[a, b]; s: i64[1]", "%d = shape(%x) %y = random{op=normal, dtype=@}(%d, %s)"},
    {"random", "d: i64[2]=5; s: i64[1]", "%y = random{dtype=@}(%d, %s)"},
    {"numpy_random", "x: i64[a, b]; s: i64[1]", "%d = shape(%x) %y = numpy_random(%d, %s)", kAll,
     "one number depends on all before it"},
    {"bitcast", "x: @[a, b]", "%v = elementwise{op=add}(%x, %x) %y = bitcast{to=i32}(%v)"},
    {"bitcast", "x: @[a, b]", "%v = elementwise{op=add}(%x, %x) %y = bitcast{to=u8}(%v)"},
    {"determinant", "x: @[a, b, b]", "%y = determinant(%x)", kFloats,
     "an elimination, each step of which needs the last"},
    {"to_text", "x: @[a, b]", "%y = to_text(%x)", kAll, kText},
    {"from_text", "x: u8[a, 1]=49", "%y = from_text{to=@}(%x)", kAll, kText},
    {"fresh_seed", "x: f32[a]", "%y = fresh_seed()", kAll, "one number, which the context counts"},
};

std::string replace_all(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

constexpr std::string_view kNames[] = {"a", "b", "c", "d"};
constexpr int64_t kOpen[] = {4, 5, 6, 7};

std::vector<std::string> split_at(const std::string& text, const std::string& mark) {
  std::vector<std::string> parts = {""};
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, mark.size(), mark) == 0) {
      parts.emplace_back();
      i += mark.size() - 1;
    } else {
      parts.back() += text[i];
    }
  }
  return parts;
}

std::string text_of(const OpCase& each, DType type) {
  std::string text = "graph g {\n";
  for (const std::string_view name : kNames) text += fmt::format("  symbol {} in [4, 64]\n", name);
  for (const std::string& input : split_at(std::string(each.inputs), "; "))
    text += "  input %" + split_at(input, "=")[0] + "\n";
  text += "  " + replace_all(std::string(each.lines), ") %", ")\n  %") + "\n  output %y\n";
  if (each.lines.find("%z") != std::string_view::npos) text += "  output %z\n";
  return replace_all(text + "}\n", "@", name_of(type));
}

// Positive floats, integers 0, 1, 2 in turn, or the number that the case states.
std::vector<Tensor> inputs_of(const OpCase& each, const ir::Graph& graph) {
  std::vector<Tensor> tensors;
  const std::vector<std::string> texts = split_at(std::string(each.inputs), "; ");
  for (size_t k = 0; k < texts.size(); ++k) {
    const ir::Value* input = graph.inputs()[k];
    Dims dims;
    for (const Expr& dim : input->shape())
      dims.push_back(dim.as_symbol() ? kOpen[*dim.as_symbol()] : *dim.as_constant());
    const std::vector<std::string> parts = split_at(texts[k], "=");
    Tensor tensor = *Tensor::allocate(input->dtype(), dims);
    std::vector<double> values(static_cast<size_t>(tensor.volume()));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = parts.size() > 1                   ? std::stod(parts[1])
                  : is_floating(tensor.dtype())      ? 0.25 + static_cast<double>(i * 7 % 11) / 4
                  : tensor.dtype() == DType::boolean ? static_cast<double>(i % 2)
                                                     : static_cast<double>(i % 3);
    from_doubles(values, tensor);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

BuildOptions cpu_options() {
  BuildOptions options = native_options(1);
  options.traits.arithmetic.narrow_floats = false;
  options.traits.arithmetic.f32_rows = true;
  return options;
}

// Whether an op of the graph is evaluated; results are compared with those of the graph's interpretation.
bool is_evaluated(const OpCase& each, const ir::Graph& graph, const std::string& text, DType type) {
  BuildReport report;
  const auto engine = build_engine(text, cpu_options(), 1, &report);
  if (!engine) return false;
  if (each.op != "fresh_seed") {
    const std::vector<Tensor> inputs = inputs_of(each, graph);
    const auto context = *Context::create(engine);
    const std::vector<Tensor> got = run_engine(*context, inputs);
    const auto want = ir::interpret(graph, inputs);
    EXPECT_TRUE(want) << want.error().message;
    const double tolerance = !is_floating(type) ? 1e-6 : size_of(type) == 2 ? 1e-2 : 2e-5;
    for (size_t i = 0; want && i < got.size(); ++i) expect_close(got[i], (*want)[i], tolerance);
  }
  return std::any_of(report.regions.begin(), report.regions.end(),
                     [](const RegionReport& region) { return region.kind == "eval"; });
}

TEST(Evaluated, OnlyWhatTheTableSays) {
  for (const OpCase& each : kCases) {
    std::string evaluated;
    int admitted = 0;
    for (const DType type : kTypes) {
      const std::string text = text_of(each, type);
      const Result<ir::Graph> graph = ir::parse_graph(text);
      if (!graph) continue;  // the op does not admit the type
      ++admitted;
      SCOPED_TRACE(text);
      if (is_evaluated(each, *graph, text, type)) evaluated += " " + std::string(name_of(type));
    }
    EXPECT_GT(admitted, 0) << each.op << ": " << each.lines;
    const std::string expected = each.evaluated.empty() ? "" : " " + std::string(each.evaluated);
    EXPECT_EQ(evaluated, expected) << each.op << ": " << each.inputs << " | " << each.lines;
    EXPECT_EQ(each.evaluated.empty(), each.reason.empty()) << each.op;
  }
}

TEST(Evaluated, EveryOpHasACase) {
  std::set<std::string_view> cases;
  for (const OpCase& each : kCases) cases.insert(each.op);
  for (const OpInfo& info : all_ops())  // but for what is run by blocks, or by the application
    EXPECT_TRUE(cases.contains(info.name) || (info.traits & kControlFlow) || info.kind == OpKind::plugin) << info.name;
}

}  // namespace
}  // namespace lathe
