"""A server on FastMCP 2.12 (2025-06-18): each tool asks one question in the way of its time.

stdio by default; `fastmcp_old_server.py http PORT` serves streamable HTTP at http://127.0.0.1:PORT/mcp.
A tool's text is what it received, as JSON: {"action": …, "value": …, "type": …}, with the Python type's name, and
for a form of several fields {"action": …, "fields": {name: {"value": …, "type": …}}}.
"""

import dataclasses
import enum
import json
import sys
from typing import Annotated, Literal

from fastmcp import Context, FastMCP
from pydantic import BaseModel, Field

mcp = FastMCP("fastmcp-old")


def typed(value):
    plain = value.value if isinstance(value, enum.Enum) else value
    return {"value": plain, "type": type(value).__name__}


def received(result) -> str:
    if result.action != "accept":
        return json.dumps({"action": result.action})
    data = result.data
    if dataclasses.is_dataclass(data):
        fields = {f.name: typed(getattr(data, f.name)) for f in dataclasses.fields(data)}
    elif isinstance(data, BaseModel):
        fields = {name: typed(getattr(data, name)) for name in type(data).model_fields}
    else:
        return json.dumps({"action": "accept", **typed(data)})
    return json.dumps({"action": "accept", "fields": fields})


# Names become titles: FastMCP writes enum and enumNames.
class Pet(enum.Enum):
    PET_CAT = "pet-1"
    PET_DOG = "pet-2"
    PET_BIRD = "pet-3"


# Integers, for which 2025-06-18 has no choice.
class Priority(enum.Enum):
    LOW = 1
    MEDIUM = 2
    HIGH = 3


# Titles of their own, by an attribute that FastMCP looks for.
class Size(enum.Enum):
    S = "s"
    L = "l"


Size.S._display_name_ = "Small (up to 10)"
Size.L._display_name_ = "Large"


# Names that equal the values: no titles.
class Same(enum.Enum):
    A = "A"
    B = "B"


@dataclasses.dataclass
class Order:
    pet: Pet
    priority: Priority
    count: int
    price: float
    gift: bool
    note: str = "none"
    size: Size = Size.S


class Booking(BaseModel):
    seat: Annotated[str, Field(json_schema_extra={"enum": ["w", "a"], "enumNames": ["Window", "Aisle"]})]
    nights: Annotated[int, Field(ge=1, le=14)] = 2
    meal: Literal["none", "vegan"] = "none"


@mcp.tool
async def ask_enum(ctx: Context) -> str:
    return received(await ctx.elicit("Which pet?", Pet))


@mcp.tool
async def ask_integer_enum(ctx: Context) -> str:
    return received(await ctx.elicit("Which priority?", Priority))


@mcp.tool
async def ask_titled_enum(ctx: Context) -> str:
    return received(await ctx.elicit("Which size?", Size))


@mcp.tool
async def ask_untitled_enum(ctx: Context) -> str:
    return received(await ctx.elicit("Which letter?", Same))


@mcp.tool
async def ask_literal(ctx: Context) -> str:
    return received(await ctx.elicit("Which colour?", Literal["red", "green"]))


@mcp.tool
async def ask_integer_literal(ctx: Context) -> str:
    return received(await ctx.elicit("Which number?", Literal[10, 20]))


@mcp.tool
async def ask_boolean_literal(ctx: Context) -> str:
    return received(await ctx.elicit("Sure?", Literal[True, False]))


@mcp.tool
async def ask_single_literal(ctx: Context) -> str:
    return received(await ctx.elicit("The only choice?", Literal["only"]))


@mcp.tool
async def ask_list(ctx: Context) -> str:
    return received(await ctx.elicit("Which of these?", ["one", "two"]))


@mcp.tool
async def ask_integer(ctx: Context) -> str:
    return received(await ctx.elicit("How many?", int))


@mcp.tool
async def ask_boolean(ctx: Context) -> str:
    return received(await ctx.elicit("Yes?", bool))


@mcp.tool
async def ask_nothing(ctx: Context) -> str:
    result = await ctx.elicit("Go on?", None)
    return json.dumps({"action": result.action})


@mcp.tool
async def ask_dataclass(ctx: Context) -> str:
    return received(await ctx.elicit("Your order?", Order))


@mcp.tool
async def ask_model(ctx: Context) -> str:
    return received(await ctx.elicit("Your booking?", Booking))


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        mcp.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
    else:
        # The banner goes to stderr, as it does by default.
        mcp.run()
