"""What a run leaves behind: its folder of five files, its manifest, and its entry in MLflow."""

from dspy_mama.tracking.manifest import build_manifest, data_hashes, package_versions
from dspy_mama.tracking.mlflow_traces import TraceLayout, TraceStep, TraceTree
from dspy_mama.tracking.mlflow_tracker import MlflowTracker
from dspy_mama.tracking.null_tracker import NullTracker
from dspy_mama.tracking.records import RecordFile, final_outcomes, is_finished, read_records
from dspy_mama.tracking.run_store import RUN_FILES, RunStore, find_resumable, is_complete
from dspy_mama.tracking.scrub import scrub, scrub_text
from dspy_mama.tracking.spec import spec_hash

__all__ = [
    "RUN_FILES",
    "MlflowTracker",
    "NullTracker",
    "RecordFile",
    "RunStore",
    "TraceLayout",
    "TraceStep",
    "TraceTree",
    "build_manifest",
    "data_hashes",
    "final_outcomes",
    "find_resumable",
    "is_complete",
    "is_finished",
    "package_versions",
    "read_records",
    "scrub",
    "scrub_text",
    "spec_hash",
]
