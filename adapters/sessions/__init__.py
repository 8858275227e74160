"""
Sessions: many runs on one history, kept under a name.

One port, ``Sessions``; ``SqliteSessions`` keeps them in one database,
``FileSessions`` as one recording each in a folder.
"""

from stepfold.adapters.sessions.files import FileSessions
from stepfold.adapters.sessions.port import Hit, SessionError, SessionInfo, SessionLog, Sessions
from stepfold.adapters.sessions.sqlite import SqliteSessions

__all__ = ["FileSessions", "Hit", "SessionError", "SessionInfo", "SessionLog", "Sessions", "SqliteSessions"]
