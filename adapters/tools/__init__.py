"""Tools from Python functions and from a folder, permission rules, and hooks around a call."""

from stepfold.adapters.tools.definition import CallContext, Reply, Tool, ToolFailed, Traits
from stepfold.adapters.tools.functions import FunctionTool, function_tools, tool
from stepfold.adapters.tools.permission import Allow, Ask, Decision, Deny, Guard, Stop
from stepfold.adapters.tools.rules import Rules
from stepfold.adapters.tools.toolbox import Toolbox
from stepfold.adapters.tools.toolset import folder_tools

__all__ = [
    "Allow",
    "Ask",
    "CallContext",
    "Decision",
    "Deny",
    "FunctionTool",
    "Guard",
    "Reply",
    "Rules",
    "Stop",
    "Tool",
    "ToolFailed",
    "Toolbox",
    "Traits",
    "folder_tools",
    "function_tools",
    "tool",
]
