"""``python -m stepfold.adapters.cli``."""

import sys

from stepfold.adapters.cli import main

sys.exit(main())
