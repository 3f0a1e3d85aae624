"""The report that each fine-tuning run leaves: `RunFacts` in; report.html, README.md and metrics.json out."""

from bertsmith.evaluation.report.diagnosed import add_diagnosis
from bertsmith.evaluation.report.facts import RunFacts
from bertsmith.evaluation.report.writing import read_metrics, write_report

__all__ = ["RunFacts", "add_diagnosis", "read_metrics", "write_report"]
