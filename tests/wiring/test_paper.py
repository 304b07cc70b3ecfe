"""Which runs the paper's tables take."""

import dataclasses
import json

from dspy_mama.tracking import RUN_FILES
from dspy_mama.wiring.compose import compose
from dspy_mama.wiring.paper import runs_for


def test_a_run_on_the_same_file_counts_however_its_path_was_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "mlruns" / "runs" / "one"
    folder.mkdir(parents=True)
    here, other, whole = (
        compose(["data=table", f"data.path={path}"]) for path in ("pairs.csv", "others.csv", tmp_path / "pairs.csv")
    )
    spec = {
        "data": dataclasses.asdict(here.data),
        "lm": {"name": here.lm.name},
        "system": {"name": "rag"},
        "ablation": {"name": "full"},
    }
    for name in RUN_FILES:
        (folder / name).write_text(json.dumps(spec if name == "spec.json" else {}))
    assert set(runs_for(whole)) == {("rag", "full")}
    assert set(runs_for(here)) == {("rag", "full")}
    assert runs_for(other) == {}
