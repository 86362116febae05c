# SPDX-License-Identifier: Apache-2.0
"""Not run: a program that python_types_test.py has mypy check, strictly."""
import numpy as np

import lathe
from lathe import tensorrt as trt


class Recorder(trt.ILogger):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[tuple[trt.ILogger.Severity, str]] = []

    def log(self, severity: trt.ILogger.Severity, msg: str) -> None:
        self.messages.append((severity, msg))


class Monitor(trt.IProgressMonitor):
    def step_complete(self, phase_name: str, step: int) -> bool:
        return True


def network() -> bytes:
    builder = trt.Builder(Recorder())
    definition = builder.create_network(0)
    x = definition.add_input('x', trt.float32, (2, -1))
    ones = definition.add_constant((1, 3), np.ones((1, 3), np.float32))
    total = definition.add_elementwise(x, ones.get_output(0), trt.ElementWiseOperation.SUM)
    definition.mark_output(total.get_output(0))
    names: list[str] = [layer.name for layer in definition]
    kind: trt.LayerType = definition.get_layer(0).type
    print(names, kind, trt.float32.itemsize)
    config = builder.create_builder_config()
    config.progress_monitor = Monitor()
    profile = builder.create_optimization_profile()
    profile.set_shape('x', (2, 1), (2, 2), [2, 4])
    config.add_optimization_profile(profile)
    with builder.build_serialized_network(definition, config) as plan:
        return bytes(plan)


def run() -> None:
    engine = lathe.build('model.onnx', shapes={'x': ((1, 4), (2, 4), (8, 4))})
    y = engine(np.ones((3, 4), np.float32))
    bound = engine.bind({'x': np.ones((3, 4), np.float32), 'y': y})
    bound()
    outputs = engine.run({'x': y})
    print(outputs['y'].shape, lathe.load('model.engine').inputs['x'][1])
