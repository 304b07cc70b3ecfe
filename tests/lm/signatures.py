import dspy

from dspy_mama.lm.predict import StructuredPredict


class Judge(dspy.Signature):
    """Task: judge the answer."""

    question: str = dspy.InputField()
    answer: str = dspy.InputField()
    reason: str = dspy.OutputField(desc="why", max_length=50)
    risk: bool = dspy.OutputField(desc="true if there is risk")


GOOD = {"reason": "wrong dose", "risk": True}
PAIR = {"question": "q", "answer": "a"}


def judge(lm=None, signature=Judge, **settings):
    predictor = StructuredPredict(signature, role="judge", **settings)
    predictor.lm = lm
    return predictor
