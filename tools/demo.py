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

LATHE = pathlib.Path(os.environ.get("LATHE_BUILD_DIR", ROOT / "build"), "bin/lathe").absolute()
INK = " .:-=+*#%@"


def heading(text):
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def shown(path):
    """As one types it in the root of the repository."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def lathe(*arguments):
    words = [shown(a) if isinstance(a, pathlib.Path) else a for a in arguments]
    print(f"$ {shown(LATHE)} " + " ".join(words), flush=True)
    status = subprocess.run([LATHE, *words], cwd=ROOT).returncode
    if status:
        sys.exit(f"demo: the command ended with status {status}")


def export_images(work):
    """The held-out images as one array, and one of them as a picture."""
    work.mkdir(parents=True, exist_ok=True)
    images, labels = train.held_out()
    np.save(work / "images.npy", images)
    Image.fromarray((images[0, 0] * 255).round().astype(np.uint8)).save(work / "digit.png")
    return images, labels


def show(images, labels, guesses, count=6):
    for row in range(8):
        print("   ".join("".join(INK[int(v * 9)] * 2 for v in image[0, row]) for image in images[:count]))
    print("   ".join(f"{f'is {label}, read as {guess}':^16}" for label, guess in zip(labels[:count], guesses)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="what to build for, as --target of lathe build: cpu, cuda")
    parser.add_argument("--most", type=int, default=512, help="images of a batch that the engine is built for")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "data/demo", help="where its files go")
    arguments = parser.parse_args()
    device, work = arguments.device, arguments.folder.absolute()
    on_cpu = device.startswith("cpu")
    images, labels = export_images(work)
    engine = work / "digits.engine"

    heading(f"1. Build: the trained network becomes an engine, for batches of 1 to {arguments.most}")
    lathe("build", ROOT / "examples/digits/digits.onnx", "-o", engine, "--minShapes=image:1x1x8x8",
          "--optShapes=image:1x1x8x8", f"--maxShapes=image:{arguments.most}x1x8x8", *([] if on_cpu else [f"--target={device}"]))

    heading("2. Inspect: what was fused, and what it needs")
    lathe("inspect", engine)

    heading(f"3. Run: {len(images)} images that training never saw, in one batch; then one picture")
    lathe("run", engine, f"--loadInputs=image:{shown(work / 'images.npy')}", "--exportOutput", work / "out")
    guesses = np.load(work / "out/probabilities.npy").argmax(1)
    print()
    show(images, labels, guesses)
    lathe("run", engine, f"--loadInputs=image:{shown(work / 'digit.png')}", "--exportOutput", work / "one")
    picture = int(np.load(work / "one/probabilities.npy").argmax())
    print(f"the picture {shown(work / 'digit.png')} is a {labels[0]}, read as {picture}")

    place = "one thread" if on_cpu else device
    heading(f"4. Bench: one image at a time, on {place}")
    lathe("bench", engine, "--shapes=image:1x1x8x8", "--threads=1", "--json", work / "bench.json")
    bench = json.loads((work / "bench.json").read_text())

    accuracy = (guesses == labels).mean()
    heading("Result")
    print(f"accuracy  {accuracy:.2%} of {len(labels)} held-out images\n"
          f"latency   {bench['median_ms'] * 1e3:.1f} us per image (median, batch 1, {place})\n"
          f"memory    {bench['peak_kb'] / 1024:.1f} MB at the most, the whole process")
    if accuracy < 0.97 or picture != guesses[0]:
        sys.exit("demo: the engine does not reach what the trained network does")


if __name__ == "__main__":
    main()
