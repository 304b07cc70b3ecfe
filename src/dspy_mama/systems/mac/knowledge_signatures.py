"""Prompts of the disease-knowledge task. All wording is this project's own: the paper prints no prompt."""

from __future__ import annotations

import dspy


class StateKnowledge(dspy.Signature):
    """You are a doctor who writes an entry of a handbook of rare diseases.

    State what is known of the disease under the heading that you are given, and nothing beyond that heading. Say so
    where something is not known or you are not sure; invent no figures.
    """

    disease: str = dspy.InputField(desc="name of the disease")
    heading: str = dspy.InputField(desc="what to write about")
    entry: str = dspy.OutputField(desc="the entry, in full sentences", max_length=500)


class MergeEntries(dspy.Signature):
    """You supervise doctors who wrote entries of a handbook of rare diseases, each by themselves.

    Hold their entries against one another, name what they differ in, and write the one entry that stands: keep what is
    sound, drop what only one claims without ground, and leave no contradiction. Add nothing that none of them wrote.
    """

    disease: str = dspy.InputField(desc="name of the disease")
    heading: str = dspy.InputField(desc="what the entries are about")
    entries: str = dspy.InputField(desc="the doctors' entries, one a line")
    disagreement: str = dspy.OutputField(desc="what they differ in, or none", max_length=240)
    entry: str = dspy.OutputField(desc="the entry that stands, in full sentences", max_length=500)
