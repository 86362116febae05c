# SPDX-License-Identifier: Apache-2.0
"""Not run: each line that says so is a mistake of types that mypy and pyright have to find, which shows that the stubs say something."""
import lathe
from lathe import tensorrt as trt

trt.Builder('no logger')  # mistake
trt.Dims('sizes')  # mistake
trt.Logger(3)  # mistake
lathe.build('model.onnx', shape={})  # mistake


def adds(network: trt.INetworkDefinition) -> None:
    network.add_input('x', 'float32', (1, 2))  # mistake
    network.add_no_such_layer()  # mistake


class Monitor(trt.IProgressMonitor):
    def step_complete(self, phase_name: str, step: str) -> bool:  # mistake
        return True
