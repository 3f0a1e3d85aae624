"""The flags that making the house model and measuring it have in common."""

import argparse
from pathlib import Path


def add_run_options(
    parser: argparse.ArgumentParser, jobs: int, *, only: str, out: str, again: str, listing: str
) -> None:
    """`jobs` is the default of that flag; the sentences say what the others mean where they are used."""
    parser.add_argument("--only", type=lambda text: text.split(","), help=only)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--jobs", type=int, default=jobs, help="fine-tunings side by side")
    parser.add_argument("--out", type=Path, help=out)
    parser.add_argument("--again", action="store_true", help=again)
    parser.add_argument("--commit", help="named in the file where git is not there to tell")
    parser.add_argument("--tiny", action="store_true", help="a few steps each: does it run")
    parser.add_argument("--list", action="store_true", help=listing)
