#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what bench_size_stream has measured, and prints it as a table.

  .venv/bin/python bench/size_stream.py PICTURE.png none.json lazy.json eager.json fixed_64.json

Behind each stream stands how long its runs of about the length of each engine of one length take, as a multiple of
that engine's.
"""
import argparse
import json
import math
import pathlib
import statistics

from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 1000, 300, 70, 30, 30, 20
COLORS = {"none": (120, 120, 120), "lazy": (30, 100, 200), "eager": (200, 90, 20), "fixed": (20, 140, 60)}
TICKS = [m * 10 ** e for e in range(-2, 6) for m in (1, 2, 5)]


def median(values):
    return statistics.median(values) if values else float("nan")


def per_length(runs):
    """The median of each length's runs, summed: what a pass over all lengths takes."""
    by_length = {}
    for _, length, ms in runs:
        by_length.setdefault(length, []).append(ms)
    return sum(median(values) for values in by_length.values())


def settled(measured):
    """The last third of the runs, by when they began."""
    runs = measured["runs"]
    return [run for run in runs if run[0] > runs[-1][0] * 2 / 3]


def ratio(measured, fixed):
    """Of the settled runs of about a length to those of the engine of that length."""
    wanted = fixed["runs"][0][1]
    near = [ms for _, length, ms in settled(measured) if abs(length - wanted) <= 4]
    return median(near) / median([ms for _, _, ms in settled(fixed)])


def row(name, measured, fixed):
    runs = measured["runs"]
    latencies = [ms for _, _, ms in runs]
    usual = median(latencies)
    ratios = "".join(f" {ratio(measured, one):.2f} |" for one in fixed)
    return (f"| {name} | {len(runs)} | {usual:.3f} | {max(latencies):.3f} | {max(latencies) / usual:.2f} | "
            f"{sum(ms > 3 * usual for ms in latencies)} | {per_length(runs[:measured['lengths']]):.1f} | "
            f"{per_length(settled(measured)):.1f} | {measured['compiled']} |{ratios}")


def panel(draw, font, top, name, measured, most_ms, least_ms, seconds):
    """Each run is a dot: when it began, and how long it took, on a logarithmic axis."""
    inner = HEIGHT - TOP - BOTTOM

    def y(ms):
        return top + TOP + inner * (1 - math.log(ms / least_ms) / math.log(most_ms / least_ms))

    draw.text((LEFT, top + 8), f"{name}: milliseconds of each run, by the second in which it began", fill=(0, 0, 0), font=font)
    for tick in TICKS:
        if least_ms <= tick <= most_ms:
            draw.line((LEFT, y(tick), WIDTH - RIGHT, y(tick)), fill=(225, 225, 225))
            draw.text((8, y(tick) - 6), f"{tick:g}", fill=(0, 0, 0), font=font)
    for at, _, ms in measured["runs"]:
        x = LEFT + (WIDTH - LEFT - RIGHT) * at / seconds
        draw.point((x, y(ms)), fill=COLORS.get(name, (0, 0, 0)))
        draw.point((x + 1, y(ms)), fill=COLORS.get(name, (0, 0, 0)))
    for k in range(6):
        x = LEFT + (WIDTH - LEFT - RIGHT) * k / 5
        draw.text((x - 8, top + HEIGHT - BOTTOM + 6), f"{seconds * k / 5:.1f} s", fill=(0, 0, 0), font=font)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument("measured", type=pathlib.Path, nargs="+", help="JSON of bench_size_stream")
    arguments = parser.parse_args()
    all_measured = [(path.stem, json.loads(path.read_text())) for path in arguments.measured]
    print(f"{all_measured[0][1]['device']}\n")
    fixed = [measured for _, measured in all_measured if measured["strategy"] == "fixed"]
    columns = ["kernels", "runs", "median ms", "worst ms", "worst / median", "over 3 medians", "first pass ms",
               "last passes ms", "compiled"] + [f"{one['runs'][0][1]} tokens" for one in fixed]
    print("| " + " | ".join(columns) + " |")
    print("| --- " * len(columns) + "|")
    for name, measured in all_measured:
        print(row(name, measured, fixed))
    latencies = [ms for _, measured in all_measured for _, _, ms in measured["runs"]]
    image = Image.new("RGB", (WIDTH, HEIGHT * len(all_measured)), (255, 255, 255))
    draw, font = ImageDraw.Draw(image), ImageFont.load_default()
    for i, (name, measured) in enumerate(all_measured):
        panel(draw, font, i * HEIGHT, name, measured, max(latencies) * 1.2, min(latencies) / 1.2,
              max(measured["runs"][-1][0], 1e-3))
    image.save(arguments.picture, optimize=True)


if __name__ == "__main__":
    main()
