"""The tools for clients of the Model Context Protocol, over whatever transport.

Its official SDK from 2.0 on: handlers are arguments of `Server` there, in 1.x they are decorators of another signature.
"""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.shared.message import SessionMessage

import ascendtile

from .desk import Desk
from .hanging_up import while_connected
from .instructions import INSTRUCTIONS
from .tools.catalogue import TOOLS
from .tools.tool import Tool


def mcp_server(desk: Desk) -> Server[Any]:
    """Lists the tools and has the desk do them. What goes wrong is a result, too, with `is_error`: agents read it."""

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(t) for t in TOOLS.values()])

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        async def tell(seconds: float, text: str) -> None:
            await context.session.report_progress(seconds, message=text)

        client = f"session {id(context.session)}"
        work = desk.answer(params.name, params.arguments or {}, client, tell)
        return _result(await while_connected(context.request, work))

    return Server(
        "ascendtile",
        version=ascendtile.__version__,
        title="ascendtile",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def answer_no_messages(lines: Any, messages: Any, write: Any) -> None:
    """Pass messages on; to a line that is none answer with an error, which the SDK does over HTTP only."""
    async with messages:
        async for line in lines:
            if isinstance(line, Exception):
                await write.send(SessionMessage(_no_message(line)))
            else:
                await messages.send(line)


def _no_message(error: Exception) -> types.JSONRPCError:
    """JSON-RPC 2.0: -32700 for what is no JSON, -32600 for JSON that is no message; the id is not known."""
    found = [e["type"] for e in getattr(error, "errors", list)()]  # of pydantic
    code, what = types.INVALID_REQUEST, "no message of JSON-RPC 2.0"
    if "json_invalid" in found:
        code, what = types.PARSE_ERROR, "no JSON"
    data = types.ErrorData(code=code, message=f"the line is {what}")
    return types.JSONRPCError(jsonrpc="2.0", id=None, error=data)


def _described(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        title=tool.title, read_only_hint=True, idempotent_hint=True, open_world_hint=False
    )  # nothing of the client's is changed, by code of the client either: it runs in an empty folder that goes away
    return types.Tool(
        name=tool.name, title=tool.title, description=tool.text, input_schema=tool.schema, annotations=hints
    )


def _result(answer: dict[str, Any]) -> types.CallToolResult:
    if "error" in answer:
        error = answer["error"]
        text = types.TextContent(type="text", text=f"{error['kind']}: {error['message']}")
        return types.CallToolResult(content=[text], structured_content=answer, is_error=True)
    found = answer["result"]
    text = types.TextContent(type="text", text=json.dumps(found, separators=(",", ":")))
    return types.CallToolResult(content=[text], structured_content=found)
