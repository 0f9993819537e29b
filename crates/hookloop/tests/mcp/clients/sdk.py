"""Lists and calls every tool with the SDK of PyPI's `mcp`, and prints what came of it.

The argument is JSON: {"way": {"command": …} or {"url": …, "token": …}, "version": …, "calls": {tool: arguments}}.
"""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager

import httpx
import mcp.client.session as session_module
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


@asynccontextmanager
async def connect(way):
    if "command" in way:
        server = StdioServerParameters(command=way["command"], args=["mcp"], env=dict(os.environ))
        async with stdio_client(server) as (read, write):
            yield read, write
    else:
        headers = {"Authorization": f"Bearer {way['token']}"}
        async with httpx.AsyncClient(headers=headers, timeout=30) as client:
            async with streamable_http_client(way["url"], http_client=client) as streams:
                yield streams[0], streams[1]


async def main(task):
    # What the client offers is the newest that it knows; here, what is to be tested.
    session_module.types.LATEST_PROTOCOL_VERSION = task["version"]
    async with connect(task["way"]) as (read, write), ClientSession(read, write) as session:
        greeting = await session.initialize()
        tools = (await session.list_tools()).tools
        results = {}
        for name, arguments in task["calls"].items():
            result = await session.call_tool(name, arguments)
            assert json.loads(result.content[0].text) == result.structuredContent
            results[name] = result.structuredContent
        await session.send_ping()
        await session.list_resources()
        print(json.dumps({
            "version": greeting.protocolVersion,
            "tools": [tool.name for tool in tools],
            "results": results,
        }))


asyncio.run(main(json.loads(sys.argv[1])))
