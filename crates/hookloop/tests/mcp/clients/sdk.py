"""Lists and calls every tool with the SDK of PyPI's `mcp`, and prints what came of it.

The argument is JSON: {"way": {"command": …} or {"url": …, "token": …}, "version": …, "calls": {tool: arguments}}.
Without a version the client finds out by itself what the server speaks.
"""

import asyncio
import json
import os
import sys

import httpx2
import mcp.client.session
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


def server(way):
    if "command" in way:
        return StdioServerParameters(command=way["command"], args=["mcp"], env=dict(os.environ))
    headers = {"Authorization": f"Bearer {way['token']}"}
    return streamable_http_client(way["url"], http_client=httpx2.AsyncClient(headers=headers, timeout=30))


async def main(task):
    # What the client offers is the newest that it knows; here, what is to be tested.
    if task["version"]:
        mcp.client.session.LATEST_HANDSHAKE_VERSION = task["version"]
    mode = "legacy" if task["version"] else "auto"
    async with Client(server(task["way"]), mode=mode) as client:
        tools = (await client.list_tools()).tools
        results = {}
        for name, arguments in task["calls"].items():
            result = await client.call_tool(name, arguments)
            assert json.loads(result.content[0].text) == result.structured_content
            results[name] = result.structured_content
        await client.send_ping()
        await client.list_resources()
        print(json.dumps({
            "version": client.session.initialize_result.protocol_version,
            "tools": [tool.name for tool in tools],
            "results": results,
        }))


asyncio.run(main(json.loads(sys.argv[1])))
