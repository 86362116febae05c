#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/tutorial.ipynb of docs/tutorial.md: its blocks of Python are cells of code, what is between them cells of text.

  notebook.py [--write]

Without --write the notebook is compared with what it would be.
"""
import argparse
import json
import pathlib
import re
import sys

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
PAGE, NOTEBOOK = DOCS / "tutorial.md", DOCS / "tutorial.ipynb"


def cells():
    """[("markdown" or "code", text)]"""
    parts = re.split(r"^```python\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [("code" if index % 2 else "markdown", part.strip()) for index, part in enumerate(parts) if part.strip()]


def notebook():
    def cell(index, kind, text):
        made = {"cell_type": kind, "id": f"cell-{index}", "metadata": {}, "source": text.splitlines(keepends=True)}
        return made | {"execution_count": None, "outputs": []} if kind == "code" else made
    return {"cells": [cell(index, kind, text) for index, (kind, text) in enumerate(cells())],
            "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                         "language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    made = json.dumps(notebook(), indent=1) + "\n"
    if parser.parse_args().write:
        NOTEBOOK.write_text(made)
    elif not NOTEBOOK.exists() or NOTEBOOK.read_text() != made:
        sys.exit("docs/tutorial.ipynb is not what docs/tutorial.md says: tools/notebook.py --write")


if __name__ == "__main__":
    main()
