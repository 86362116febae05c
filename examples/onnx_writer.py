# SPDX-License-Identifier: Apache-2.0
"""Nodes and constants of an ONNX graph as a script adds them; each result is named by its operator and a number."""
import numpy as np
from onnx import helper, numpy_helper


class Writer:
    def __init__(self):
        self.nodes, self.constants = [], {}

    def constant(self, name, array):
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.array(array, order="C"), name)
        return name

    def ints(self, *values):
        return self.constant("ints_" + "_".join(str(v).replace("-", "m") for v in values), np.array(values, np.int64))

    def add(self, op, *inputs, to=None, **attributes):
        to = to or f"{op}.{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [to], name=to, **attributes))
        return to

    def cast(self, value, kind, to=None):
        """To an element type of ONNX: a method of its own, for the attribute is called `to`, too."""
        to = to or f"Cast.{len(self.nodes)}"
        self.nodes.append(helper.make_node("Cast", [value], [to], name=to, to=kind))
        return to
