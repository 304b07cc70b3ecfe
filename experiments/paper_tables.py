"""Paper A, Table 3, ablations and paired differences: our numbers beside the printed ones. Runs nothing.

`python experiments/paper_tables.py data=mednlp_chat data.path=FOLDER lm=openai` takes the newest runs on these data
with this LM below `tracking.root`, made by the other two studies or by `mama evaluate`; what was not run says so.
"""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from dspy_mama.core.resources import shipped
from dspy_mama.wiring.experiment import experiment_arguments, print_paper_tables


@hydra.main(version_base="1.3", config_path=str(shipped("conf")), config_name="config")
def main(config: DictConfig) -> None:
    """Prints the tables."""
    print_paper_tables(config)


if __name__ == "__main__":
    experiment_arguments("default")
    main()
