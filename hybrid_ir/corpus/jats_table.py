"""A JATS (or HTML) table as rows of cell texts."""

from __future__ import annotations

from hybrid_ir.corpus.xml_text import Element, children, descendants, flatten, name

_MOST_COLUMNS = 200
"""A span beyond this is a mistake of the file, not a table."""


def rows(table: Element) -> list[list[str]]:
    """The rows, header first; every row has the text of its cells, one line each.

    A cell over several rows is repeated in each, so that a row can be read alone.  In the
    header a cell over several columns is repeated too; in the body it stands once.
    Rows without text are left out.
    """
    result: list[list[str]] = []
    below: dict[int, tuple[int, str]] = {}  # column -> (rows it still covers, text) of cells from above
    for row in descendants(table, "tr"):
        parent = row.getparent()
        if parent is not None and name(parent) in ("thead", "tbody", "tfoot") and row.getprevious() is None:
            below.clear()  # a cell never reaches out of its row group
        header = parent is not None and name(parent) == "thead"
        cells: list[str] = []
        column = 0

        def from_above(cells: list[str] = cells) -> None:
            nonlocal column
            while column in below:
                left, text = below.pop(column)
                cells.append(text)
                if left > 1:
                    below[column] = (left - 1, text)
                column += 1

        pending: dict[int, tuple[int, str]] = {}
        for cell in children(row, "td", "th"):
            from_above()
            text = flatten(cell).replace("\n", " ").replace("|", "¦")
            width, height = _span(cell, "colspan"), _span(cell, "rowspan")
            for offset in range(width):
                shown = text if offset == 0 or header else ""
                cells.append(shown)
                if height > 1:
                    pending[column] = (height - 1, shown)
                column += 1
        from_above()
        below.update(pending)
        if any(cells):
            while cells and not cells[-1]:
                cells.pop()
            result.append(cells)
    return result


def _span(cell: Element, attribute: str) -> int:
    value = cell.get(attribute, "1").strip()
    return min(max(int(value), 1), _MOST_COLUMNS) if value.isascii() and value.isdigit() and len(value) < 9 else 1
