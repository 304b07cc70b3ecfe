"""The README's first program runs as it stands there."""

import re
from pathlib import Path

import dspy

from scripted import default_values, fields_of, scripted_lm

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
PROGRAM = re.search(r"```python\n(.*?)```", README, re.S).group(1)


def test_the_program_has_fewer_than_twelve_lines():
    assert len([line for line in PROGRAM.splitlines() if line.strip()]) < 12


def test_the_program_runs_and_prints_a_verdict(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    lm = scripted_lm(lambda request: default_values(fields_of(request)))
    monkeypatch.setattr(dspy, "LM", lambda *arguments, **options: lm)
    exec(compile(PROGRAM, "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert out.startswith("risky")
    assert "#" in out.splitlines()[1]
    assert len(lm.requests) == 6


def test_the_readme_names_only_verbs_that_exist():
    from dspy_mama.cli.verbs import VERBS

    used = set(re.findall(r"^mama (\w+)", README, re.M))
    assert used
    assert used <= set(VERBS)
