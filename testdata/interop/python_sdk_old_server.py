"""A server on the Python SDK 1.16 (2025-06-18): each tool asks one question in the way of its time.

stdio by default; `python_sdk_old_server.py http PORT` serves streamable HTTP at http://127.0.0.1:PORT/mcp.
A tool's text is what it received, as JSON: {"action": …, "fields": {name: {"value": …, "type": …}}}, with the Python
type's name; a field that did not come is absent in the tools that ask by a plain schema.
"""

import json
import sys
from typing import Optional

from mcp.server.fastmcp import Context, FastMCP
from pydantic import BaseModel, Field

mcp = FastMCP("python-sdk-old")


def typed(fields) -> dict:
    return {name: {"value": value, "type": type(value).__name__} for name, value in fields.items()}


def received(result) -> str:
    fields = typed(dict(result.data)) if result.action == "accept" else {}
    return json.dumps({"action": result.action, "fields": fields})


async def ask(ctx: Context, message: str, schema: dict) -> str:
    """Asks with a schema written by hand, as servers did for all that the SDK's models refuse."""
    result = await ctx.session.elicit(message, schema, related_request_id=ctx.request_id)
    return json.dumps({"action": result.action, "fields": typed(result.content or {})})


def form(required=(), **properties) -> dict:
    return {"type": "object", "properties": properties, "required": list(required)}


# Optional fields: pydantic writes anyOf with null, and a null default.
class Optionals(BaseModel):
    name: str = Field(description="Your name")
    nickname: Optional[str] = Field(default=None, description="Your nickname")
    age: Optional[int] = Field(default=None, ge=0)


# Optional in type and required all the same: null is an answer.
class RequiredOptionals(BaseModel):
    name: Optional[str]
    subscribed: Optional[bool]


class Defaults(BaseModel):
    name: str = Field(default="Ada", min_length=1, max_length=40)
    count: int = Field(default=3, ge=1, le=9)
    ratio: float = 0.5
    agree: bool = False


# Choices by json_schema_extra, since the models allow no Enum.
class Choice(BaseModel):
    pet: str = Field(json_schema_extra={"enum": ["pet-1", "pet-2"], "enumNames": ["Cats", "Dogs"]})
    level: int = Field(json_schema_extra={"enum": [1, 2, 3], "enumNames": ["Low", "Medium", "High"]})


# More than one type, which no client can show.
class Union(BaseModel):
    value: int | str


@mcp.tool()
async def ask_optional(ctx: Context) -> str:
    return received(await ctx.elicit("Who are you?", Optionals))


@mcp.tool()
async def ask_required_optional(ctx: Context) -> str:
    return received(await ctx.elicit("Who are you?", RequiredOptionals))


@mcp.tool()
async def ask_defaults(ctx: Context) -> str:
    return received(await ctx.elicit("Is this right?", Defaults))


@mcp.tool()
async def ask_choice(ctx: Context) -> str:
    return received(await ctx.elicit("Which one?", Choice))


@mcp.tool()
async def ask_union(ctx: Context) -> str:
    return received(await ctx.elicit("A number or a word?", Union))


@mcp.tool()
async def ask_untyped(ctx: Context) -> str:
    return await ask(ctx, "Which one?", form(["pet"], pet={"enum": ["cat", "dog"]}))


@mcp.tool()
async def ask_short_names(ctx: Context) -> str:
    pet = {"type": "string", "enum": ["a", "b", "c"], "enumNames": ["Ant", "", "Cow", "Doe"]}
    return await ask(ctx, "Which one?", form(["pet"], pet=pet))


@mcp.tool()
async def ask_references(ctx: Context) -> str:
    schema = form(["pet"], pet={"$ref": "#/$defs/Pet"})
    schema["$defs"] = {"Pet": {"title": "Pet", "type": "string", "enum": ["cat", "dog"]}}
    return await ask(ctx, "Which one?", schema)


@mcp.tool()
async def ask_formats(ctx: Context) -> str:
    schema = form(
        ["id"],
        id={"type": "string", "format": "uuid"},
        mail={"type": "string", "format": "email"},
        code={"type": "string", "pattern": "^[A-Z]{3}$"},
    )
    return await ask(ctx, "Which one?", schema)


@mcp.tool()
async def ask_text_default(ctx: Context) -> str:
    return await ask(ctx, "How many?", form(["count"], count={"type": "integer", "default": "5"}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        mcp.settings.host, mcp.settings.port = "127.0.0.1", int(sys.argv[2])
        mcp.run("streamable-http")
    else:
        mcp.run()
