#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Text in and out: a small decoder is trained, compiled and continues a text; sentences are ranked by meaning.

Every line that starts with $ is a command that you can type yourself. Runs with the Python of `make demo-text`.
"""
import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("LATHE_BUILD_DIR", ROOT / "build"))
PROMPT = "In the beginning God "


def run(*words, **variables):
    def shown(word):
        path = pathlib.Path(word)
        return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else repr(word) if " " in word else word
    settings = "".join(f"{name}={shown(value)} " for name, value in variables.items())
    print(f"\n$ {settings}" + " ".join(shown(str(word)) for word in words), flush=True)
    status = subprocess.run([str(word) for word in words], cwd=ROOT, env=os.environ | variables).returncode
    if status:
        sys.exit(f"demo-text: the command ended with status {status}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="what the decoder is built for: cpu, cuda")
    parser.add_argument("--minutes", type=float, default=8, help="how long it is trained, unless it has been (8)")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "data/demo-text", help="where its files go")
    options = parser.parse_args()
    folder = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    weights, model = folder / "weights.npz", folder / "decoder.onnx"
    if not weights.exists():
        run(sys.executable, ROOT / "examples/llm/train.py", weights, f"--minutes={options.minutes}")
    run(sys.executable, ROOT / "examples/llm/decoder.py", model, f"--weights={weights}")
    run(BUILD / "bin/example_llm", model, f"--prompt={PROMPT}", "--tokens=400", "--temperature=0.7",
        f"--target={options.device}", f"--plan={folder / f'decoder.{options.device}.plan'}")
    run(sys.executable, ROOT / "examples/sentences/sentences.py", f"--folder={folder}",
        PYTHONPATH=str(BUILD / "python"))


if __name__ == "__main__":
    main()
