"""A jurisdiction chooses sources, whose sources are read, and the law that legal risk means."""

import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.settings import SystemSettings
from dspy_mama.wiring.compose import compose

NAMES = ["jp", "us", "eu", "de"]


@pytest.mark.parametrize("name", NAMES)
def test_a_jurisdiction_sets_law_and_sources_together(name):
    settings = compose([f"jurisdiction={name}"])
    assert settings.system.jurisdiction == name.upper()
    assert settings.system.jurisdictions[0] == name.upper()
    assert settings.corpus.name == name
    assert settings.corpus.has_sources
    assert settings.corpus.wikipedia.jurisdiction == name.upper()
    if name != "jp":
        assert settings.corpus.about.jurisdiction == name.upper()
        assert len(settings.corpus.pages) >= 3


def test_without_one_everything_is_as_before():
    settings = compose()
    assert settings.system == SystemSettings()
    assert not settings.corpus.has_sources
    assert settings.corpus.folder is None


def test_what_the_command_line_says_comes_last():
    settings = compose(["jurisdiction=us", "corpus.wikipedia.titles=[Asthma]", "system.jurisdictions=[US]"])
    assert settings.corpus.wikipedia.titles == ("Asthma",)
    assert settings.system.jurisdictions == ("US",)
    assert settings.system.jurisdiction == "US"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("jurisdiction=fr", "jp"),
        ("system.jurisdiction=FR", "system.jurisdiction"),
        ("corpus.urls=[nonsense]", "must start with http"),
        ("corpus.wikipedia.language=english", "corpus.wikipedia.language"),
        ("corpus.http.delay=-1", "corpus.http.delay"),
        ("corpus.pages=[{url: 'ftp://x'}]", "corpus.pages.0.url"),
        ("corpus.about.domains=[]", "corpus.about.domains"),
    ],
)
def test_a_wrong_source_is_named(override, said):
    with pytest.raises(DeclarationError) as caught:
        compose([override])
    assert said in str(caught.value)
