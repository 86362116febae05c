#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sequences and optionals whose length and presence only running tells, and strings that loops and branches carry, against
ONNX Runtime."""
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper, parser

from one_node_cases import OneNodeCases

HEAD = '<ir_version: 10, opset_import: ["": 21]>\n'
WAYS = [("runtime", "cpu"), ("symbolic", "cpu"), ("frozen", "cpu"), ("reload", "cpu"), ("runtime", "cuda:0")]


def strings(*values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


def proto_of(value, name, is_optional=False):
    if is_optional:
        return numpy_helper.from_optional(value, name, None if value is not None else onnx.OptionalProto.TENSOR)
    return numpy_helper.from_list(value, name) if isinstance(value, list) else numpy_helper.from_array(np.asarray(value), name)


class Sequences(OneNodeCases):
    def case(self, text, *runs, undeclared=False):
        """A case of this model, run with each of these lists of inputs; undeclared: without the types of outputs of nested graphs."""
        model = parser.parse_model(HEAD + text)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        for attribute in [a for node in model.graph.node for a in node.attribute if undeclared]:
            for output in attribute.g.output:
                output.ClearField("type")
        folder = self.folder / "cases/node" / f"case_{self.count}"
        self.count += 1
        for k, inputs in enumerate(runs):
            inputs = [x if isinstance(x, list) else np.asarray(x) for x in inputs]
            names = [x.name for x in model.graph.input]
            outputs = session.run(None, dict(zip(names, inputs, strict=True)))
            data = folder / f"test_data_set_{k}"
            data.mkdir(parents=True)
            for i, (name, x) in enumerate(zip(names, inputs)):
                (data / f"input_{i}.pb").write_bytes(proto_of(x, name).SerializeToString())
            for i, (output, y) in enumerate(zip(model.graph.output, outputs)):
                (data / f"output_{i}.pb").write_bytes(proto_of(y, output.name, output.type.HasField("optional_type")).SerializeToString())
        onnx.save(model, folder / "model.onnx")

    def fails(self, text, inputs, *reasons):
        model = parser.parse_model(HEAD + text)
        folder = self.folder / "cases/node" / f"case_{self.count}"
        self.count += 1
        data = folder / "test_data_set_0"
        data.mkdir(parents=True)
        onnx.save(model, folder / "model.onnx")
        for i, (value, x) in enumerate(zip(model.graph.input, inputs, strict=True)):
            (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(x), value.name).SerializeToString())
        (data / "output_0.pb").write_bytes(numpy_helper.from_array(np.zeros(1, np.float32), model.graph.output[0].name).SerializeToString())
        [reason] = [case["reason"] for case in self.run_cases("runtime") if case["case"].endswith(f"case_{self.count - 1}")]
        for text in reasons:
            self.assertIn(text, reason)
        return reason

    def floats(self, *dims):
        return self.random.random(dims, np.float32)

    def test_split_into_open_lengths(self):
        for axis, dims in ((0, (5, 3)), (1, (2, 6, 3)), (-1, (2, 3, 7))):
            shape = ", ".join(map(str, dims))
            whole = ", ".join("abc"[:len(dims)])
            self.case(f"g (float[{shape}] x, int64 n) => (seq(float[]) s, int64 l, float[{whole}] y) {{ s = SplitToSequence<axis = {axis}> (x, n) "
                      f"l = SequenceLength (s) y = ConcatFromSequence<axis = {axis}> (s) }}",
                      *([self.floats(*dims), np.int64(n)] for n in (1, 2, 3, 9)))
        self.case("g (float[n, 3] x) => (seq(float[]) s, float[m, n] y) { s = SplitToSequence<axis = 0, keepdims = 0> (x) "
                  "y = ConcatFromSequence<axis = 1, new_axis = 1> (s) }", [self.floats(4, 3)], [self.floats(1, 3)])
        self.case("g (float[2, 6] x, int64[k] n) => (seq(float[]) s) { s = SplitToSequence<axis = 1> (x, n) }",
                  [self.floats(2, 6), np.array([1, 5])], [self.floats(2, 6), np.array([2, 0, 3, 1])])
        self.all_pass(*WAYS)

    LOOP = """g (int64 n, float[5] x) => (seq(float[]) s, int64 l) {
        one = Constant<value_int = 1> () zero = Constant<value_ints = [0]> () e = SequenceEmpty ()
        s = Loop (n, , e) <body = b (int64 i, bool c, seq(float[]) v) => (bool d, seq(float[]) w) {
            d = Identity (c) j = Add (i, one) k = Unsqueeze (j, zero) p = Slice (x, zero, k) w = SequenceInsert (v, p)
        }>
        l = SequenceLength (s)
    }"""

    def test_loops(self):
        self.case(self.LOOP, *([np.int64(n), self.floats(5)] for n in (3, 1, 5)))
        # What a condition of the body ends, and positions from either end.
        self.case("""g (float[5] x, int64 m) => (float[a] y, float[b] z, seq(float[]) t) {
            zero = Constant<value_int = 0> () one = Constant<value_int = 1> () minus = Constant<value_int = -1> ()
            true = Constant<value = bool {1}> () e = SequenceEmpty () axes = Constant<value_ints = [0]> ()
            s = Loop (, true, e) <body = b (int64 i, bool c, seq(float[]) v) => (bool d, seq(float[]) w) {
                j = Add (i, one) k = Unsqueeze (j, axes) p = Slice (x, axes, k) w = SequenceInsert (v, p, zero)
                l = SequenceLength (w) d = Less (l, m)
            }>
            y = SequenceAt (s, zero) z = SequenceAt (s, minus) u = SequenceErase (s, minus) t = SequenceInsert (u, x, minus)
        }""", [self.floats(5), np.int64(4)], [self.floats(5), np.int64(2)])
        # A queue: what is taken from the front and put at the end.
        self.case("""g (float[n, 2] x, int64 m) => (float[k, 2] y, float[m_, 2] stacked) {
            zero = Constant<value_int = 0> ()
            s = SplitToSequence<axis = 0> (x)
            t, stacked_ = Loop (m, , s) <body = b (int64 i, bool c, seq(float[]) v) => (bool d, seq(float[]) w, float[1, 2] f) {
                d = Identity (c) f = SequenceAt (v, zero) u = SequenceErase (v, zero) g2 = Add (f, f) w = SequenceInsert (u, g2)
            }>
            y = ConcatFromSequence<axis = 0> (t)
            axes = Constant<value_ints = [1]> () stacked = Squeeze (stacked_, axes)
        }""", [self.floats(4, 2), np.int64(3)], [self.floats(2, 2), np.int64(5)])
        # None is put into it, and what is none in some rounds.
        self.case("""g (int64 n, float[5] x) => (int64 l, float[2] y) {
            e = SequenceEmpty () one = Constant<value_int = 1> () begin = Constant<value_floats = [0.0, 0.0]> () two = Constant<value_int = 2> ()
            s, y = Loop (n, , e, begin) <body = b (int64 i, bool c, seq(float[]) v, float[2] z) => (bool d, seq(float[]) w, float[2] q) {
                d = Identity (c) w = Identity (v) rest = Mod (i, two) odd = Cast<to = 9> (rest)
                o = If (odd) <then_branch = t () => (optional(seq(float[])) a) { p = SplitToSequence (x, two) a = Optional (p) },
                              else_branch = f () => (optional(seq(float[])) b2) { b2 = Optional<type = seq(float[])> () }>
                h = OptionalHasElement (o)
                q = If (h) <then_branch = t2 () => (float[2] a3) { u = OptionalGetElement (o) a2 = SequenceAt (u, one) a3 = Add (a2, z) },
                            else_branch = f2 () => (float[2] b3) { b3 = Neg (z) }>
            }>
            l = SequenceLength (s)
        }""", [np.int64(3), self.floats(5)], [np.int64(1), self.floats(5)], [np.int64(4), self.floats(5)])
        self.all_pass(*WAYS)

    def test_loops_that_begin_empty_and_read_what_they_put_in(self):
        text = """g (int64 n, float[2, 5] x) => (seq(float[]) s) {
            e = SequenceEmpty () zero = Constant<value_int = 0> () minus = Constant<value_int = -1> ()
            s = Loop (n, , e) <body = b (int64 i, bool c, seq(float[%s]) v) => (bool d, seq(float[%s]) w) {
                d = Identity (c) later = Greater (i, zero)
                p = If (later) <then_branch = t () => (float[2, 5] a) { a0 = SequenceAt (v, minus) a = %s (a0) },
                                else_branch = f () => (float[2, 5] b2) { b2 = Neg (x) }>
                w = SequenceInsert (v, p)
            }>
        }"""
        runs = [np.int64(3), self.floats(2, 5)], [np.int64(1), self.floats(2, 5)]
        self.case(text % ("", "", "Exp"), *runs)
        self.case(text % ("2, 5", "2, 5", "Softmax"), *runs)
        self.case(text % ("m", "m", "Exp"), *runs)  # a rank that it does not have
        self.case(text % ("", "", "Softmax"), *runs)  # what scalars do not have
        self.all_pass(*WAYS)

    def test_loop_of_an_empty_sequence_alone(self):
        self.case("""g (int64 n) => (int64 l) {
            e = SequenceEmpty () s = Loop (n, , e) <body = b (int64 i, bool c, seq(float[]) v) => (bool d, seq(float[]) w) {
                d = Identity (c) w = Identity (v)
            }>
            l = SequenceLength (s)
        }""", [np.int64(3)], [np.int64(0)])
        self.all_pass(*WAYS)

    def test_undeclared_types(self):
        x = self.floats(3)
        self.case("""g (bool q, float[3] x) => (int64 l, float[k] y) {
            s, y = If (q) <then_branch = t () => (seq(float[]) a, float[k1] a2) { a = SequenceConstruct (x, x) a2 = Neg (x) },
                           else_branch = f () => (seq(float[]) b, float[k2] b2) { b = SequenceConstruct (x) b2 = Exp (x) }>
            l = SequenceLength (s)
        }""", [np.array(True), x], [np.array(False), x], undeclared=True)
        for op, dtype in (("Add", "float"), ("Equal", "bool")):
            self.case(f"""g (float[6] x, int64 n) => (seq({dtype}[]) t) {{
                s = SplitToSequence<axis = 0> (x, n)
                t = SequenceMap (s) <body = b (float[r] e) => ({dtype}[r] o) {{ o = {op} (e, e) }}>
            }}""", [self.floats(6), np.int64(2)], [self.floats(6), np.int64(6)], undeclared=True)
        x = strings("a", "été", "", "bcd")
        self.case("""g (string[4] x, int64 n) => (seq(string[]) t) {
            s = SplitToSequence<axis = 0> (x, n)
            t = SequenceMap (s) <body = b (string[r] e) => (string[r] o) { o = StringConcat (e, e) }>
        }""", [x, np.int64(2)], [x, np.int64(3)], undeclared=True)
        self.all_pass(*WAYS)

    def test_branches(self):
        text = """g (bool c, float[3] x) => (seq(float[]) s, float[k] y) {
            s = If (c) <then_branch = t () => (seq(float[]) a) { a = SequenceConstruct (x, x) },
                        else_branch = e () => (seq(float[]) b) { b = SequenceConstruct (x) }>
            l = SequenceLength (s) one = Constant<value_int = 1> () minus = Constant<value_int = -1> () q = Greater (l, one)
            y = If (q) <then_branch = t2 () => (float[k1] a2) { a2 = SequenceAt (s, one) },
                        else_branch = e2 () => (float[k2] b2) { b2 = Neg (x) }>
        }"""
        self.case(text, [np.array(True), self.floats(3)], [np.array(False), self.floats(3)])
        self.case("""g (bool c, float[3] x) => (float[k] y) {
            o = If (c) <then_branch = t () => (optional(float[3]) a) { a = Optional (x) },
                        else_branch = e () => (optional(float[3]) b) { b = Optional<type = float[3]> () }>
            h = OptionalHasElement (o)
            y = If (h) <then_branch = t2 () => (float[3] a2) { a2 = OptionalGetElement (o) },
                        else_branch = e2 () => (float[3] b2) { b2 = Neg (x) }>
        }""", [np.array(True), self.floats(3)], [np.array(False), self.floats(3)])
        self.all_pass(*WAYS)

    def test_optional_outputs(self):
        self.case("""g (bool c, float[3] x) => (optional(float[3]) y, optional(seq(float[])) s) {
            y = If (c) <then_branch = t () => (optional(float[3]) a) { a = Optional (x) },
                        else_branch = e () => (optional(float[3]) b) { b = Optional<type = float[3]> () }>
            s = If (c) <then_branch = t2 () => (optional(seq(float[])) a2) { a2 = Optional<type = seq(float[])> () },
                        else_branch = e2 () => (optional(seq(float[])) b2) { p = SequenceConstruct (x, x) b2 = Optional (p) }>
        }""", [np.array(True), self.floats(3)], [np.array(False), self.floats(3)])
        # Two names of one.
        self.case("""g (bool c, float[3] x) => (optional(float[3]) y, optional(float[3]) z, optional(seq(float[])) s, optional(seq(float[])) t) {
            y = If (c) <then_branch = t () => (optional(float[3]) a) { a = Optional (x) },
                        else_branch = e () => (optional(float[3]) b) { b = Optional<type = float[3]> () }>
            z = Identity (y)
            s = If (c) <then_branch = t2 () => (optional(seq(float[])) a2) { a2 = Optional<type = seq(float[])> () },
                        else_branch = e2 () => (optional(seq(float[])) b2) { p = SequenceConstruct (x, x) b2 = Optional (p) }>
            t = Identity (s)
        }""", [np.array(True), self.floats(3)], [np.array(False), self.floats(3)])
        # An engine with c as a constant knows what is there, and tells nothing of what is not.
        self.all_pass(*(way for way in WAYS if way[0] != "frozen"))

    def test_map(self):
        self.case("""g (float[6, 2] x, int64 n, float[2] k) => (seq(float[]) t, float[a, 2] y) {
            s = SplitToSequence<axis = 0> (x, n)
            t = SequenceMap (s, k) <body = b (float[r, 2] e, float[2] f) => (float[r, 2] o) { p = Mul (e, f) o = Add (p, p) }>
            y = ConcatFromSequence<axis = 0> (t)
        }""", *([self.floats(6, 2), np.int64(n), self.floats(2)] for n in (1, 4, 6)))
        self.all_pass(*WAYS)

    def test_strings(self):
        x = strings("a", "été", "", "bcd")
        # Of known length.
        self.case("""g (string[4] x, int64 p) => (seq(string[]) s, string[k] y, string[m] z) {
            s1 = SplitToSequence<axis = 0> (x) w = Constant<value_strings = ["longer", "q"]> () s = SequenceInsert (s1, w)
            y = SequenceAt (s, p) z = ConcatFromSequence<axis = 0> (s)
        }""", [x, np.int64(1)], [x, np.int64(-1)])
        self.case("""g (seq(string[k]) q, int64 n) => (seq(string[]) s, string[m] y) {
            s = Loop (n, , q) <body = b (int64 i, bool c, seq(string[]) v) => (bool d, seq(string[]) w) {
                d = Identity (c) zero = Constant<value_int = 0> () f = SequenceAt (v, zero) g2 = StringConcat (f, f) w = SequenceInsert (v, g2, zero)
            }>
            y = ConcatFromSequence<axis = 0> (s)
        }""", [[x, x[1:3]], np.int64(2)], [[x, x[1:3]], np.int64(1)])
        # More dims than others; what is copied into a sequence where it is captured.
        self.case("""g (string[4] x, int64 n) => (seq(string[]) s, int64 l) {
            one = Constant<value_ints = [2, 2]> () r = Reshape (x, one) e = SequenceConstruct (x)
            s = Loop (n, , e) <body = b (int64 i, bool c, seq(string[]) v) => (bool d, seq(string[]) w) {
                d = Identity (c) w = SequenceInsert (v, r)
            }>
            l = SequenceLength (s)
        }""", [x, np.int64(1)], [x, np.int64(2)])
        self.case("""g (string[4] x, int64 n) => (seq(string[]) s, string[m] z, int64 l) {
            s = SplitToSequence<axis = 0> (x, n) z = ConcatFromSequence<axis = 0> (s) l = SequenceLength (s)
        }""", [x, np.int64(1)], [x, np.int64(3)])
        self.case("""g (string[4] x, int64 n) => (string[4] y) {
            y = Loop (n, , x) <body = b (int64 i, bool c, string[4] v) => (bool d, string[4] w) {
                d = Identity (c) w = StringConcat (v, x)
            }>
        }""", [x, np.int64(1)], [x, np.int64(3)])
        self.case("""g (string[n] x, bool c) => (string[m] y) {
            y = If (c) <then_branch = t () => (string[m1] a) { w = Constant<value_strings = ["longer than all"]> () a = Concat<axis = 0> (x, w) },
                        else_branch = e () => (string[m2] b) { b = Identity (x) }>
        }""", [x, np.array(True)], [x, np.array(False)])
        self.case("""g (string[4] x, int64 n) => (seq(string[]) s, string[m] y) {
            e = SequenceEmpty<dtype = 8> ()
            s = Loop (n, , e) <body = b (int64 i, bool c, seq(string[]) v) => (bool d, seq(string[]) w) {
                d = Identity (c) f = Gather (x, i) g2 = StringConcat (f, f) axes = Constant<value_ints = [0]> ()
                h = Unsqueeze (g2, axes) w = SequenceInsert (v, h)
            }>
            y = ConcatFromSequence<axis = 0> (s)
        }""", [x, np.int64(2)], [x, np.int64(4)])
        self.all_pass(*WAYS)

    def test_lengths_after_positions(self):
        count = "g (float[n, 2] x, int64 p) => (int64 l) { s = SplitToSequence<axis = 0> (x) t = %s l = SequenceLength (t) }"
        self.case(count % "SequenceInsert (s, x, p)", *([self.floats(3, 2), np.int64(p)] for p in (3, 0, -3)))
        self.case(count % "SequenceErase (s, p)", *([self.floats(3, 2), np.int64(p)] for p in (2, 0, -3)))
        self.all_pass(*WAYS)
        for op, positions in (("SequenceInsert (s, x, p)", (4, 99, -4)), ("SequenceErase (s, p)", (3, 4, 99, -4))):
            for position in positions:
                self.fails(count % op, [self.floats(3, 2), np.int64(position)], "run:", "gather")

    def test_lengths_after_positions_in_known_lengths(self):
        count = "g (float[3, 2] x, int64 p) => (int64 l) { s = SplitToSequence<axis = 0> (x) t = %s l = SequenceLength (%s) }"
        renewed = """g (float[1, 2] x, int64 p) => (float[1, 2] y) {
            s = SplitToSequence<axis = 0> (x) t = SequenceErase (s, p) u = SequenceInsert (t, x) y = ConcatFromSequence<axis = 0> (u)
        }"""
        insert, erase = count % ("SequenceInsert (s, x, p)", "t"), count % ("SequenceErase (s, p)", "t")
        twice = count % ("SequenceErase (s, p) u = SequenceInsert (t, x)", "u")
        self.case(insert, *([self.floats(3, 2), np.int64(p)] for p in (3, 0, -3)))
        for text in (erase, twice):
            self.case(text, *([self.floats(3, 2), np.int64(p)] for p in (2, 0, -3)))
        self.case(renewed, *([self.floats(1, 2), np.int64(p)] for p in (0, -1)))
        self.all_pass(*WAYS)
        for text, rows, positions, name in ((insert, 3, (4, -4), "SequenceInsert_1"), (erase, 3, (3, -4), "SequenceErase_1"),
                                            (twice, 3, (99,), "SequenceErase_1"), (renewed, 1, (1, -2), "SequenceErase_1")):
            for position in positions:
                self.fails(text, [self.floats(rows, 2), np.int64(position)], "run:", "gather", name)

    def test_errors(self):
        at = "g (float[n, 2] x, int64 p) => (float[m, 2] y) { s = SplitToSequence<axis = 0> (x) y = %s }"
        for position in (3, -4):
            self.fails(at % "SequenceAt (s, p)", [self.floats(3, 2), np.int64(position)], "run:", "gather")
            self.fails(at.replace("y = %s", "t = SequenceErase (s, p) y = ConcatFromSequence<axis = 0> (t)"),
                       [self.floats(3, 2), np.int64(position)], "run:", "gather")
        self.fails("g (float[n] x, int64 p) => (seq(int64[]) s) { s = SplitToSequence<axis = 0> (x, p) }", [self.floats(3), np.int64(2)],
                   "output 's' is declared int64, but its node yields f32")
        self.fails("g (float[2] x) => (seq(string[]) s) { s = SequenceConstruct (x) }", [self.floats(2)],
                   "output 's_0' is declared string, but its node yields f32")
        self.fails("""g (bool c, float[2] x) => (optional(int64[2]) y) {
            y = If (c) <then_branch = t () => (optional(float[2]) a) { a = Optional (x) },
                        else_branch = e () => (optional(float[2]) b) { b = Optional<type = float[2]> () }>
        }""", [np.array(True), self.floats(2)], "output 'y' is declared int64, but its node yields f32")
        self.fails("g (float[2, 6] x, int64[k] n) => (float[a, b] y) { s = SplitToSequence<axis = 1> (x, n) y = ConcatFromSequence<axis = 1> (s) }",
                   [self.floats(2, 6), np.array([1, 4])], "run:", "gather")
        self.fails("g (float[2, 6] x, int64 n) => (float[a, b] y) { s = SplitToSequence<axis = 1> (x, n) y = ConcatFromSequence<axis = 1> (s) }",
                   [self.floats(2, 6), np.int64(0)], "run:", "gather")
        self.fails("""g (bool c, float[3] x) => (float[k] y) {
            o = If (c) <then_branch = t () => (optional(float[3]) a) { a = Optional (x) },
                        else_branch = e () => (optional(float[3]) b) { b = Optional<type = float[3]> () }>
            y = OptionalGetElement (o)
        }""", [np.array(False), self.floats(3)], "run:", "gather")
        self.fails("""g (bool c, float[3] x) => (float[k] y) {
            o = If (c) <then_branch = t () => (optional(float[3]) a) { a = Optional (x) },
                        else_branch = e () => (optional(float[3]) b) { b = Optional<type = float[3]> () }>
            y = Neg (o)
        }""", [np.array(False), self.floats(3)], "is an optional of which only running tells")
        self.fails("""g (bool c, float[3] x) => (float[k] y) {
            z = Constant<value_float = 1.0> () p = Constant<value_int = 0> ()
            s = If (c) <then_branch = t () => (seq(float[]) a) { a = SequenceConstruct (x, z) },
                        else_branch = e () => (seq(float[]) b) { b = SequenceConstruct (x) }>
            y = SequenceAt (s, p)
        }""", [np.array(False), self.floats(3)], "tensors of up to 1 dimensions, and only running tells")
        self.fails("""g (int64 n, float[3] x) => (seq(float[]) s) {
            e = SequenceConstruct (x)
            s = Loop (n, , e) <body = b (int64 i, bool c, seq(float[]) v) => (bool d, seq(float[]) w) {
                d = Identity (c) p = Constant<value_int = 0> () axes = Constant<value_ints = [0]> ()
                f = ConcatFromSequence<axis = 0, new_axis = 1> (v) w = SequenceInsert (v, f)
            }>
        }""", [np.int64(2), self.floats(3)], "Loop")
        # What no rank mends is told once, of the first that was tried.
        reason = self.fails("""g (int64 n, float[3] x) => (seq(float[]) s) {
            e = SequenceEmpty () zero = Constant<value_int = 0> ()
            s = Loop (n, , e) <body = b (int64 i, bool c, seq(float[]) v) => (bool d, seq(float[]) w) {
                d = Identity (c) f = SequenceAt (v, zero) t = Softmax<axis = 9> (f) w = SequenceInsert (v, t)
            }>
        }""", [np.int64(2), self.floats(3)], "Softmax", "axis 9 is outside")
        self.assertEqual(reason.count("axis 9"), 1, reason)


if __name__ == "__main__":
    unittest.main()
