"""The panel is a DSPy program like any other: optimisers see its predictors, evaluation takes its predictions."""

import dspy

from dspy_mama.systems.mac import DiagnosisPanel
from scripted import scripted_lm, text_of
from systems.mac.panels import asked, role_of, script, speaks, supervisor

TRAIN = [dspy.Example(case=f"case {n}", diagnosis="Fabry disease").with_inputs("case") for n in range(3)]


def right(example, prediction, trace=None):
    return prediction.most_likely == example.diagnosis


def test_bootstrapped_demonstrations_reach_each_seat_and_serve_both_stages():
    lm = scripted_lm(script(supervisor=supervisor(True)))
    team = DiagnosisPanel(2, lms={"default": lm})
    optimiser = dspy.BootstrapFewShot(metric=right, max_bootstrapped_demos=1, max_labeled_demos=0)
    trained = optimiser.compile(team, trainset=TRAIN)
    assert [len(doctor.speak.demos) for doctor in trained.doctors] == [1, 1]
    lm.requests.clear()
    assert trained(case="another", stage="follow_up").most_likely == "Fabry disease"
    first = next(request for request in lm.requests if role_of(request) == "doctor" and speaks(request) == "Doctor 1")
    shown = [text_of(message) for message in first.messages]
    assert len(shown) == 3
    assert "case 0" in shown[0]
    assert "enzyme" not in shown[1]
    assert '"tests"' not in shown[1]


def test_evaluation_takes_the_predictions():
    lm = scripted_lm(script(supervisor=supervisor(True)))
    team = DiagnosisPanel(2, lms={"default": lm})
    assert dspy.Evaluate(devset=TRAIN, metric=right, num_threads=2, display_progress=False)(team).score == 100.0
    assert asked(lm).count("supervisor") == 3
