"""The colours of the HTML report: each reader can tell apart those that stand together, and read dark text on them."""

import itertools
import math
import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "footprint" / "html" / "app" / "src"
COLOURS = dict(re.findall(r"(\w+): \"(#[0-9a-f]{6})\"", (SOURCES / "colours.ts").read_text(encoding="utf-8")))
KINDS = ("data", "bss", "relro", "text", "tls", "file", "heap", "stack", "anonymous", "shared", "kernel")
TOGETHER = {
    "kinds of memory": ("rest", *KINDS),
    "changes": ("rest", "grew", "shrank", "unknown"),
    "objects": ("rest", "unused"),
    "states of a page": ("rest", "private", "relro", "shared", "swapped", "unknown"),
    "parts of a heap": ("heap", "stack", "rest"),
}
LEAST_DIFFERENCE = 12
LEAST_CONTRAST = 4.5
DARK_TEXT = "#111111"

# What a reader sees without one kind of cones, as linear red, green and blue: Machado, Oliveira and Fernandes, "A
# Physiologically-based Model for Simulation of Color Vision Deficiency", 2009, at full severity.
VISIONS = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


def linear(colour: str) -> list[float]:
    """Return red, green and blue of a colour of sRGB as amounts of light."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def lab(light: list[float]) -> tuple[float, float, float]:
    """Return the CIE L*a*b* of amounts of light, for D65."""
    red, green, blue = light
    x = (0.4124564 * red + 0.3575761 * green + 0.1804375 * blue) / 0.95047
    y = 0.2126729 * red + 0.7151522 * green + 0.0721750 * blue
    z = (0.0193339 * red + 0.1191920 * green + 0.9503041 * blue) / 1.08883
    x, y, z = (one ** (1 / 3) if one > 216 / 24389 else (24389 / 27 * one + 16) / 116 for one in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def seen(colour: str, vision: str) -> tuple[float, float, float]:
    light = linear(colour)
    return lab(
        [
            min(1.0, max(0.0, sum(factor * part for factor, part in zip(row, light, strict=True))))
            for row in VISIONS[vision]
        ]
    )


def contrast(first: str, other: str) -> float:
    """Return the contrast of two colours as WCAG defines it."""
    dark, light = sorted(
        0.2126 * red + 0.7152 * green + 0.0722 * blue for red, green, blue in map(linear, (first, other))
    )
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("names", TOGETHER.values(), ids=TOGETHER)
def test_colours_that_stand_together_differ_for_each_reader(names: tuple[str, ...], vision: str) -> None:
    differences = {
        (one, other): math.dist(seen(COLOURS[one], vision), seen(COLOURS[other], vision))
        for one, other in itertools.combinations(names, 2)
    }
    assert {pair: size for pair, size in differences.items() if size < LEAST_DIFFERENCE} == {}


def test_the_figures_that_led_to_these_colours_are_computed_alike() -> None:
    # Of the former colours, relro and the rest, and text and anonymous memory, were nearly alike without red cones.
    former = [("#ffaabb", "#bbbbbb"), ("#77aadd", "#a79bd6")]
    found = [math.dist(seen(one, "protanopia"), seen(other, "protanopia")) for one, other in former]
    assert found == [pytest.approx(2.1, abs=0.05), pytest.approx(3.0, abs=0.05)]


@pytest.mark.parametrize("name", COLOURS)
def test_dark_text_is_readable_on_each_colour(name: str) -> None:
    assert contrast(COLOURS[name], DARK_TEXT) >= LEAST_CONTRAST


def test_each_colour_has_one_meaning_and_no_other_file_has_colours_of_data() -> None:
    assert len(set(COLOURS.values())) == len(COLOURS)
    assert list(COLOURS)[1 : len(KINDS) + 1] == list(KINDS)
    others = {
        path.name: found
        for path in SOURCES.glob("*.ts")
        if path.name != "colours.ts"
        and (found := re.findall(r"\"#[0-9a-fA-F]{3,8}\"", path.read_text(encoding="utf-8")))
    }
    # Text on a colour, the ground without a style sheet.
    assert {name: set(other) - {'"#111"', '"#fff"'} for name, other in others.items()} == {
        name: set() for name in others
    }


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_of_the_page_is_readable_on_its_grounds(scheme: int) -> None:
    style = (SOURCES / "app.css").read_text(encoding="utf-8")
    values = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", re.findall(r":root \{(.*?)\}", style, re.DOTALL)[scheme]))
    for text, ground in itertools.product(("text", "quiet", "link", "bad"), ("ground", "raised")):
        assert contrast(values[text], values[ground]) >= LEAST_CONTRAST, (text, ground)
    assert contrast(values["text"], values["mark"]) >= LEAST_CONTRAST
