#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The main job on real data: a trained network becomes an engine and classifies handwriting that it has never seen.

Every line that starts with $ is a command that you can type yourself.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples/digits"))
import train  # noqa: E402

LATHE = pathlib.Path(os.environ.get("LATHE_BUILD_DIR", ROOT / "build"), "bin/lathe")
WORK = ROOT / "data/demo"
INK = " .:-=+*#%@"


def heading(text):
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def lathe(*arguments):
    words = [str(a.relative_to(ROOT)) if isinstance(a, pathlib.Path) else a for a in arguments]
    print("$ build/bin/lathe " + " ".join(words), flush=True)
    status = subprocess.run([LATHE, *words], cwd=ROOT).returncode
    if status:
        sys.exit(f"demo: the command ended with status {status}")


def export_images():
    """The held-out images as one array, and one of them as a picture."""
    WORK.mkdir(parents=True, exist_ok=True)
    images, labels = train.held_out()
    np.save(WORK / "images.npy", images)
    Image.fromarray((images[0, 0] * 255).round().astype(np.uint8)).save(WORK / "digit.png")
    return images, labels


def show(images, labels, guesses, count=6):
    for row in range(8):
        print("   ".join("".join(INK[int(v * 9)] * 2 for v in image[0, row]) for image in images[:count]))
    print("   ".join(f"{f'is {label}, read as {guess}':^16}" for label, guess in zip(labels[:count], guesses)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="what to build for, as --target of lathe build: cpu, cuda")
    device = parser.parse_args().device
    on_cpu = device.startswith("cpu")
    images, labels = export_images()
    engine = WORK / "digits.engine"

    heading("1. Build: the trained network becomes an engine, for batches of 1 to 512")
    lathe("build", ROOT / "examples/digits/digits.onnx", "-o", engine, "--minShapes=image:1x1x8x8",
          "--optShapes=image:1x1x8x8", "--maxShapes=image:512x1x8x8", *([] if on_cpu else [f"--target={device}"]))

    heading("2. Inspect: what was fused, and what it needs")
    lathe("inspect", engine)

    heading(f"3. Run: {len(images)} images that training never saw, in one batch; then one picture")
    lathe("run", engine, "--loadInputs=image:data/demo/images.npy", "--exportOutput", WORK / "out")
    guesses = np.load(WORK / "out/probabilities.npy").argmax(1)
    print()
    show(images, labels, guesses)
    lathe("run", engine, "--loadInputs=image:data/demo/digit.png", "--exportOutput", WORK / "one")
    picture = int(np.load(WORK / "one/probabilities.npy").argmax())
    print(f"the picture data/demo/digit.png is a {labels[0]}, read as {picture}")

    place = "one thread" if on_cpu else device
    heading(f"4. Bench: one image at a time, on {place}")
    lathe("bench", engine, "--shapes=image:1x1x8x8", "--threads=1", "--json", WORK / "bench.json")
    bench = json.loads((WORK / "bench.json").read_text())

    accuracy = (guesses == labels).mean()
    heading("Result")
    print(f"accuracy  {accuracy:.2%} of {len(labels)} held-out images\n"
          f"latency   {bench['median_ms'] * 1e3:.1f} us per image (median, batch 1, {place})\n"
          f"memory    {bench['peak_kb'] / 1024:.1f} MB at the most, the whole process")
    if accuracy < 0.97 or picture != guesses[0]:
        sys.exit("demo: the engine does not reach what the trained network does")


if __name__ == "__main__":
    main()
