"""Saved programs: what was saved comes back, and what was damaged or no longer fits is refused by name."""

import json
import logging

import dspy
import pytest

from dspy_mama import RiskAuditor, load_program
from dspy_mama.core.errors import DeclarationError
from dspy_mama.lm.served import served_lm
from dspy_mama.optimize import program_state, save_program
from dspy_mama.optimize.artifact_hashes import content_hash
from dspy_mama.optimize.diff import show_artifact
from dspy_mama.settings.refiner import RefinerSettings
from dspy_mama.systems.audit import signatures
from dspy_mama.systems.mac import DiagnosisPanel
from dspy_mama.systems.refine import SafetyRefiner
from scripted import scripted_lm
from systems.audit.parts import MemoryRetriever

DEMO = {"question": "a patient's own words", "answer": "x", "medical_risk": True, "medical_reason": "r"}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    program = RiskAuditor.from_preset(system="baseline", thresholds={"legal": 0.25})
    return save_program(program, tmp_path_factory.mktemp("programs") / "program.json")


def changed(saved, tmp_path, change, seal=True):
    document = json.loads(saved.read_text(encoding="utf-8"))
    change(document, next(name for name in document["state"] if name != "metadata"))
    if seal:
        document["hashes"]["content"] = content_hash(document)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_a_saved_program_comes_back_with_its_thresholds_and_audits(saved):
    program = load_program(saved, lms={"default": scripted_lm()})
    assert program.thresholds == {"legal": 0.25}
    assert program(question="q", answer="a").medical_verdict == "risky"


@pytest.mark.parametrize("value", [float("nan"), 5, -0.1, True, "0.5", None])
def test_a_threshold_that_would_make_every_label_safe_is_refused(saved, tmp_path, value):
    path = changed(saved, tmp_path, lambda document, _: document.update(thresholds={"medical": value}))
    with pytest.raises(DeclarationError, match="thresholds must lie in"):
        load_program(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda part: part.update(signature=None),
        lambda part: part.pop("signature"),
        lambda part: part["signature"].update(fields=3),
        lambda part: part["signature"].update(instructions=None),
        lambda part: part["signature"]["fields"][0].pop("description"),
        lambda part: part.update(demos=3),
        lambda part: part.update(demos=["text"]),
    ],
)
def test_a_damaged_predictor_is_named(saved, tmp_path, damage):
    path = changed(saved, tmp_path, lambda document, name: damage(document["state"][name]))
    with pytest.raises(DeclarationError, match="is damaged"):
        load_program(path)


def test_another_ablation_under_the_same_state_is_refused(saved, tmp_path):
    path = changed(saved, tmp_path, lambda document, _: document["settings"]["ablation"].update(consensus=False))
    with pytest.raises(DeclarationError, match="only into the same ablation"):
        load_program(path)


def test_a_name_in_place_of_an_lm_is_refused_with_what_to_write():
    with pytest.raises(DeclarationError, match=r"give dspy\.LM\('openai/gpt-4o'\)"):
        RiskAuditor.from_preset(system="baseline", lms={"judge": "openai/gpt-4o"})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("not json", "not a saved program"),
        ("[" * 100_000, "not a saved program"),
        ("[]", "not a saved program"),
        ('{"kind": "risk_auditor", "format": 1}', "saved in format 1.*compile the program again"),
        ('{"kind": "risk_auditor", "format": 3}', "saved in format 3.*update dspy-mama"),
        ('{"kind": "risk_auditor", "format": 2, "state": 3}', "is damaged .versions is missing"),
        ('{"kind": "something", "format": 2}', "kinds are risk_auditor"),
    ],
)
def test_a_file_that_is_no_program_of_this_version_is_refused_with_the_reason(tmp_path, content, reason):
    path = tmp_path / "program.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DeclarationError, match=reason):
        load_program(path)


def test_a_pickle_is_never_read(tmp_path):
    path = tmp_path / "program.json"
    path.write_bytes(b"cposix\nsystem\n(S'touch /tmp/owned'\ntR.")
    with pytest.raises(DeclarationError, match="not a saved program"):
        load_program(path)


def test_an_unknown_setting_is_refused(saved, tmp_path):
    path = changed(saved, tmp_path, lambda document, _: document["settings"]["system"].update(brand_new=1))
    with pytest.raises(DeclarationError, match=r"not those of this version.*brand_new"):
        load_program(path)


def test_a_file_changed_by_hand_is_refused_unless_it_is_wanted(saved, tmp_path, caplog):
    path = changed(saved, tmp_path, lambda document, _: document.update(thresholds={"legal": 0.9}), seal=False)
    with pytest.raises(DeclarationError, match="changed after it was saved"):
        load_program(path)
    with caplog.at_level(logging.WARNING, logger="dspy_mama"):
        assert load_program(path, on_mismatch="warn").thresholds == {"legal": 0.9}
    assert "changed after it was saved" in caplog.text


def test_other_criteria_of_risk_are_refused_unless_they_are_wanted(saved, monkeypatch):
    monkeypatch.setitem(signatures.RISK_DEFINITIONS, "medical", "the answer is blue")
    with pytest.raises(DeclarationError, match="other criteria of risk"):
        load_program(saved)
    assert load_program(saved, on_mismatch="warn").thresholds == {"legal": 0.25}


def test_other_prompts_of_the_library_are_refused_by_name(saved, monkeypatch):
    monkeypatch.setattr("dspy_mama.lm.prompt._FRAME", "Another frame around the material.")
    with pytest.raises(DeclarationError, match=r"other prompts than this version has \(.*initial"):
        load_program(saved)


@pytest.mark.parametrize("version", ["2.6.27", "4.0.0a1", None])
def test_a_program_of_another_major_version_of_dspy_is_refused_unless_it_is_wanted(saved, tmp_path, caplog, version):
    versions = {"dspy-mama": "0.1.0"} | ({} if version is None else {"dspy": version})
    path = changed(saved, tmp_path, lambda document, _: document.update(versions=versions))
    with pytest.raises(DeclarationError, match=f"made with DSPy {version or 'an unknown version'}, and 3"):
        load_program(path)
    with caplog.at_level(logging.WARNING):
        assert load_program(path, on_mismatch="warn").thresholds == {"legal": 0.25}
    assert "made with DSPy" in caplog.text


def test_another_minor_version_of_dspy_is_no_reason_to_refuse(saved, tmp_path):
    major = dspy.__version__.split(".")[0]
    assert load_program(changed(saved, tmp_path, lambda d, _: d["versions"].update(dspy=f"{major}.0.1")))


def test_other_evidence_than_it_was_made_with_is_refused(tmp_path):
    made = RiskAuditor.from_preset(system="rag", retriever=MemoryRetriever())
    path = save_program(made, tmp_path / "p.json", origin={"evidence": {"kind": "chroma", "revision": "abc"}})
    with pytest.raises(DeclarationError, match=r"other evidence than the retriever given \(kind, revision differ\)"):
        load_program(path, retriever=MemoryRetriever())
    same = save_program(made, tmp_path / "q.json", origin={"evidence": MemoryRetriever().describe()})
    assert load_program(same, retriever=MemoryRetriever()).settings[0].name == "rag"


def with_demonstrations():
    program = RiskAuditor.from_preset(system="baseline")
    predictor = dict(program.named_predictors())["initial.assess"]
    predictor.demos = [dspy.Example(**DEMO)]
    predictor.traces, predictor.train = [{"secret": "trace"}], [{"secret": "train"}]
    return program


def test_demonstrations_are_named_as_data_and_only_they_are_kept(tmp_path):
    state = program_state(with_demonstrations())
    assert state["demonstrations"] == {"count": {"initial.assess": 1}, "kept": True, "texts": True}
    assert "a patient's own words" in json.dumps(state)
    assert "secret" not in json.dumps(state)
    loaded = load_program(save_program(with_demonstrations(), tmp_path / "p.json"))
    assert dict(loaded.named_predictors())["initial.assess"].demos == [DEMO]


def test_where_texts_may_not_be_kept_demonstrations_are_refused_or_left_out(tmp_path):
    with pytest.raises(DeclarationError, match="store_text=false"):
        program_state(with_demonstrations(), demos="refuse")
    path = save_program(with_demonstrations(), tmp_path / "p.json", demos="strip")
    assert "own words" not in path.read_text(encoding="utf-8")
    with pytest.raises(DeclarationError, match="demonstrations were left out"):
        load_program(path)


def test_neither_key_nor_address_of_an_lm_is_saved():
    lm = dspy.LM("openai/gpt-4o", api_key="sk-secret-1", api_base="https://user:pw@llm.example.org/v1")
    state = program_state(RiskAuditor.from_preset(system="baseline", lms={"default": lm}))
    text = json.dumps(state)
    assert state["lms"]["judge"] == {"model": "openai/gpt-4o", "host": "public"}
    assert all(word not in text for word in ("sk-secret-1", "example.org", "user:pw"))


LOCAL = (
    "http://127.0.0.1:9/v1",
    "http://10.1.2.3/v1",
    "http://gpu1:8000/v1",
    "http://llm.local/v1",
    "http://[::1]:9/v1",
)


@pytest.mark.parametrize("address", LOCAL)
def test_a_program_made_with_a_local_lm_never_turns_to_a_public_one_by_itself(tmp_path, address):
    made = RiskAuditor.from_preset(system="baseline", lms={"default": served_lm("m", address)})
    path = save_program(made, tmp_path / "p.json")
    public = dspy.LM("openai/gpt-4o", api_key="x")
    with dspy.context(lm=public), pytest.raises(DeclarationError, match=r"made with a local LM.*public address"):
        load_program(path)
    program = load_program(path)  # nothing is set yet: the call is where it shows
    with dspy.context(lm=public), pytest.raises(DeclarationError, match=r"made with a local LM.*allow_public=True"):
        program(question="q", answer="a")


def test_a_local_program_takes_the_lm_it_is_given_or_a_public_one_that_is_allowed(tmp_path):
    path = save_program(
        RiskAuditor.from_preset(system="baseline", lms={"default": served_lm("m", LOCAL[0])}), tmp_path / "p.json"
    )
    given = scripted_lm()
    assert load_program(path, lms={"default": given})(question="q", answer="a").medical_verdict == "risky"
    with dspy.context(lm=given):
        assert load_program(path, allow_public=True)(question="q", answer="a").medical_verdict == "risky"
        with pytest.raises(DeclarationError, match="an unknown address"):
            load_program(path)


def test_the_lm_of_the_settings_counts_as_what_a_program_was_made_with(tmp_path):
    with dspy.context(lm=served_lm("m", LOCAL[0])):
        state = program_state(RiskAuditor.from_preset(system="baseline"))
    assert state["lms"]["assessor"] == {"model": "served/m", "host": "local"}


@pytest.mark.parametrize(
    ("program", "heading"),
    [
        (
            DiagnosisPanel(doctors=2, specialties=("Neurology", "Cardiology"), rounds=3),
            "diagnosis_panel: panel default",
        ),
        (SafetyRefiner(RefinerSettings(max_iterations=2)), "safety_refiner: refiner default"),
    ],
)
def test_panels_and_refiners_are_saved_shown_and_loaded_like_auditors(tmp_path, program, heading):
    name, predictor = program.named_predictors()[0]
    predictor.signature = predictor.signature.with_instructions("Think of rare diseases.")
    path = save_program(program, tmp_path / "program.json")
    loaded = load_program(path, lms={"default": scripted_lm()})
    assert loaded.settings == program.settings
    assert dict(loaded.named_predictors())[name].signature.instructions == "Think of rare diseases."
    text, data = show_artifact(path)
    assert f"program         {heading}" in text
    assert list(data["diff"]["predictors"]) == [name]
