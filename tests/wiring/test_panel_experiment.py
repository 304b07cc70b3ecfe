from dspy_mama.wiring.panel_experiment import varied


def test_a_sweep_names_what_its_runs_do_not_share():
    given = ["panel.methods=[mac] panel.doctors=2", "panel.methods=[mac] panel.doctors=3"]
    assert varied(given) == ["panel.doctors=2", "panel.doctors=3"]
    assert varied(["panel.doctors=2"]) == ["panel.doctors=2"]
    assert varied(["lm=a", "lm=a panel.rounds=25"]) == ["as given", "panel.rounds=25"]
