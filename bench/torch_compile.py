#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times PyTorch, torch.compile's own backend and backend="lathe" beside each other, on the CPU or on a GPU.

The three take turns, so that a busy machine slows all of them; a figure is the shortest of all runs. Each model and number of
threads is a process of its own, and none compiles while another one is timed. On a GPU models are in float16, inductor's figure is the better one of its
default and of mode="reduce-overhead", which captures CUDA graphs, and a run ends when the GPU has done it. Needs what tools/exports/requirements.txt names, a C++ compiler for inductor, and the build
in LATHE_BUILD_DIR.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools" / "exports"), str(pathlib.Path(os.environ.get("LATHE_BUILD_DIR", ROOT / "build")) / "python")]
BACKENDS = ("eager", "inductor", "lathe")
WIDE = dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072)


def image(name, size=224):
    def make():
        import torch
        import torchvision
        return getattr(torchvision.models, name)(weights=None), (torch.randn(1, 3, size, size),)
    return make


def text(model, config, length=128, **settings):
    def make():
        import torch
        import transformers
        made = getattr(transformers, model)(getattr(transformers, config)(**settings, use_cache=False))
        return made, (torch.randint(0, 1000, (1, length)),)
    return make


def vision(model, config, **settings):
    def make():
        import torch
        import transformers
        return getattr(transformers, model)(getattr(transformers, config)(**settings)), (torch.randn(1, 3, 224, 224),)
    return make


MODELS = {
    "resnet18": image("resnet18"), "resnet50": image("resnet50"), "mobilenet_v2": image("mobilenet_v2"),
    "mobilenet_v3_large": image("mobilenet_v3_large"), "efficientnet_b0": image("efficientnet_b0"),
    "squeezenet1_1": image("squeezenet1_1"), "shufflenet_v2_x1_0": image("shufflenet_v2_x1_0"), "regnet_y_400mf": image("regnet_y_400mf"),
    "densenet121": image("densenet121"), "convnext_tiny": image("convnext_tiny"), "swin_t": image("swin_t"),
    "bert_base": text("BertModel", "BertConfig", **WIDE),
    "distilbert": text("DistilBertModel", "DistilBertConfig"),
    "gpt2": text("GPT2LMHeadModel", "GPT2Config"),
    "llama_160m": text("LlamaForCausalLM", "LlamaConfig", **WIDE, vocab_size=32000),
    "vit_base": vision("ViTModel", "ViTConfig", **WIDE),
}


def flat(result):
    import export
    return export.flatten(result)


def take_the_processor():
    """Real-time priority for all threads of this process, which takes root: other programs then hardly disturb."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(1))


def on_device(model, given, device):
    """The model and its inputs there."""
    import torch
    if device == "cpu":
        return model.eval(), given
    return (model.eval().to(device, torch.float16),
            tuple(x.to(device, torch.float16 if x.is_floating_point() else x.dtype) for x in given))


def finished(device, function, given):
    """The function's result, when the device has computed it."""
    import torch
    result = function(*given)
    if device != "cpu":
        torch.cuda.synchronize()
    return result


def largest_error(have, want):
    """By the largest output; of outputs that are all 0, the difference itself."""
    return max(float((a.float() - b.float()).abs().max() / (b.float().abs().max() or 1)) for a, b in zip(have, want, strict=True))


def measure(name, threads, seconds, real_time, device):
    """{"milliseconds": {backend: its shortest run}, "compiling": {backend: seconds}, "error": largest, against PyTorch's}"""
    import torch
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model, given = on_device(*MODELS[name](), device)
    functions, compiling, error = {"eager": model}, {"eager": 0.0}, 0.0
    with torch.no_grad():
        want = flat(model(*given))
        for backend in BACKENDS[1:]:
            if backend == "lathe":
                import lathe.torch  # noqa: F401
                if real_time:  # its search for kernels times them
                    take_the_processor()
            start = time.monotonic()
            functions[backend] = torch.compile(model, backend=backend)
            have = [x.clone() for x in flat(finished(device, functions[backend], given))]
            compiling[backend] = round(time.monotonic() - start, 1)
            if backend == "lathe":
                error = largest_error(have, want)
        if device != "cpu":
            functions["inductor, graphs"] = torch.compile(model, mode="reduce-overhead")
            finished(device, functions["inductor, graphs"], given)
        print("ready", flush=True)
        sys.stdin.readline()  # the machine is ours now
        shortest, until = dict.fromkeys(functions, float("inf")), time.monotonic() + seconds
        while time.monotonic() < until:
            for backend, function in functions.items():
                start = time.perf_counter()
                finished(device, function, given)
                shortest[backend] = min(shortest[backend], time.perf_counter() - start)
    shortest["inductor"] = min(shortest["inductor"], shortest.pop("inductor, graphs", float("inf")))
    return {"milliseconds": {backend: 1000 * value for backend, value in shortest.items()}, "compiling": compiling, "error": error}


class Run:
    """A process that compiles a model, says so, and is timed when it is told to go on."""

    def __init__(self, name, threads, arguments):
        self.name, self.threads = name, threads
        self.errors = tempfile.TemporaryFile("w+")
        command = [sys.executable, __file__, "--one", name, "--threads", str(threads), "--seconds", str(arguments.seconds),
                   "--device", arguments.device]
        self.process = subprocess.Popen(command + ["--real-time"] * arguments.real_time, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True)

    def is_ready(self):
        """Waits until it has compiled; False where it has failed."""
        return any(line == "ready\n" for line in self.process.stdout)

    def row(self):
        """The table's row."""
        out, _ = self.process.communicate("go\n") if self.process.poll() is None else ("", None)
        lines = [line for line in out.splitlines() if line.startswith("{")]
        if not lines:
            self.errors.seek(0)
            return f"| {self.name} | {self.threads} | failed: {' '.join(self.errors.read().split())[-300:]} |"
        found = json.loads(lines[-1])
        eager, inductor, own = (found["milliseconds"][backend] for backend in BACKENDS)
        return (f"| {self.name} | {self.threads} | {eager:.2f} | {inductor:.2f} | {own:.2f} | {eager / own:.2f} | {inductor / own:.2f} | "
                f"{found['compiling']['inductor']}, {found['compiling']['lathe']} | {found['error']:.1e} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS), help=f"of {', '.join(MODELS)}")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seconds", type=float, default=10, help="of running, for each model and number of threads")
    parser.add_argument("--jobs", type=int, default=1, help="models that compile at once; they run one after the other")
    parser.add_argument("--real-time", action="store_true", help="run at real-time priority (root)")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.threads[0], arguments.seconds, arguments.real_time, arguments.device)))
        return
    print("| model | threads | PyTorch, ms | inductor, ms | lathe, ms | PyTorch / lathe | inductor / lathe | compiling, s: inductor, lathe "
          "| error |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    wanted = [(name, threads) for name in arguments.models for threads in arguments.threads]
    for first in range(0, len(wanted), arguments.jobs):
        runs = [Run(name, threads, arguments) for name, threads in wanted[first:first + arguments.jobs]]
        for run in runs:
            run.is_ready()
        for run in runs:
            print(run.row(), flush=True)


if __name__ == "__main__":
    main()
