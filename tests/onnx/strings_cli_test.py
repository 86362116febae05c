#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators on strings, against Python's: on the CPU with known, open and constant strings, some of them on an emulated GPU."""
import re
import subprocess
import unittest

import ml_dtypes
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from one_node_cases import LATHE, OneNodeCases

WAYS = [("runtime", "cpu"), ("symbolic", "cpu"), ("frozen", "cpu"), ("reload", "cpu")]
ALPHABET = list("aAbB -.zZ") + ["é", "É", "ж", "Ж", "ế", "Ế", "的", "😀", "ab", "--"]


PATTERNS = ["", "a", "a|b|ab", "(ab)*", "a*b", "a+?", "a{2}", "a{2,}", "a{1,3}", "a{0}", "a{", ".", ".*", "(?s).*", "(?s:.)", "a.b", "[a-c]+",
            "[^a-c]", "[^a]*", "\\w+", "\\W", "\\d{1,2}", "\\D+", "\\s*\\w+\\s*", "\\S+", "[\\w\\s]+", "[^\\w]", "\\ba\\b.*", "a\\Bb.*", ".*\\b",
            "^a$", "(^a|b)b?", "a^b", "[é-😀]", "的{2}", "[的😀]+", "[-a]*", "[]^[]", "[a\\]]", "\\.", "a\\.b", "\\x61b", "[\\x61-\\x63]", "(?i)AB|-?",
            "(?i:a)b", "(?:a|(b|c))*", "(?P<name>a)b", "(a|b|)+-?", "\\t", "x\\\\", "[\\n\\t]", "(\\w+ )*\\w+", "[\u0700-\uffff]"]



def strings(*values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


def split(x, delimiter, most=-1):
    """Pieces, "" where a string has fewer than another, and how many each has."""
    pieces = [text.split(delimiter or None, most) for text in x.ravel()]
    most = max(map(len, pieces), default=0)
    table = np.empty((len(pieces), most), object)
    for i, row in enumerate(pieces):
        table[i] = row + [""] * (most - len(row))
    return table.reshape(*x.shape, most), np.array([len(row) for row in pieces], np.int64).reshape(x.shape)


def matches_of_runtime(pattern, texts):
    info = [helper.make_tensor_value_info(name, kind, ["n"]) for name, kind in (("x", TensorProto.STRING), ("y", TensorProto.BOOL))]
    graph = helper.make_graph([helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)], "g", info[:1], info[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": texts})[0]


def text_of_real(x):
    """As Python writes floats, with the digits of x's type."""
    if not np.isfinite(x):
        return "NaN" if np.isnan(x) else "INF" if x > 0 else "-INF"
    text = np.format_float_scientific(x, unique=True, trim="-", exp_digits=2)
    return np.format_float_positional(x, unique=True, trim="0") if -4 <= int(text.split("e")[1]) < 16 else text


class Strings(OneNodeCases):
    def words(self, *dims, most=6):
        words = ["".join(self.random.choice(ALPHABET, self.random.integers(0, most + 1))) for _ in range(int(np.prod(dims)))]
        return strings(*words).reshape(dims)

    def test_concat(self):
        for a, b in (((3, 4), (3, 4)), ((2, 1, 3), (4, 1)), ((), (5,)), ((0, 2), (1, 2))):
            a, b = self.words(*a), self.words(*b)
            self.write("StringConcat", [a, b], [np.asarray(a + b, object)])
        self.all_pass(*WAYS)

    def test_equal(self):
        x = self.words(40, most=2)
        y = x.copy()
        y[::2] = self.words(20, most=2)
        self.write("Equal", [x, y], [x == y])
        self.write("Equal", [x.reshape(40, 1), y], [x.reshape(40, 1) == y])
        self.write("Equal", [strings("a", "ab", ""), strings("ab", "ab", "")], [np.array([False, True, True])])
        self.all_pass(*WAYS, ("runtime", "cuda:0"))

    def test_split(self):
        x = self.words(5, 8, most=12)
        for delimiter in ("", "-", "--", "ab", "a-a", "的", " "):
            for most in (-1, 0, 1, 3):
                attributes = {} if most < 0 else {"maxsplit": most}
                self.write("StringSplit", [x], split(x, delimiter, most), delimiter=delimiter, **attributes)
        self.write("StringSplit", [strings("aaaa", "aaaaa", "a")], split(strings("aaaa", "aaaaa", "a"), "aa"), delimiter="aa")
        self.write("StringSplit", [strings("ababacababa")], split(strings("ababacababa"), "aba"), delimiter="aba")
        self.write("StringSplit", [strings("", "  ")], split(strings("", "  "), ""))
        self.all_pass(*WAYS)

    def test_case(self):
        """Letters of up to two bytes, and those of Latin of three, but for those that are longer in the other case."""
        letters = [chr(c) for c in (*range(1, 0x180), 0x1a0, *range(0x1cd, 0x1f0), *range(0x1f8, 0x220), *range(0x370, 0x530),
                                    *range(0x531, 0x587), *range(0x1e00, 0x1e96), *range(0x1ea0, 0x1f00))]
        lasting = {"LOWER": str.lower, "UPPER": str.upper}
        for action, function in lasting.items():
            def change(c):
                other = function(c)
                return other if len(other) == 1 and len(other.encode()) == len(c.encode()) else c
            # Letters whose pair is not one of capital and small letter alone.
            kept = [c for c in letters if c not in "µςſϐϑϕϖϰϱϴϵϲϹϷϸϺϻϼϽϾϿͰͱͲͳͶͷͻͼͽǱǲǳǄǅǆǇǈǉǊǋǌǝϏϗͿϳ"]
            x = strings(*kept, "".join(kept), "的é😀A", "")
            wanted = strings(*("".join(map(change, text)) for text in x))
            self.write("StringNormalizer", [x], [wanted], case_change_action=action)
        self.all_pass(*WAYS)

    def test_stopwords(self):
        x = strings("Été", "a", "ÉTÉ", "b", "ab", "", "A")
        for stopwords, exact, action in ((["été", "A"], 0, "NONE"), (["été", "A"], 1, "LOWER"), (["ab", ""], 0, "UPPER"),
                                         (list(x), 1, "NONE"), (["x", "ba"], 1, "UPPER")):
            key = (lambda w: w) if exact else str.lower
            left = [w for w in x if key(w) not in map(key, stopwords)] or [""]
            change = {"LOWER": str.lower, "UPPER": str.upper}.get(action, str)
            left = strings(*map(change, left))
            attributes = dict(stopwords=stopwords, is_case_sensitive=exact, case_change_action=action)
            self.write("StringNormalizer", [x], [left], **attributes)
            self.write("StringNormalizer", [x.reshape(1, -1)], [left.reshape(1, -1)], locale="en_US", **attributes)
        self.all_pass(*WAYS)

    def test_other_letters_are_warned_of_once(self):
        x = strings("ß", "A")
        for count, attributes in ((1, dict(case_change_action="LOWER")), (1, dict(stopwords=["a"])), (0, dict(stopwords=["a"], is_case_sensitive=1)), (0, {})):
            self.write("StringNormalizer", [x], [x], name="norm", **attributes)
            model = self.folder / f"cases/node/case_{self.count - 1}/model.onnx"
            shapes = [f"--{which}Shapes=x0:2x{bytes}" for which, bytes in (("min", 1), ("opt", 8), ("max", 9))]
            said = subprocess.run([LATHE, "build", model, "-o", self.folder / "plan", *shapes], capture_output=True, text=True, env=self.environment)
            self.assertEqual(said.returncode, 0, said.stderr)
            self.assertEqual(len(re.findall("norm: letters change case that are ASCII's", said.stdout + said.stderr)), count, said.stderr)

    def test_label_encoder(self):
        ml = dict(domain="ai.onnx.ml")
        keys = ["a", "ab", "", "é", "a"]  # the last of equal ones counts
        x = strings("ab", "a", "b", "é", "", "abc").reshape(2, 3)
        self.write("LabelEncoder", [x], [np.array([[1, 4, -7], [3, 2, -7]])], keys_strings=keys, values_int64s=[0, 1, 2, 3, 4],
                   default_int64=-7, **ml)
        self.write("LabelEncoder", [x], [strings("B", "E", "?", "D", "C", "?").reshape(2, 3)], keys_strings=keys,
                   values_strings=list("ABCDE"), default_string="?", **ml)
        self.write("LabelEncoder", [np.array([3, 1, 2])], [strings("c", "a", "_Unused")], keys_int64s=[1, 3], values_strings=["a", "c"], **ml)
        self.write("LabelEncoder", [np.array([2.5, 0], np.float32)], [strings("x", "")], keys_floats=[2.5], values_strings=["x"],
                   default_string="", **ml)
        self.all_pass(*WAYS, ("runtime", "cuda:0"))

    def test_tf_idf(self):
        x = strings("one", "two", "one", "three", "two", "one")
        pairs = list(zip(x, x[1:]))
        wanted = [3, 2, 0, pairs.count(("one", "three")), pairs.count(("two", "one"))]
        self.write("TfIdfVectorizer", [x], [np.array(wanted, np.float32)], min_gram_length=1, max_gram_length=2, max_skip_count=0,
                   mode="TF", ngram_counts=[0, 3], ngram_indexes=[0, 1, 2, 3, 4],
                   pool_strings=["one", "two", "none", "one", "three", "two", "one"])
        self.all_pass(("runtime", "cpu"), ("frozen", "cpu"))

    def test_pattern(self):
        texts = strings("", "a", "A", "ab", "abab", "aab", "b", "-", "a-b", "a b", "a.b", "a\nb", "é", "É", "的的", "😀", "k", "K", "\u212a", "_", "9", "09",
                        "a9_", "word", " word ", "two words", "[", "]", "^", "{", "a{", "a{2", "aa", "aaa", "aaaa", "\t", "x\\", "ſ", "\u0800", "\uffff")
        texts = np.concatenate([texts, self.words(40)])
        for pattern in PATTERNS:
            matches = [re.fullmatch(pattern, text, re.ASCII) is not None for text in texts]
            self.write("RegexFullMatch", [texts], [np.array(matches)], pattern=pattern)
        # ONNX names RE2, which ONNX Runtime has, for what Python does not have or has otherwise.
        for pattern in PATTERNS + ["a{,2}", "\\B", "(?i)[a-k]", "(?i)k|s", "[[:alpha:]]+", "[[:^digit:]_]", "(?<n>a)b", "\\x{1F600}|\\Q.[\\E", "[^[:punct:]]", "[[:space:][:upper:]]*"]:
            self.write("RegexFullMatch", [texts], [matches_of_runtime(pattern, texts)], pattern=pattern)
        self.all_pass(("runtime", "cpu"), ("frozen", "cpu"))

    def test_bad_patterns(self):
        x, y = strings("a", "b"), np.zeros(2, bool)
        for text, pattern in (("a ')' closes nothing", "a)"), ("a ')' is missing", "(a"), ("a ']' is missing", "[a"), ("nothing to repeat", "*a"),
                              ("repetition of a repetition", "a**"), ("no such number of repetitions", "a{3,2}"),
                              ("no such number of repetitions", "a{1001}"), ("range ends before it begins", "[b-a]"),
                              ("no class has this name", "[[:letter:]]"), ("nothing behind the last", "a\\"), ("\\x is followed by", "\\x{110000}"),
                              ("escape is not supported", "\\pL"), ("escape is not supported", "\\1"), ("flag m is not supported", "(?m)a"), ("flag U is not supported", "(?iU:a)"),
                              ("of flags i and s", "(?=a)"), ("group's name is missing", "(?P<a"), ("flag i goes for letters of ASCII", "(?i)é"),
                              ("lie too deep", "(" * 300 + ")" * 300), ("too long", "((a{1000}){1000}){1000}"),
                              ("more than 10000 states", "[ab]*a[ab]{20}"), ("too many parts that may match at once", "(a?b?c?d?){900}")):
            self.refuse(text, "RegexFullMatch", [x], [y], pattern=pattern)
        self.refuse("no UTF-8", "RegexFullMatch", [x], [y], pattern=b"\xff")
        self.refuse("'pattern' is required", "RegexFullMatch", [x], [y])

    def test_movement(self):
        x = self.words(3, 4)
        numbers = lambda *values: np.array(values, np.int64)
        self.write("Gather", [x, np.array([[2, 0], [-1, 1]])], [x[:, [[2, 0], [-1, 1]]]], constants=(1,), axis=-1)
        self.write("Transpose", [x], [x.T], perm=[1, 0])
        self.write("Reshape", [x, numbers(2, -1)], [x.reshape(2, 6)], constants=(1,))
        new = self.words(2, 4, most=9)
        self.write("Concat", [x, new], [np.concatenate([x, new])], axis=0)
        self.write("Slice", [x, numbers(1), numbers(4), numbers(-1), numbers(2)], [x[:, 1::2]], constants=(1, 2, 3, 4))
        wide = np.full((4, 6), "", object)
        wide[1:, 2:] = x
        self.write("Pad", [x, numbers(1, 2, 0, 0)], [wide], constants=(1,))
        self.write("Pad", [x[0], numbers(0, 1), strings("é")[0]], [np.append(x[0], "é")], constants=(1, 2))
        mask = self.random.random((3, 4)) < 0.5
        y = self.words(4, most=9)
        self.write("Where", [mask, x, y], [np.where(mask, x, y)])
        self.write("Compress", [x, np.array([True, False, True])], [x[[0, 2]]], axis=0)
        self.write("Expand", [x[:, :1], numbers(3, 5)], [np.broadcast_to(x[:, :1], (3, 5))], constants=(1,))
        self.write("Tile", [x, numbers(2, 1)], [np.tile(x, (2, 1))], constants=(1,))
        self.write("Split", [x], [x[:, :2], x[:, 2:]], axis=1, num_outputs=2)
        self.write("Unsqueeze", [x, numbers(-1)], [x[..., None]], constants=(1,))
        self.write("Squeeze", [x[:, :1], numbers(1)], [x[:, 0]], constants=(1,))
        self.write("Identity", [x], [x])
        self.write("Shape", [x], [numbers(3, 4)])
        self.write("Size", [x], [np.array(12)])
        self.write("GatherND", [x, np.array([[0, 1], [2, 3]])], [x[[0, 2], [1, 3]]], constants=(1,))
        scattered = x.copy()
        scattered[[2, 0]] = new
        self.write("ScatterND", [x, np.array([[2], [0]]), new], [scattered], constants=(1,))
        self.all_pass(*WAYS)

    def graph(self, nodes, results, inputs=()):
        declared = [[helper.make_tensor_value_info(name, kind, dims) for name, kind, dims in values] for values in (inputs, results)]
        return helper.make_graph(nodes, "inner", *declared)

    def test_nested_graphs(self):
        def case(nodes, inputs, outputs, constants=(), functions=()):
            protos = [[numpy_helper.from_array(np.asarray(array), name) for name, array in values] for values in (inputs, outputs, constants)]
            self.save(nodes, *protos, functions=functions)
        node, true, x = helper.make_node, ("true", np.array(True)), strings("a", "bb")
        twice = self.graph([node("StringConcat", ["x", "x"], ["t"])], [("t", TensorProto.STRING, [2])])
        same = self.graph([node("Identity", ["x"], ["s"])], [("s", TensorProto.STRING, [2])])
        for holds in (False, True):
            case([node("If", ["c"], ["y"], then_branch=twice, else_branch=same)], [("c", np.array(holds)), ("x", x)],
                 [("y", x + x if holds else x)])
        head = [("i", TensorProto.INT64, []), ("in", TensorProto.BOOL, [])]
        goes_on = node("Identity", ["in"], ["out"]), ("out", TensorProto.BOOL, [])
        body = self.graph([node("Gather", ["x", "i"], ["w"]), node("Equal", ["w", "x"], ["q"]), goes_on[0]],
                          [goes_on[1], ("q", TensorProto.BOOL, [2])], head)
        case([node("Loop", ["n", "true"], ["y"], body=body)], [("n", np.array(2)), ("x", x)], [("y", np.eye(2, dtype=bool))], [true])
        body = self.graph([node("StringConcat", ["s", "x"], ["t"]), goes_on[0]], [goes_on[1], ("t", TensorProto.STRING, [2])],
                          head + [("s", TensorProto.STRING, [2])])
        case([node("Loop", ["n", "true", "x"], ["y"], body=body)], [("x", x)], [("y", x + x + x)], [("n", np.array(2)), true])
        function = helper.make_function("local", "Twice", ["a"], ["b"], [node("StringConcat", ["a", "a"], ["b"])],
                                        [helper.make_opsetid("", 26)])
        case([node("Twice", ["x"], ["y"], domain="local")], [("x", x)], [("y", x + x)], functions=[function])
        case([node("Optional", ["x"], ["o"]), node("OptionalGetElement", ["o"], ["y"]), node("OptionalHasElement", ["o"], ["h"]),
              node("Constant", [], ["z"], value_strings=["é", ""]), node("Constant", [], ["v"], value_string="q")],
             [("x", x)], [("y", x), ("h", np.array(True)), ("z", strings("é", "")), ("v", np.array("q", object))])
        case([node("Identity", ["x"], ["y"]), node("Identity", ["x"], ["z"])], [("x", x)], [("y", x), ("z", x)])
        case([node("Loop", ["n", "true", "x"], ["y"], body=body)], [("n", np.array(2)), ("x", x)], [("y", x + x + x)], [true])
        case([node("SequenceConstruct", ["x"], ["s"]), node("SequenceLength", ["s"], ["y"])], [("x", x)], [("y", np.array(1))])
        self.all_pass(*WAYS)
        case([node("StringConcat", ["x", "x"], ["y"])], [("x", x)], [("y", np.zeros(2, np.float32))])
        self.assertIn("output 'y' is declared float32, but its node yields strings", self.run_cases("runtime")[-1]["reason"])

    def test_cast_to_strings(self):
        reals = np.concatenate([10 ** self.random.uniform(-12, 20, 300) * self.random.choice([-1, 1], 300),
                                [0.0, -0.0, 1, 1e15, 1e16, 123456789, 1e-4, 9.9e-5, 1 / 3, 5e-324, 1.7e308, np.nan, np.inf, -np.inf]])
        for kind in (np.float64, np.float32, np.float16):
            with np.errstate(over="ignore"):
                x = reals.astype(kind)
            self.write("Cast", [x], [strings(*map(text_of_real, x))], to=TensorProto.STRING)
        for kind in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
            x = np.concatenate([self.random.integers(0, 100, 20), [0]]).astype(kind)
            x = np.append(x, np.array([np.iinfo(kind).min, np.iinfo(kind).max], kind))
            self.write("Cast", [x], [strings(*map(str, x))], to=TensorProto.STRING)
        flags = np.array([[True, False]])
        self.write("Cast", [flags], [strings("True", "False").reshape(1, 2)], to=TensorProto.STRING)
        self.write("CastLike", [flags, strings("")], [strings("True", "False").reshape(1, 2)])
        x = self.words(3)
        self.write("Cast", [x], [x], to=TensorProto.STRING)
        self.write("Cast", [np.array([-1.5, 448], ml_dtypes.float8_e4m3fn)], [strings("-1.5", "448.0")], to=TensorProto.STRING)
        self.write("Cast", [np.array([-8, 7], ml_dtypes.int4)], [strings("-8", "7")], to=TensorProto.STRING)
        self.all_pass(*WAYS, ("runtime", "cuda:0"))

    def test_cast_from_strings(self):
        reals = 10 ** self.random.uniform(-30, 30, 100)
        texts = [*map(str, reals), *(f"{x:.3e}" for x in reals), "1", " 2 ", "+3.5", "-.5", "7.", "1E8", "1e-5", "INF", "+INF", "-INF", "inf", "NaN", "nan"]
        for kind in (np.float64, np.float32, np.float16):
            with np.errstate(over="ignore"):
                wanted = np.array([kind(float(text)) for text in texts], kind)
            self.write("Cast", [strings(*texts)], [wanted], to=helper.np_dtype_to_tensor_dtype(np.dtype(kind)))
        for kind in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
            limits = np.iinfo(kind)
            wanted = np.array([limits.min, limits.max, 100, 0, 3], kind)
            self.write("Cast", [strings(str(limits.min), str(limits.max), "100.5", "0", " 3\n")], [wanted],
                       to=helper.np_dtype_to_tensor_dtype(np.dtype(kind)))
        self.write("Cast", [strings("True", "FALSE", "0", "2")], [np.array([True, False, False, True])], to=TensorProto.BOOL)
        self.write("CastLike", [strings("7", "-8"), np.zeros(1, ml_dtypes.int4)], [np.array([7, -8], ml_dtypes.int4)])
        self.write("Cast", [strings("0.5", "449")], [np.array([0.5, 448], ml_dtypes.float8_e4m3fn)], to=TensorProto.FLOAT8E4M3FN)
        number = helper.make_tensor_value_info("n", TensorProto.FLOAT, [1])
        read = helper.make_graph([helper.make_node("Cast", ["x"], ["n"], to=TensorProto.FLOAT)], "read", [], [number])
        other = helper.make_graph([helper.make_node("Identity", ["z"], ["n"])], "other", [], [number])
        branch = helper.make_node("If", ["c"], ["y"], then_branch=read, else_branch=other)
        for text, holds, wanted in (("2.5", True, 2.5), ("Hello", False, -1)):  # the condition guards
            proto = lambda x, name: numpy_helper.from_array(np.asarray(x), name)
            self.save([branch], [proto(np.array(holds), "c"), proto(strings(text), "x"), proto(np.array([-1], np.float32), "z")],
                      [proto(np.array([wanted], np.float32), "y")])
        self.all_pass(*WAYS, ("runtime", "cuda:0"))
        for text, kind in (("Hello", np.float32), ("", np.float32), ("1x", np.int32), ("300", np.uint8), ("-1", np.uint64), ("nan", np.int64)):
            self.refuse(f"string 1, '{text}', is no number of type", "Cast", [strings("1", text)], [np.zeros(2, kind)],
                        to=helper.np_dtype_to_tensor_dtype(np.dtype(kind)))

    def test_refusals(self):
        x = strings("a", "b")
        self.refuse("is of strings, which Lathe does not take there", "Less", [x, x], [np.zeros(2, bool)])
        self.refuse("is of no strings", "StringConcat", [x, np.zeros(2, np.float32)], [x])
        self.refuse("is of no strings", "Equal", [x, np.zeros(2, np.float32)], [np.zeros(2, bool)])
        self.refuse("case_change_action is 'TITLE'", "StringNormalizer", [x], [x], case_change_action="TITLE")
        self.refuse("its locale 'tr_TR'", "StringNormalizer", [x], [x], locale="tr_TR")
        self.refuse("must be a list of strings", "StringNormalizer", [x.reshape(2, 1, 1)], [x])
        self.refuse("no UTF-8", "StringNormalizer", [x], [x], stopwords=[b"\xff"])
        self.refuse("no UTF-8", "StringConcat", [x, strings("a\0b")], [x], constants=(1,))
        self.refuse("256 bytes, up to 255", "StringSplit", [x], split(x, "-"), delimiter="-" * 256)
        self.refuse("keys of string for an input of f32", "LabelEncoder", [np.zeros(2, np.float32)], [x], domain="ai.onnx.ml",
                    keys_strings=["a"], values_strings=["b"])
        self.refuse("its pool is of integers", "TfIdfVectorizer", [x], [np.zeros(1, np.float32)], min_gram_length=1, max_gram_length=1,
                    max_skip_count=0, mode="TF", ngram_counts=[0], ngram_indexes=[0], pool_int64s=[1])


if __name__ == "__main__":
    unittest.main()
