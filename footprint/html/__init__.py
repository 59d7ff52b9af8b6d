"""Reports as one page to look at: a file that needs no network, opened by double click.

The page is written in TypeScript in `app/`; its built files stand here and ship with the package.
"""

from footprint.formats.document import About
from footprint.html.pages import audit_page, check_page, diff_page, heap_page

__all__ = ("audit_page", "check_page", "diff_page", "heap_page", "html")


def html(page: str, _about: About) -> str:
    """Give a page as a format: it is whole already."""
    return page
