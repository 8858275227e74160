"""Tests of loops: a hostile world, machines, the pytest plugin.  Users import ``stepfold.testing``."""
