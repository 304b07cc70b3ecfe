from pathlib import Path

import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.resources import shipped
from dspy_mama.settings import Settings
from dspy_mama.settings.overrides import literal
from dspy_mama.systems.audit import ABLATIONS, SYSTEMS
from dspy_mama.wiring.compose import compose

CHOICES = [
    f"{group.name}={file.stem}"
    for group in sorted(Path(shipped("conf")).iterdir())
    if group.is_dir()
    for file in sorted(group.glob("*.yaml"))
]
NEEDS_PATH = {f"data={name}" for name in ("kqa", "mednlp_chat", "table", "medsafetybench", "mac")}


@pytest.mark.parametrize("choice", CHOICES)
def test_every_choice_composes(choice):
    extra = ["data.path=some/file"] if choice in NEEDS_PATH else ["corpus.path=some"] if "folder" in choice else []
    assert isinstance(compose([choice, *extra]), Settings)


@pytest.mark.parametrize("name", SYSTEMS)
def test_conf_and_presets_name_the_same_system(name):
    assert compose([f"system={name}"]).system == SYSTEMS[name]


@pytest.mark.parametrize("name", ABLATIONS)
def test_conf_and_presets_name_the_same_ablation(name):
    assert compose([f"ablation={name}"]).ablation == ABLATIONS[name]


def test_fields_that_the_file_does_not_name_can_be_set():
    assert compose(["retriever.min_score=0.25"]).retriever.min_score == 0.25


def test_a_role_inherits_what_it_does_not_name():
    settings = compose(["lm.roles.judge.model=openai/gpt-4o", "lm.default.temperature=0.3"])
    assert settings.lm.roles["judge"].model == "openai/gpt-4o"
    assert settings.lm.roles["judge"].temperature == 0.3
    assert settings.lm.default.model == "embedded"


@pytest.mark.parametrize(
    "text",
    [
        "a folder/it's = odd, {really} [so].csv",
        'say "a"',
        'a\\"b\\',
        r"C:\data\new",
        r"two \\ back \\",
        "${data.path} and ${",
        "\\${x}\\",
        "証拠 (1)",
        "~",
        "~/pairs.csv",
        ".5",
        "-x",
        "2026",
        "1e5",
        "True",
        "null",
        "NaN",
        "*",
        "",
        " in blanks ",
        "tab\t, line\n",
        "a:b",
        "../a.b",
        "http://[::1]:8/v1",
    ],
)
def test_text_arrives_as_it_is_whatever_signs_it_holds(text):
    assert compose([f"corpus.path={literal(text)}"]).corpus.path == text


@pytest.mark.parametrize("text", ["患者/データ.csv", "gold (1).csv", "a=b.csv", "Fälle;neu.csv", "Medical risk"])
def test_text_as_people_type_it_needs_no_second_quotes(text):
    assert compose([f"corpus.path={text}"]).corpus.path == text
    assert compose([f"data.columns.question={text}"]).data.columns == {"question": text}


def test_text_without_special_signs_is_not_quoted():
    assert [literal(value) for value in ("../data/my-pairs.csv", "KEY", 5, None)] == [
        "../data/my-pairs.csv",
        "KEY",
        "5",
        "null",
    ]


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["system=unknown"], "baseline"),
        (["data=kqa"], "data.path=VALUE"),
        (["corpus=folder"], "corpus.path=VALUE"),
        (["data.ids=s1"], "data.ids: should be a list, such as [a]"),
        (["lm.default.model="], "lm.default.model"),
        (["lm=vllm", "lm.default.api_base=localhost:8000"], "must start with http://"),
        (["system.thresh=1"], "system.thresh: unknown setting"),
        (["runtime.concurrency=0"], "runtime.concurrency"),
        (["retriever.port=99999"], "retriever.port"),
        (["system.thresholds.medical=high"], "system.thresholds.medical"),
        (["ablation.initial=false", "ablation.verification=false"], "nothing would be assessed"),
        (["corpus.chunk_overlap=2000"], "smaller than chunk size"),
        (["nonsense"], "overrides look like"),
        (["data.ids=[質問]"], "the value of data.ids cannot be read"),
        (["data.path='x"], "close every quote"),
        (["system=[rag"], "override_grammar"),
    ],
)
def test_a_wrong_override_is_named(overrides, said):
    with pytest.raises(DeclarationError) as caught:
        compose(overrides)
    assert said in str(caught.value)


def test_a_key_in_the_settings_is_refused_and_not_repeated():
    with pytest.raises(DeclarationError) as caught:
        compose(["lm=openai", "lm.default.extra.api_key=sk-very-secret"])
    assert "environment" in str(caught.value)
    assert "sk-very-secret" not in str(caught.value)
    with pytest.raises(DeclarationError) as caught:
        compose(["lm=openai", "lm.default.extra.api_key='sk-very-secret"])
    assert "sk-very-secret" not in str(caught.value)


def test_composing_leaves_an_outer_hydra_as_it_was():
    from hydra import compose as outer_compose
    from hydra import initialize_config_dir

    with initialize_config_dir(version_base="1.3", config_dir=str(shipped("conf").resolve())):
        compose(["system=baseline"])
        assert outer_compose(config_name="config").system.name == "rag"


def test_an_unknown_choice_or_group_is_named_with_what_there_is():
    with pytest.raises(DeclarationError) as choice:
        compose(["lm=nope"])
    assert str(choice.value) == "lm=nope: there is no such choice; choices are embedded, ollama, openai, vllm"
    with pytest.raises(DeclarationError) as group:
        compose(["systm=rag"])
    assert str(group.value).startswith("systm: there is no such group of settings; groups are ablation, ")
    assert "\n" not in f"{choice.value}{group.value}"
