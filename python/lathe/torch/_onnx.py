# SPDX-License-Identifier: Apache-2.0
"""Exported programs as ONNX. What PyTorch's exporter does not show of itself is asked for here alone."""
import contextlib
import logging
import re
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from onnx_ir.passes import PassResult, common
from onnxscript import opset18
from torch.fx import Node
from torch.onnx._internal.exporter import _fx_passes, _registration


class Refused(Exception):
    """A program cannot be written as ONNX. `op` is the operator to blame, as 'aten.cumprod.default', or ''."""

    def __init__(self, op: str, why: str) -> None:
        super().__init__(why)
        self.op = op

    def described(self) -> str:
        return f'{self.op}: {self}' if self.op else str(self)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Exports warn of matters of their own, which the user of a compilation can do nothing about."""
    loggers = [logging.getLogger(name) for name in ('torch.onnx', 'torch.export', 'onnxscript', 'onnx_ir')]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)


@contextlib.contextmanager
def _unmerged() -> Iterator[None]:
    """Weights that happen to be equal, such as biases and means that are 0 before a training, stay apart."""
    merge = common.DeduplicateInitializersPass.call
    common.DeduplicateInitializersPass.call = lambda self, model: PassResult(model, modified=False)
    try:
        yield
    finally:
        common.DeduplicateInitializersPass.call = merge


def _copied(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """aten.copy. PyTorch's own rule leaves `src` as small as it is. That of PyTorch 2.11 gives `src` itself where the types are the
    same, and exports fail of a weight that thereby takes the name of the copy."""
    return opset18.Expand(opset18.CastLike(src, self), opset18.Shape(self))


def to_onnx(program: torch.export.ExportedProgram, for_refit: bool = False) -> Any:
    """The ONNX program; its `exported_program` is functional, of operators that the exporter has rules for. for_refit: whether its
    weights may be given other values. Raises Refused."""
    try:
        with quiet(), _unmerged() if for_refit else contextlib.nullcontext():
            return torch.onnx.export(program, dynamo=True, verbose=False,
                                     custom_translation_table={torch.ops.aten.copy.default: _copied})
    except torch.onnx.OnnxExporterError as error:
        chain: list[BaseException] = [error]
        while chain[-1].__cause__ is not None:
            chain.append(chain[-1].__cause__)
        blamed = re.search(r'target=torch\.ops\.([\w.]+)', ' '.join(map(str, chain)))
        why = str(chain[-1]).strip().splitlines()
        raise Refused(blamed[1] if blamed else '', why[0] if why else type(chain[-1]).__name__) from None


_registries: list[Any] = []


def _registry() -> Any:
    if not _registries:
        _registries.append(_registration.ONNXRegistry.from_torchlib())
    return _registries[0]


def decomposed(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program in operators that the exporter has rules for, as far as they can be taken apart into those."""
    with quiet():
        return _fx_passes.decompose_with_registry(program, _registry())


def has_rule(node: Node) -> bool:
    """Whether the exporter has a rule for the operator of a call."""
    return callable(node.target) and bool(_registry().is_registered(node.target))


__all__ = ['Refused', 'decomposed', 'has_rule', 'quiet', 'to_onnx']
