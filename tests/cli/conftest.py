import pytest

from dspy_mama.lm import roles
from scripted import scripted_lm


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """An empty working folder, with the index in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def mama(workplace, monkeypatch, capsys):
    """Runs a command with a scripted LM in place of the embedded one; returns exit code, stdout and stderr."""
    from dspy_mama.cli import main

    lm = scripted_lm()
    monkeypatch.setattr(roles, "_embedded", lambda spec, sampling: lm)

    def run(*arguments, script=None):
        if script is not None:
            lm.engine.script = script
        code = main([*arguments, f"retriever.path={workplace / 'index'}"] if arguments[0] != "report" else arguments)
        out, err = capsys.readouterr()
        return code, out, err

    run.requests = lm.requests
    run.engine = lm.engine
    return run
