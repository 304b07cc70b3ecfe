import pytest

from dspy_mama.core import resources
from dspy_mama.core.errors import DeclarationError
from dspy_mama.core.resources import shipped


def test_the_checkout_serves_what_the_package_lacks():
    assert (shipped("data", "corpus") / "README.md").is_file()


def test_the_installed_package_comes_first(tmp_path, monkeypatch):
    package = tmp_path / "src" / "dspy_mama"
    for home in (package, tmp_path):
        (home / "data" / "corpus").mkdir(parents=True)
    monkeypatch.setattr(resources, "_PACKAGE", package)
    assert shipped("data", "corpus") == package / "data" / "corpus"


def test_folders_above_site_packages_are_never_taken(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "site-packages" / "dspy_mama")
    with pytest.raises(DeclarationError, match="does not ship"):
        shipped("data")
