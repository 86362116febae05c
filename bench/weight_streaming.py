#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the share of full speed against the budget of weights on the device, which `tools/gpu_check/compatible.py streaming` has measured.

  .venv/bin/python bench/weight_streaming.py PICTURE.png streaming.json [more.json]
"""
import argparse
import json
import pathlib

from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 800, 420, 70, 40, 60, 150
COLORS = [(30, 100, 200), (200, 90, 20), (20, 140, 60), (120, 60, 160)]
BLACK, GRID = (0, 0, 0), (225, 225, 225)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument("measured", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    rows = [row for path in arguments.measured for row in json.loads(path.read_text())["rows"]]
    image = Image.new("RGB", (WIDTH, HEIGHT), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default()

    def at(share, speed):
        return LEFT + (WIDTH - LEFT - RIGHT) * share / 100, TOP + (HEIGHT - TOP - BOTTOM) * (1 - speed)

    draw.text((LEFT, 12), "share of full speed, by the share of the weights that the budget leaves on the device", fill=BLACK, font=font)
    for percent in range(0, 101, 20):
        draw.line((*at(0, percent / 100), *at(100, percent / 100)), fill=GRID)
        draw.line((*at(percent, 0), *at(percent, 1)), fill=GRID)
        x, y = at(0, percent / 100)
        draw.text((x - 40, y - 6), f"{percent} %", fill=BLACK, font=font)
        x, y = at(percent, 0)
        draw.text((x - 10, y + 8), f"{percent} %", fill=BLACK, font=font)
    for color, batch in zip(COLORS, sorted({row["batch"] for row in rows})):
        line = [at(row["share"], row["speed"]) for row in sorted(rows, key=lambda row: row["share"]) if row["batch"] == batch]
        draw.line(line, fill=color, width=2)
        for x, y in line:
            draw.ellipse((x - 3, y - 3, x + 3, y + 3), fill=color)
        at_least = line[0][1]
        draw.text((WIDTH - RIGHT + 12, min(at_least, HEIGHT - BOTTOM - 12) - 6), f"{batch} rows", fill=color, font=font)
    image.save(arguments.picture)


if __name__ == "__main__":
    main()
