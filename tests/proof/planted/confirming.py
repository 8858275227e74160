"""CrossHair with a fault planted: ``python -m tests.proof.planted.confirming CONTRACT [FAULT]``."""

from __future__ import annotations

import sys

import pytest

from stepfold.adapters.proof.symbolic import confirming
from tests.mutants.planting import Planting
from tests.proof.planted.limits import LIMITS


def main() -> None:
    """Plant the fault, then let CrossHair check the contract."""
    contract, name = sys.argv[1], sys.argv[2]
    with pytest.MonkeyPatch.context() as patch:
        planting = Planting(patch)
        for fault in LIMITS:
            if fault.name == name and fault.plant is not None:
                fault.plant(planting)
        planting.grow()
        sys.argv[1:] = ["--seconds", "60", contract]
        confirming.main()


if __name__ == "__main__":
    main()
