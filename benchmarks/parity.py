"""How far each family's hidden states are from the reference implementation's, on any device and in any precision.

    python benchmarks/parity.py --device cuda

Each row: the largest difference from the reference's fp32 states on the CPU, relative to their scale, for bertsmith and
for the reference itself on that device. Rows of 3 to 400 tokens, every parameter random; heads of size 16, so that the
variable-length kernels of half precision are used. Exits with 1 if a figure of ours is worse than 1e-4 in fp32, or than
twice the reference's own in half precision.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from oracle import FAMILIES, as_batch, distance, make_reference, make_rows, pad, run_reference, unpad

from bertsmith.models.checkpoint import load_checkpoint

LENGTHS = (130, 3, 400, 57, 57, 260, 12)


def sizes(family: str) -> dict[str, int]:
    wide = {"dim": 64} if family == "distilbert" else {"hidden_size": 64}
    return {**wide, "max_position_embeddings": 514}


@torch.inference_mode()
def measure(family: str, device: str, dtype: torch.dtype) -> tuple[float, float]:
    reference = make_reference(family, "", **sizes(family))
    ids, segments = make_rows(reference, LENGTHS)
    expected = unpad(run_reference(reference, ids, segments).last_hidden_state, ids)
    with tempfile.TemporaryDirectory() as folder:
        reference.save_pretrained(folder)
        network = load_checkpoint(Path(folder), dtype).network.to(device)
    batch = as_batch(ids, segments)
    for name in ("ids", "segments", "positions"):
        setattr(batch, name, getattr(batch, name).to(device))
    ours = network(batch).float().cpu()
    given = {"input_ids": pad(ids, reference.config.pad_token_id, "right").to(device)}
    given["attention_mask"] = pad([torch.ones_like(row) for row in ids], 0, "right").to(device)
    if getattr(reference.config, "type_vocab_size", 0):
        given["token_type_ids"] = pad(segments, 0, "right").to(device)
    theirs = reference.to(device, dtype)(**given).last_hidden_state.float().cpu()
    return distance(ours, expected), distance(unpad(theirs, ids), expected)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    torch.backends.cuda.matmul.allow_tf32 = False
    bad = 0
    print(f"{'family':16} {'precision':10} {'bertsmith':>10} {'reference':>10}")
    for family in FAMILIES:
        for dtype in (torch.float32, torch.bfloat16):
            ours, theirs = measure(family, device, dtype)
            worst = 1e-4 if dtype is torch.float32 else 2 * theirs
            bad += not ours <= worst
            print(f"{family:16} {str(dtype)[6:]:10} {ours:10.1e} {theirs:10.1e}{'' if ours <= worst else '  <- bad'}")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
