# SPDX-License-Identifier: Apache-2.0
"""CUDA's runtime on the host's memory, for programs that allocate by it what engines for the CPU read and write.

    LD_LIBRARY_PATH=$(python -m lathe.host_cuda) polygraphy run model.onnx --trt --onnxrt

Libraries of this name that GPUs are used by are hidden from such programs: say it for single commands only.
"""
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent
