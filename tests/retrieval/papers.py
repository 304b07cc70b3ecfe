"""Small files in real formats, made here."""

from __future__ import annotations

import io


def pdf(*pages: str, title: str = "", damaged: int | None = None) -> bytes:
    """A PDF with one text per page; `damaged` breaks the content of that page (from 1)."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        lines = "".join(f"({line}) Tj T* " for line in text.replace("(", "\\(").replace(")", "\\)").split("\n"))
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td {lines}ET".encode() if text else b""
        extra = b""
        if damaged == number + 1:
            stream, extra = (
                b"not deflated at all",
                b" /Filter /FlateDecode /DecodeParms << /Predictor 15 /Columns (x) >>",
            )
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> "
            f"/Contents {5 + 2 * number} 0 R >>".encode()
        )
        objects.append(f"<< /Length {len(stream)}".encode() + extra + b" >>\nstream\n" + stream + b"\nendstream")
    objects.append(f"<< /Title ({title}) >>".encode())
    out = io.BytesIO(b"")
    out.write(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(f"{number} 0 obj\n".encode() + body + b"\nendobj\n")
    start = out.tell()
    out.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode())
    out.write(b"".join(f"{place:010d} 00000 n \n".encode() for place in places))
    info = f" /Info {len(objects)} 0 R" if title else ""
    out.write(f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R{info} >>\nstartxref\n{start}\n%%EOF\n".encode())
    return out.getvalue()


def docx(*blocks: tuple[str, str] | list[list[str]], title: str = "") -> bytes:
    """A Word file of (style, text) paragraphs and tables."""
    import docx as library

    document = library.Document()
    document.core_properties.title = title
    for block in blocks:
        if isinstance(block, tuple):
            document.add_paragraph(block[1], style=block[0])
        else:
            table = document.add_table(len(block), len(block[0]))
            for row, cells in zip(table.rows, block, strict=True):
                for cell, text in zip(row.cells, cells, strict=True):
                    cell.text = text
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


LAW_EN = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">
<title>Testers Act - English - Japanese Law Translation</title><script>var article = "Article 99";</script></head><body>
<nav><a href="/">Article 1 of the menu</a></nav>
<div class="lawtitle">Testers Act(Act No. 201 of 1948)</div><div>Last Version: Act No. 84 of 2006</div>
<p>TOC</p><p>History</p>
<div>Testers Act</div><div>Act No. 201 of July 30, 1948</div>
<div>Chapter I General Provisions (Articles 1 and 2)</div><div>Chapter II Duties (Articles 3 to 6-2)</div>
<div>Chapter I General Provisions</div>
<div>(Purpose)</div><div><span>Article 1</span><span>The purpose of this Act is to have things tested.</span></div>
<div>(Definitions)</div><div><span>Article 2</span><span>(1)</span>In this Act, words mean the following:</div>
<div>(i)a tester is a person who tests; and</div><div>(ii)a test is what a tester does.</div>
<div>(2)Article 1 of another Act does not change this.</div>
<div>Chapter II Duties</div>
<div>(Duty to Respond)</div><div><span>Article 3</span>A tester must not turn a request away.</div>
<div><span>(2)</span>Article 1 of the Reports Act applies to reports.</div>
<div>Article 1 of the Reports Act is not repeated here.</div>
<div>Articles 4 and 5Deleted</div>
<div><span>Article 6-2</span>A person who is not a tester must not test.</div>
<div>Supplementary Provisions [Act No. 84 of 2006] [Extract]</div>
<div>(Effective Date)</div><div><span>Article 1</span>This Act comes into effect at once.</div>
<footer>Article 7 of the footer</footer></body></html>"""

LAW_JA = """<!DOCTYPE html><html lang="ja"><head>
<title>試験者法 - 日本語 - 日本法令外国語訳DBシステム</title></head><body>
<div>試験者法（昭和二十三年法律第二百一号）</div><div>最終更新：平成十八年法律第八十四号</div>
<div>目次</div><div>第一章　総則（第一条・第二条）</div>
<div>第一章　総則</div><div>（目的）</div>
<div><span>第一条</span>　この法律は、<ruby>試験<rt>しけん</rt></ruby>を目的とする。</div>
<div>第二条　試験者は、応じなければならない。</div><div>２　前項の報告は、書面による。</div><div>一　氏名</div>
<div>３　第一条の規定は、準用する。</div><div>第三条の二試験者でなければ、試験をしてはならない。</div>
<div>第一条の規定は、適用しない。</div>
<div>附　則</div><div>（施行期日）</div><div>第一条　この法律は、公布の日から施行する。</div></body></html>"""
