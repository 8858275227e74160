"""``python -m stepfold.adapters.cli``."""

import sys

from stepfold.adapters.cli.main import main

sys.exit(main())
