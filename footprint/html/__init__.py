"""The HTML report: one file that a browser opens without a network.

Its script and style are built from `app/` (TypeScript); the built files `app.js` and `app.css` are part of the package.
"""

from footprint.formats.document import About


def html(report: str, _about: About) -> str:
    """Return a report as the text of a format: it is complete already."""
    return report
